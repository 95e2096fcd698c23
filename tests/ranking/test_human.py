from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError
from pii_bench.ranking.collect import update
from pii_bench.ranking.human import HumanAnswer, human_rows, read_human, to_lines
from pii_bench.ranking.rows import Source, rank
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pathlib import Path


def answer(sample: str, annotator: int, *texts: str, suggestions: str | None = None) -> HumanAnswer:
    return HumanAnswer(
        "demo", Task.QUERY_RELATED, sample, sample, annotator, texts, ("32",), suggestions
    )


def write(results: Path, *answers: HumanAnswer) -> Path:
    path = results / "human" / "study.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(to_lines(answers), encoding="utf-8")
    return path


def test_people_are_a_row_with_an_interval_and_no_rank(tmp_path: Path) -> None:
    write(
        tmp_path,
        answer("s1", 1, "32"),
        # Precision 1/2 and recall 1.
        answer("s1", 2, "32", "Leeds"),
        answer("s2", 1, "Leeds"),
    )

    rows, broken = human_rows(tmp_path)
    (row,) = rank(rows)

    assert broken == []
    assert (row.source, row.model, row.dataset, row.rank) == (Source.HUMAN, "people", "demo", None)
    assert row.metrics["f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert row.by_sample["f1"].values == pytest.approx((5 / 6, 0))
    assert row.interval is not None
    assert row.note == "2 people: 3 answers, 2 samples"


def test_detection_is_scored_by_subject(tmp_path: Path) -> None:
    gold = [[("Ann", "PER"), ("32", "DEM")], [("Bo", "PER")]]
    # The age is given to Bo: strict F1 of Ann 2/3, of Bo 2/3.
    said = [[("Ann", "PER")], [("Bo", "PER"), ("32", "DEM")]]
    write(tmp_path, HumanAnswer("demo", Task.DETECTION, "s1", "s1", 1, said, gold))

    (row,), _ = human_rows(tmp_path)

    assert row.metrics["strict_f1"] == pytest.approx(2 / 3)
    assert row.metrics["ent_f1"] == 1


def test_suggestions_are_said(tmp_path: Path) -> None:
    write(tmp_path, answer("s1", 1, "32", suggestions="encoder"))

    (row,), _ = human_rows(tmp_path)

    assert row.note == "1 person, who saw suggestions of encoder: 1 answers, 1 samples"


def test_the_leaderboard_has_people_and_says_what_it_cannot_read(tmp_path: Path) -> None:
    write(tmp_path, answer("s1", 1, "32"))
    (tmp_path / "human" / "other.jsonl").write_text("{}\n", encoding="utf-8")

    board = update(tmp_path)

    assert [row.source for row in board.rows if row.dataset == "demo"] == [Source.HUMAN]
    assert "other.jsonl:1" in board.left_out[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task": "masking"}, "detection or query-related"),
        ({"task": "x"}, "detection or query-related"),
        ({"answer": [5]}, "list texts"),
        ({"task": "detection"}, "list subjects"),
        ({"task": "detection", "answer": [["x"]]}, "pairs of text and type"),
        ({"annotator": "eva"}, "a whole number"),
    ],
)
def test_a_line_that_is_not_of_its_form_is_named(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = write(tmp_path, answer("s1", 1, "32"))
    record = json.loads(path.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(record), encoding="utf-8")

    with pytest.raises(InputFileError, match=reason):
        read_human(path)
