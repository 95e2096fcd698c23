from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.chats import AnswerPair, AnswerQuestions, JudgeQuestions
from pii_bench.analysis.utility.stored import (
    answers_folder,
    read_answerers,
    read_judges,
    run_name,
    split_name,
    verdicts_folder,
)
from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.models.base import CallError, Completion, Draws, Finish
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY
from tests.analysis.utility.runs import ANSWERER, JUDGE, run_answerer, run_judge
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    records = [sample_record(f"s{number}") for number in (1, 2, 3)]
    return load_dataset(str(write_lines(tmp_path / "set.jsonl", records)))


@pytest.mark.parametrize("condition", ["mask-all", "openai/gpt-4o@host:80+naive+schema"])
def test_the_name_of_a_run_tells_dataset_and_condition(condition: str) -> None:
    assert split_name(run_name("demo", condition)) == ("demo", condition)


def test_where_answers_and_verdicts_are(tmp_path: Path) -> None:
    assert answers_folder(tmp_path) == tmp_path / "utility" / "answers"
    assert verdicts_folder(tmp_path, "local/x") == tmp_path / "utility" / "verdicts/local--x"


def test_nothing_is_stored_in_an_empty_folder(tmp_path: Path) -> None:
    assert read_answerers(tmp_path, []) == []
    assert read_judges(tmp_path, ANSWERER, "demo@mask-all", []) == []


def test_answers_are_read_back_as_far_as_the_same_was_asked(
    tmp_path: Path, dataset: Dataset
) -> None:
    said: dict[str, str | CallError] = {"s1": "Young.", "s2": CallError("timeout"), "s3": "Old."}
    run_answerer(tmp_path, dataset, "mask-all", said)
    (run,) = read_answerers(tmp_path, [])

    asked = "<Full Name> is <Age>."
    questions = AnswerQuestions({"s1": asked, "s2": asked, "s3": "Ann Lee is <Age>.", "s4": asked})
    assert run.responses(questions, dataset.samples) == {
        "s1": Completion("Young.", Finish.STOP),
        "s2": None,
    }
    assert run.responses(AnswerQuestions({"s1": asked}), dataset.samples).keys() == {"s1"}


def test_verdicts_are_read_back_with_the_answers_that_they_are_about(
    tmp_path: Path, dataset: Dataset
) -> None:
    for condition in ("no-mask", "mask-all"):
        run_answerer(tmp_path, dataset, condition, {"s1": condition, "s2": condition})
    run_judge(tmp_path, dataset, "mask-all", {"s1": ("A=9, B=1", "A=1, B=9"), "s2": ("", "")})
    (judge,) = read_judges(tmp_path, ANSWERER, f"{dataset.name}@mask-all", [])

    pairs = {
        "s1": AnswerPair(masked="mask-all", unmasked="no-mask"),
        "s2": AnswerPair(masked="mask-all", unmasked="another"),
    }
    assert judge.manifest.system.model == JUDGE
    assert judge.responses(JudgeQuestions(pairs), dataset.samples) == {
        "s1": Draws((Completion("A=9, B=1", Finish.STOP), Completion("A=1, B=9", Finish.STOP)))
    }
    assert read_judges(tmp_path, ANSWERER, f"{dataset.name}@no-mask", []) == []
    assert read_judges(tmp_path, "another/answerer", f"{dataset.name}@mask-all", []) == []


def test_what_cannot_be_read_is_told_with_what_mends_it(tmp_path: Path, dataset: Dataset) -> None:
    for condition in ("mask-all", "no-mask"):
        run_answerer(tmp_path, dataset, condition, {"s1": "east"})
    manifest, other = sorted(answers_folder(tmp_path).rglob("*.run.json"))
    manifest.write_text("{}")
    lines = other.with_name(other.name.replace(".run.json", ".jsonl"))
    lines.write_text("{}\n")
    told: list[str] = []

    read_answerers(tmp_path, told)

    assert told == [
        f"{manifest}: no manifest of a run: record: 'system' is missing; {MANIFEST_REMEDY}",
        f"{lines}:1: record: 'id' is missing; {LINE_REMEDY}",
    ]
