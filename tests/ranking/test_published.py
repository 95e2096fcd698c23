from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError
from pii_bench.ranking.published import PUBLISHED, published_rows
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.ranking.rows import Row

HEADER = "table,task,dataset,model,strategy,metric,value,note\n"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return published_rows()


def test_every_figure_of_the_three_tasks_is_in_a_row(rows: list[Row]) -> None:
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    tasks = Counter(record["task"] for record in records)

    assert len(records) == 754
    assert tasks["privacy_utility"] == 9
    assert sum(len(row.metrics) for row in rows) == 754 - 9
    figures = Counter(
        (row.task.replace("-", "_"), row.dataset, row.model, metric, value)
        for row in rows
        for metric, value in row.metrics.items()
    )
    assert figures == Counter(
        (r["task"], r["dataset"], r["model"], r["metric"], float(r["value"]))
        for r in records
        if r["task"] != "privacy_utility"
    )


def test_figures_of_one_table_and_model_share_a_row(rows: list[Row]) -> None:
    (row,) = [
        row
        for row in rows
        if (row.model, row.strategy, row.task, row.note)
        == ("gpt-4o-2024-08-06", "naive", Task.MASKING, "paper, table 4")
    ]

    assert row.dataset == "single+multi"
    assert row.metrics == {"f1": 0.72, "rouge_l_f": 0.72}


def test_notes_stay_with_their_metric(rows: list[Row]) -> None:
    (row,) = [
        row
        for row in rows
        if (row.model, row.dataset, row.task) == ("human", "single", Task.DETECTION)
    ]

    assert row.note == "paper, table 2; strict_f1: std 0.011"


def test_published_rows_are_never_ranked_and_say_what_they_are(rows: list[Row]) -> None:
    assert {row.source for row in rows} == {Source.PUBLISHED}
    assert {(row.scored, row.gold, row.rates, row.signature) for row in rows} == {
        (None, None, None, "")
    }
    assert not any(row.complete for row in rows)


def test_detection_rows_carry_the_name_of_its_prompt(rows: list[Row]) -> None:
    assert {row.strategy for row in rows if row.task is Task.DETECTION} == {"detection"}


def test_the_oracle_of_the_paper_is_marked_too(rows: list[Row]) -> None:
    assert {row.strategy for row in rows if row.oracle} == {"naive-choice"}


@pytest.mark.parametrize(
    "line",
    [
        "4,masking,single,m,naive,f1,high,\n",
        "4,masking,single,m,naive,f1,72.0,\n",
        "4,masking,single,m,naive,f1,-0.1,\n",
        "4,masking,single,m,naive,f1,nan,\n",
        "4,masking,single,m,naive,accuracy,0.72,\n",
    ],
)
def test_a_figure_that_is_none_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "figures.csv"
    path.write_text(HEADER + line)

    with pytest.raises(InputFileError, match=r"figures\.csv: no table of published figures: "):
        published_rows(path)


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    path.write_text("task,value\nmasking,0.5\n")

    with pytest.raises(InputFileError, match="no table of published figures: "):
        published_rows(path)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        published_rows(tmp_path / "figures.csv")
