from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.check.run import check_files, sample_problems
from pii_bench.datasets.check.sets import CANARY
from pii_bench.datasets.sample import sample_to_record
from pii_bench.errors import InputFileError
from tests.builders import sample_record, write_lines
from tests.datasets.check.samples import ann, build

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.check.run import Report
    from pii_bench.datasets.sample import Sample


def problems(report: Report) -> list[tuple[str, str, str]]:
    return [
        (path.name, problem.sample_id, problem.rule)
        for path, of_file in report.problems.items()
        for problem in of_file
    ]


def write(path: Path, *samples: Sample) -> Path:
    return write_lines(path, map(sample_to_record, samples))


def test_our_sets_have_no_problems() -> None:
    # The rules on formats and queries were not applied to `train-other`.
    paths = [entry.path for name, entry in DATASETS.items() if name != "train-other"]

    assert problems(check_files(paths)) == []


def test_a_sample_is_checked_by_all_rules_for_single_samples() -> None:
    sample = build(
        "Ann Lee, 19, PhD, call Ann or write to a@b.example, flat 7b.",
        {"Ann Lee": "Full Name", "19": "Age", "PhD": "Academic Degree", "7b": "Credit Score"},
        related=[("A", "Ann Lee")],
    )

    assert {problem.rule for problem in sample_problems(sample)} == {
        "format",
        "leak",
        "name-leak",
        "related-person",
        "schooling-takes-years",
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"related": [{"subject": "A", "text": "33"}]}, "its text is not an entity of subject 'A'"),
        ({"subjects": [{"id": "A"}]}, "'entities' is missing"),
    ],
)
def test_a_broken_line_is_a_problem_and_the_rest_is_checked(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    lines = [sample_record("s1", **changes), sample_record("s2", query="Is 32 old?"), {"id": 3}]
    path = write_lines(tmp_path / "theirs.jsonl", lines)

    report = check_files([path])

    assert problems(report) == [
        ("theirs.jsonl", "s1", "record"),
        ("theirs.jsonl", "line 3", "record"),
        ("theirs.jsonl", "s2", "query-value"),
    ]
    assert reason in report.problems[path][0].reason
    assert report.samples == 1


def test_a_repeated_id_is_a_problem(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "theirs.jsonl", [sample_record(), sample_record()])

    (problem,) = check_files([path]).problems[path]
    assert (problem.rule, problem.reason) == ("record", "the id is already used on line 1")


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="no samples in it"):
        check_files([write_lines(tmp_path / "theirs.jsonl", [])])


def test_sources_are_searched_in_the_files_and_next_to_them(tmp_path: Path) -> None:
    single = write(tmp_path / "single.jsonl", ann(sample_id="single-1", canary=CANARY))
    hard = write(
        tmp_path / "hard.jsonl", ann(sample_id="hard-1", hard_of="single-1", canary=CANARY)
    )

    assert problems(check_files([single, hard])) == []
    assert problems(check_files([hard])) == []
    single.unlink()
    assert problems(check_files([hard])) == [("hard.jsonl", "hard-1", "source-missing")]


def test_files_are_checked_against_each_other(tmp_path: Path) -> None:
    first = write(tmp_path / "one.jsonl", ann(sample_id="a"))
    second = write(tmp_path / "two.jsonl", ann(sample_id="b"))

    assert problems(check_files([first, second, first])) == [("two.jsonl", "b", "duplicate")]


def test_a_set_of_ours_without_canary_has_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "single.jsonl", ann())

    assert problems(check_files([path])) == [("single.jsonl", "s1", "canary")]
