from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.readings import Reading
from pii_bench.ranking.reading import reading_rows
from pii_bench.ranking.rows import rank
from pii_bench.ranking.source import Source

if TYPE_CHECKING:
    from pathlib import Path


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
