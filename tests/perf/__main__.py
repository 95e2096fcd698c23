"""`python -m tests.perf` measures pii_bench and its peers and writes a report.

Nothing here is a test: how fast a machine is can be told, not asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.perf import report
from tests.perf.contestants import CONTESTANTS, OURS, Bench, Contestant, ours, write_requests
from tests.perf.process import Cost, run
from tests.perf.scorers import write_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = REPOSITORY / "build" / "perf"
LOG: Final = FOLDER / "log.txt"
REQUESTS: Final = 1000
CONCURRENCIES: Final = (50, 200)
FEWER: Final = 250
DELAY: Final = 0.1

_JUDGES: Final = (
    ("RougeL of two entities", "texts", "rouge-score"),
    ("RougeL of two descriptions", "descriptions", "rouge-score"),
    ("detection of one sample", "samples", "nervaluate"),
)


@contextmanager
def serving(python: Path) -> Iterator[str]:
    """Run the server in a process of its own; its URL."""
    process = subprocess.Popen(  # noqa: S603 - our own server
        [python, "-m", "tests.perf.server", "--delay", str(DELAY)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def measure(
    bench: Bench, contestant: Contestant, concurrency: int, requests: int = REQUESTS
) -> Cost:
    """Run one contestant in an empty folder.

    Raises:
        RuntimeError: it failed, or did not get an answer to each of its requests once.
    """
    shutil.rmtree(bench.folder, ignore_errors=True)
    bench.folder.mkdir(parents=True)
    command = contestant.command(bench, concurrency)
    environment = contestant.environment(bench)
    before = _answered(bench)
    cost = run(command, folder=REPOSITORY, log=LOG, environment=environment)
    if (answered := _answered(bench) - before) != requests:
        what = f"{contestant.name}: {answered} answers to {requests} requests"
        raise RuntimeError(f"{what}: see {LOG}")
    _say(f"{contestant.name}: {cost.wall:.2f} s, {cost.cpu:.2f} s of CPU, {cost.peak:.0f} MiB")
    return cost


def _answered(bench: Bench) -> int:
    url = f"{bench.base_url.removesuffix('/v1')}/count"
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our server
        return int(answer.read())


def measure_calls(
    bench: Bench, contestants: Sequence[Contestant], runs: int
) -> Mapping[tuple[str, int], list[Cost]]:
    """Costs by contestant and calls at a time; the contestants take turns."""
    costs: dict[tuple[str, int], list[Cost]] = {}
    for contestant in contestants:
        _say("not counted:")
        measure(bench, contestant, CONCURRENCIES[0])
    for _ in range(runs):
        for concurrency in CONCURRENCIES:
            _say(f"{concurrency} at a time:")
            for contestant in contestants:
                cost = measure(bench, contestant, concurrency)
                costs.setdefault((contestant.name, concurrency), []).append(cost)
    return costs


def measure_memory(bench: Bench, runs: int) -> Mapping[int, float]:
    """Median peak of ours in MiB, by the number of samples."""
    peaks = {}
    for limit in (FEWER, REQUESTS):
        limited = replace(OURS, arguments=partial(ours, limit=limit))
        costs = [measure(bench, limited, CONCURRENCIES[0], limit) for _ in range(runs)]
        peaks[limit] = statistics.median(cost.peak for cost in costs)
    return peaks


def measure_scorers(cases: Path, peers: Path) -> list[report.Judged]:
    """Seconds and findings of our scorer and of the peers'."""
    counts = write_cases(cases)
    judged = []
    for what, kind, peer in _JUDGES:
        _say(f"scorer: {kind}")
        own = _judge(Path(sys.executable), f"our-{kind}", cases)
        other = _judge(peers, f"{peer}-{kind}", cases)
        judged.append(report.Judged(what, counts[kind], peer, own, other))
    return judged


def _judge(python: Path, judge: str, cases: Path) -> tuple[float, float]:
    """Return median seconds, and what was found."""
    done = subprocess.run(  # noqa: S603 - our own module
        [python, "-m", "tests.perf.scorers", judge, cases],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return statistics.median(told["seconds"]), told["found"]


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)  # noqa: T201 - how far it is


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="counted runs (default: %(default)s)")
    parser.add_argument("--peers", type=Path, default=Path("build/perf-venv/bin/python"))
    parser.add_argument("--node-modules", type=Path, default=Path("build/perf-npm/node_modules"))
    parser.add_argument("--out", type=Path, default=Path("results/perf.md"))
    options = parser.parse_args()
    # Compiled modules are kept where users have them too.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Not resolved: the link's own place says which environment it is of.
    peers = Path.cwd() / options.peers
    FOLDER.mkdir(parents=True, exist_ok=True)
    requests = FOLDER / "requests.jsonl"
    write_requests(requests, REQUESTS)
    load = os.getloadavg()[0]
    with serving(peers) as server:
        bench = Bench(
            FOLDER / "run", requests, f"{server}/v1", peers, Path.cwd() / options.node_modules
        )
        contestants = [each for each in CONTESTANTS if each.program(bench).exists()]
        costs = measure_calls(bench, contestants, options.runs)
        memory = measure_memory(bench, options.runs)
    judged = measure_scorers(FOLDER / "cases.json", peers)
    text = report.render(bench, contestants, costs, memory, judged, load=load)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    _say(f"written: {options.out}")


if __name__ == "__main__":
    main()
