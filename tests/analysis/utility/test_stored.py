from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.chats import AnswerPair, answer_questions, judge_questions
from pii_bench.analysis.utility.stored import (
    StaleAnswersError,
    StoredChat,
    answer_pairs,
    answers_folder,
    hold_answers,
    read_answerers,
    read_judges,
    run_name,
    split_name,
    verdicts_folder,
)
from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.errors import InputFileError
from pii_bench.models.base import CallError, Completion, Draws, Finish
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY
from tests.analysis.utility.runs import ANSWERER, JUDGE, run_answerer, run_judge, run_masker
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path


SYSTEM = "fake/masker+naive"


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
    questions = answer_questions({"s1": asked, "s2": asked, "s3": "Ann Lee is <Age>.", "s4": asked})
    assert run.responses(questions, dataset.samples) == {
        "s1": Completion("Young.", Finish.STOP),
        "s2": None,
    }
    assert run.responses(answer_questions({"s1": asked}), dataset.samples).keys() == {"s1"}


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
    assert judge.responses(judge_questions(pairs), dataset.samples) == {
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


@pytest.fixture
def of_four(tmp_path: Path) -> Dataset:
    records = [sample_record(f"s{number}") for number in (1, 2, 3)]
    records.append(sample_record("without-query", query=None, related=[]))
    return load_dataset(str(write_lines(tmp_path / "set.jsonl", records)))


def runs(results: Path) -> dict[str, StoredChat]:
    stored = read_answerers(results, [])
    return {split_name(run.manifest.dataset.name)[1]: run for run in stored}


def test_who_was_asked_and_who_answered(tmp_path: Path, of_four: Dataset) -> None:
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No.", "s2": CallError("timeout")})
    run_answerer(tmp_path, of_four, "mask-all", {"s1": "It depends.", "s2": "Who knows?"})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, of_four, stored["mask-all"], stored["no-mask"])

    assert held.condition == "mask-all"
    assert held.oracle
    assert [sample.id for sample in held.samples] == ["s1", "s2", "s3"]
    assert [sample.id for sample in held.asked] == ["s1", "s2"]
    assert held.maskings["s1"].text == "<Full Name> is <Age>."
    assert held.pairs == {"s1": AnswerPair(masked="It depends.", unmasked="No.")}


def test_the_run_without_a_mask_is_beside_itself(tmp_path: Path, of_four: Dataset) -> None:
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No."})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, of_four, stored["no-mask"], stored["no-mask"])

    assert not held.oracle
    assert held.pairs == {"s1": AnswerPair(masked="No.", unmasked="No.")}


def test_a_system_masks_those_that_it_answered(tmp_path: Path, of_four: Dataset) -> None:
    said = {
        "s1": ('Subject1{"32": "DEM"}', "### Answer: []"),
        "s2": ("", "### Answer: []"),
    }
    run_masker(tmp_path, of_four, said)
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No.", "s2": "No."})
    run_answerer(tmp_path, of_four, SYSTEM, {"s1": "It depends."})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, of_four, stored[SYSTEM], stored["no-mask"])

    assert not held.oracle
    assert [sample.id for sample in held.asked] == ["s1", "s2"]
    assert {name: masked.text for name, masked in held.maskings.items()} == {
        "s1": "Ann Lee is <Age>."
    }
    assert held.pairs == {"s1": AnswerPair(masked="It depends.", unmasked="No.")}


def test_an_answer_to_what_was_masked_before_does_not_count(
    tmp_path: Path, of_four: Dataset
) -> None:
    before = dict.fromkeys(("s1", "s2"), ('Subject1{"32": "DEM"}', "### Answer: []"))
    run_masker(tmp_path, of_four, before)
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No.", "s2": "No."})
    run_answerer(tmp_path, of_four, SYSTEM, {"s1": "It depends.", "s2": "It depends."})
    (tmp_path / "runs").rename(tmp_path / "before")
    run_masker(tmp_path, of_four, {**before, "s2": ("Subject1{}", "### Answer: []")})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, of_four, stored[SYSTEM], stored["no-mask"])

    assert held.maskings["s2"].text == "Ann Lee is 32."
    assert held.pairs.keys() == {"s1"}


@pytest.mark.parametrize("condition", ["no-mask", "mask-all"])
def test_a_dataset_that_has_changed(tmp_path: Path, of_four: Dataset, condition: str) -> None:
    for each in {"no-mask", condition}:
        run_answerer(tmp_path, of_four, each, {"s1": "No."})
    stored = runs(tmp_path)
    changed = replace(of_four, sha256="0" * 64)

    with pytest.raises(StaleAnswersError, match="the dataset has changed"):
        hold_answers(tmp_path, changed, stored[condition], stored["no-mask"])


def test_answers_of_other_settings_are_not_compared(tmp_path: Path, of_four: Dataset) -> None:
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No."}, max_tokens=10)
    run_answerer(tmp_path, of_four, "mask-all", {"s1": "No."}, max_tokens=20)
    stored = runs(tmp_path)

    with pytest.raises(StaleAnswersError, match="no-mask was asked with other settings"):
        hold_answers(tmp_path, of_four, stored["mask-all"], stored["no-mask"])


def test_a_run_that_asked_something_else(tmp_path: Path, of_four: Dataset) -> None:
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No."})
    run_answerer(tmp_path, of_four, "mask-all", {})
    stored = runs(tmp_path)

    with pytest.raises(StaleAnswersError, match="no stored answer is to what would be asked today"):
        hold_answers(tmp_path, of_four, stored["mask-all"], stored["no-mask"])


def test_a_system_whose_runs_are_gone(tmp_path: Path, of_four: Dataset) -> None:
    run_masker(tmp_path, of_four, {"s1": ("Subject1{}", "### Answer: []")})
    run_answerer(tmp_path, of_four, "no-mask", {"s1": "No."})
    run_answerer(tmp_path, of_four, SYSTEM, {"s1": "No."})
    (tmp_path / "runs").rename(tmp_path / "gone")
    stored = runs(tmp_path)

    with pytest.raises(InputFileError, match="no manifest of a run"):
        hold_answers(tmp_path, of_four, stored[SYSTEM], stored["no-mask"])


def test_a_pair_needs_both_answers() -> None:
    masked = {"s1": Completion("A"), "s2": Completion(""), "s3": Completion("C"), "s4": None}
    unmasked = {"s1": Completion("1"), "s2": Completion("2"), "s3": None, "s4": Completion("4")}

    assert answer_pairs(masked, unmasked) == {"s1": AnswerPair(masked="A", unmasked="1")}
