from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.files import ResultsError
from pii_bench.ranking.collect import collect
from pii_bench.ranking.render import (
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_table,
    write_leaderboard,
)
from pii_bench.ranking.rows import METRICS, Row, rank
from pii_bench.ranking.source import Source
from pii_bench.tasks import Status, Task
from tests.ranking.stored_runs import ANN, BO, FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = re.compile(r"\b(norm|match|rougeL|parser|pii_bench|scipy|rapidfuzz|python):[^|`,\n]+")

PUBLISHED = Row(
    source=Source.PUBLISHED,
    model="gpt-4o-2024-08-06",
    strategy="naive",
    dataset="single+multi",
    task=Task.MASKING,
    oracle=False,
    metrics={"f1": 0.72, "rouge_l_f": 0.72},
    note="paper, table 4",
)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Two models, a reference run, an oracle, an incomplete run and a published figure."""
    monkeypatch.chdir(tmp_path)
    dataset = tiny_dataset(Path("tiny.jsonl"))  # the signature holds no folder
    runs, reference = tmp_path / "results" / "runs", tmp_path / "results" / "reference"
    ages = {"s1": '### Answer: ["32"]', "s2": "### Answer: ['40']"}
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": "I found nobody."})
    store_run(runs, dataset, "naive", ages | {"s2": '### Answer: ["41"]'})
    store_run(runs, dataset, "naive-choice", ages)
    store_run(
        runs,
        dataset,
        "naive",
        {"s1": ages["s1"], "s2": FAILED},
        model="fake/two",
        unmasked_text_to="fake (https://api.example.org/v1)",
    )
    store_run(reference, dataset, "detection", {"s1": ANN, "s2": BO}, model="fake/three")
    return rank([*collect(tmp_path / "results").rows, PUBLISHED])


def test_the_csv(rows: list[Row], assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("leaderboard.csv", VERSIONS.sub(r"\1:*", to_csv(rows)))


def test_the_markdown(rows: list[Row], assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("leaderboard.md", VERSIONS.sub(r"\1:*", to_markdown(rows)))


def test_the_latex(rows: list[Row], assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("leaderboard.tex", to_latex(rows))


def test_the_page(rows: list[Row], assert_golden: Callable[[str, str], None]) -> None:
    # All but the style and the scripts.
    (main,) = re.findall("<main>.*</main>\n", to_html(rows), re.DOTALL)
    assert_golden("leaderboard.html", VERSIONS.sub(r"\1:*", main))


def test_names_cannot_break_out_of_a_table() -> None:
    row = replace(PUBLISHED, model="<script>1</script>", strategy="50%_&{x}", signature="<b>")

    assert "<script>1" not in to_html([row])
    assert "<code><b>" not in to_html([row])
    assert r"50\%\_\&\{x\}" in to_latex([row])


def test_the_columns() -> None:
    assert to_csv([]).rstrip("\n").split(",") == [
        *("source", "model", "strategy", "dataset", "task", "oracle", "rank"),
        *("scored", "gold", "coverage", *METRICS),
        *("ci_low", "ci_high", "detectable"),
        *(f"rate_{status}" for status in Status),
        *("unmasked_text_to", "signature", "note"),
    ]


def test_what_needs_subjects_is_a_dash_where_none_are_named() -> None:
    row = Row(
        source=Source.RUN,
        model="bilstm-crf",
        strategy="detection",
        dataset="single",
        task=Task.DETECTION,
        oracle=False,
        metrics={"ent_f1": 0.85},
        scored=12,
        gold=12,
        names_subjects=False,
    )

    line = to_table([row]).splitlines()[-1]

    assert [cell.strip() for cell in line.split("|")[4:7]] == ["-", "0.850", "-"]


@pytest.mark.parametrize(
    ("recipient", "shown"),
    [
        ("this machine", "this machine"),
        ("unknown", "unknown"),
        ("", ""),
        ("openai (https://api.openai.com/v1)", "openai (api.openai.com)"),
        ("openai (http://10.0.0.2:8000)", "openai (10.0.0.2:8000)"),
        ("unknown, openai (https://api.openai.com/v1)", "unknown, openai (api.openai.com)"),
    ],
)
def test_of_who_is_sent_unmasked_text_the_table_names_the_host(recipient: str, shown: str) -> None:
    row = replace(PUBLISHED, unmasked_text_to=recipient)

    line = to_table([row]).splitlines()[-1]

    assert line.split("|")[-3].strip() == shown
    [written] = csv.DictReader(to_csv([row]).splitlines())
    assert written["unmasked_text_to"] == recipient


def test_no_results_are_a_table_without_rows() -> None:
    assert to_csv([]).count("\n") == 1
    assert to_markdown([]).startswith("# Leaderboard\n")


def test_each_format_is_a_file_and_the_folder_is_made(rows: list[Row], tmp_path: Path) -> None:
    files = write_leaderboard(rows, tmp_path / "elsewhere")

    assert {path.name: path.read_text(encoding="utf-8") for path in files} == {
        "leaderboard.csv": to_csv(rows),
        "leaderboard.md": to_markdown(rows),
        "leaderboard.tex": to_latex(rows),
        "leaderboard.html": to_html(rows),
    }


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")

    with pytest.raises(ResultsError, match=r"results/leaderboard\.csv: cannot be written: "):
        write_leaderboard([], tmp_path / "results")
