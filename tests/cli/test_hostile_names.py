"""Hostile names from servers, manifests and samples, in every command."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import store_run

if TYPE_CHECKING:
    from pii_bench.datasets.catalog import Dataset
    from tests.cli.conftest import Capsys

HOSTILE: Final = "=1+1\x1b]0;owned\x07\u202e<script>alert(1)</script>|\ud800`$x^{$[a](b)\n# c\\"
ANN: Final = json.dumps({"Ann Lee": HOSTILE, "32": "DEM"})


@pytest.fixture
def dataset() -> Dataset:
    path = Path("\x1b[31m=set<b>.jsonl")
    records = [sample_record(HOSTILE), sample_record("s2", description="Now Ann Lee is 32.")]
    for record in records:
        for entity in record["subjects"][0]["entities"]:
            del entity["spans"]
    records[1]["subjects"][0]["entities"][0]["category"] = HOSTILE
    return load_dataset(str(write_lines(path, records)))


@pytest.fixture
def results(dataset: Dataset) -> Path:
    folder = Path("results")
    for model in (f"fake/{HOSTILE}", "=fake/other"):
        answers = {HOSTILE: f"Subject1{ANN}", "s2": "I see none"}
        store_run(folder / "runs", dataset, "detection", answers, model=model)
        related = {HOSTILE: '### Answer: ["32"]', "s2": "=2"}
        store_run(folder / "runs", dataset, "naive", related, model=model, unmasked_text_to=HOSTILE)
    store_run(folder / "runs", dataset, "naive", {}, model=f"{HOSTILE}2").manifest.write_text("{")
    return folder


COMMANDS: Final = {
    "leaderboard": ["leaderboard"],
    "table": ["leaderboard", "--table", "5"],
    "report": ["report", "--texts"],
    "analyse": ["analyse"],
    "diagnose": ["diagnose"],
    "export": ["export", "every-eval-ever", "--out", "out"],
    "compare": ["compare", f"fake/{HOSTILE}", "=fake/other"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_name_stays_text(results: Path, capsys: Capsys, command: str) -> None:
    assert main([*COMMANDS[command], "--results", str(results)]) in {0, 1, 2}

    output = capsys.readouterr()
    _is_harmless(output.out)
    _is_harmless(output.err)
    for path in [*results.glob("*"), *results.glob("a*/*"), *results.glob("d*/*")]:
        if path.is_file() and path.suffix != ".png":
            check = _CHECKS.get(path.suffix, _is_harmless)
            check(path.read_text(encoding="utf-8"))


def test_data_check_and_score_escape_hostile_names(dataset: Dataset, capsys: Capsys) -> None:
    answers = [
        {"id": sample.id, "subjects": [[{"text": "Ann Lee", "type": HOSTILE}]]}
        for sample in dataset.samples
    ]
    predictions = write_lines(Path("\x1b[31m=mine.jsonl"), answers)

    assert main(["data", "check", dataset.source]) == 2
    assert main(["score", str(predictions), "--dataset", dataset.source]) == 0
    assert main(["score", str(predictions), "--dataset", HOSTILE]) == 2

    output = capsys.readouterr()
    _is_harmless(output.out)
    _is_harmless(output.err)


def _is_harmless(text: str) -> None:
    text.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def _is_harmless_html(text: str) -> None:
    _is_harmless(text)
    assert "<script>alert" not in text


def _is_harmless_markdown(text: str) -> None:
    _is_harmless(text)
    # Signatures stand in code, where a tag is none.
    assert "<script>" not in text.partition("## Signatures")[0].replace(r"\<", "")
    assert "\n# c" not in text


def _is_harmless_csv(text: str) -> None:
    _is_harmless(text)
    rows = list(csv.reader(text.splitlines()))
    assert {len(row) for row in rows} <= {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        assert not re.match(r"[=+@]|-(?![\d.])", cell)


_CHECKS: Final = {
    ".csv": _is_harmless_csv,
    ".md": _is_harmless_markdown,
    ".html": _is_harmless_html,
}
