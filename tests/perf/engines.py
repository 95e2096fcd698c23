"""`python -m tests.perf.engines` measures `mask` in one process and on Ray, and writes a report."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from tabulate import tabulate

from tests.perf.process import run

REPOSITORY: Final = Path(__file__).resolve().parents[2]
REPORT: Final = REPOSITORY / "results" / "perf_ray.md"

_TEXT: Final = """\
# Throughput on Ray

What `make perf-ray` measured on {date}; the command writes this file.

`pii-bench mask` with the default system over the first {count} texts of `single`, {characters}
characters on average, on a machine of {cores} cores. `s` is the whole process, start-up
included; `texts/s` is the difference between {count} and {few} texts, which leaves start-up
out. The outputs are the same bytes.

{table}
"""


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=240)
    parser.add_argument("--few", type=int, default=60)
    arguments = parser.parse_args()
    with (REPOSITORY / "data" / "single.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line)["description"] for line in lines][: arguments.texts]
    engines = {
        "one process": [],
        "Ray, 1 workers": ["--engine", "ray", "--workers", "1"],
        "Ray, 2 workers": ["--engine", "ray", "--workers", "2"],
    }
    rows: list[tuple[str, float, float]] = []
    outputs = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "masked.jsonl"
        for engine, options in engines.items():
            seconds = {}
            for count in (arguments.few, len(texts)):
                table = folder / "texts.jsonl"
                table.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts[:count]))
                out.unlink(missing_ok=True)
                command = [
                    *(str(Path(sys.executable).parent / "pii-bench"), "mask", str(table)),
                    *("--column", "text", "--query", "Who is it?", "--out", str(out), *options),
                ]
                log = folder / "log"
                seconds[count] = run(command, folder=folder, log=log, environment={}).wall
            outputs.add(out.read_bytes())
            gained = len(texts) - arguments.few
            rate = gained / (seconds[len(texts)] - seconds[arguments.few])
            rows.append((engine, seconds[len(texts)], rate))
    if len(outputs) != 1:
        raise RuntimeError("the engines wrote different texts")
    REPORT.write_text(
        _TEXT.format(
            date=dt.datetime.now(dt.UTC).date(),
            count=len(texts),
            few=arguments.few,
            characters=sum(map(len, texts)) // len(texts),
            cores=os.cpu_count(),
            table=tabulate(
                [(*row, row[2] / rows[0][2]) for row in rows],
                headers=("engine", "s", "texts/s", "x"),
                tablefmt="github",
                floatfmt=("", ".1f", ".1f", ".2f"),
            ),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
