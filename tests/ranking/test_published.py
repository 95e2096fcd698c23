from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.readings import Reading
from pii_bench.errors import InputFileError
from pii_bench.ranking.published import PUBLISHED, published_rows, reading_rows
from pii_bench.ranking.rows import Source, rank
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


def reading(sample_id: str, *needed: str, reader: str = "a", number: int = 1) -> Reading:
    """A reading of a sample of which "32" is needed."""
    return Reading(
        id=sample_id,
        version=f"v{number}",
        reader=reader,
        round=number,
        options=("32", "Leeds"),
        gold=("32",),
        needed=needed,
        unlisted=(),
        ambiguous=False,
        text=4,
        query=5,
    )


def write(folder: Path, *readings: Reading) -> None:
    lines = [json.dumps(asdict(each)) + "\n" for each in readings]
    (folder / "single.jsonl").write_text("".join(lines), encoding="utf-8")


def test_the_f1_of_first_readings_is_a_row_that_is_not_ranked(tmp_path: Path) -> None:
    write(
        tmp_path,
        reading("single-0001", "32"),
        # Precision 1/2 and recall 1.
        reading("single-0001", "32", "Leeds", reader="b"),
        reading("single-0002", "Leeds"),
        # The text was mended and read again.
        reading("single-0002", "32", number=2),
    )

    (row,) = rank(reading_rows({"single", "multi"}, tmp_path))

    assert (row.source, row.model, row.dataset) == (Source.READING, "readers", "single")
    assert row.metrics["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert row.rank is None
    assert (row.scored, row.gold) == (2, 2)
    assert row.note == "a large language model, blind to gold: 3 first readings"


def test_by_sample_a_row_has_the_mean_over_readers(tmp_path: Path) -> None:
    write(tmp_path, reading("single-0001", "32"), reading("single-0001", "Leeds", reader="b"))

    (row,) = reading_rows({"single"}, tmp_path)

    assert row.by_sample["f1"].values == (0.5,)


def test_a_dataset_that_nobody_read_has_no_row(tmp_path: Path) -> None:
    assert reading_rows({"demo"}, tmp_path) == []


def test_a_dataset_of_somebody_else_has_no_row_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, reading("single-0001", "32"))
    (tmp_path / "single.jsonl").rename(tmp_path / "theirs.jsonl")

    assert reading_rows({"theirs", f"../{tmp_path.name}/theirs", "x" * 100_000}, tmp_path) == []
