from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.answers import StaleAnswersError, answer_pairs, hold_answers
from pii_bench.analysis.utility.chats import AnswerPair
from pii_bench.analysis.utility.stored import StoredChat, read_answerers, split_name
from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.errors import InputFileError
from pii_bench.models.base import CallError, Completion
from tests.analysis.utility.runs import run_answerer, run_masker
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "fake/masker+naive"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    records = [sample_record(f"s{number}") for number in (1, 2, 3)]
    records.append(sample_record("without-query", query=None, related=[]))
    return load_dataset(str(write_lines(tmp_path / "set.jsonl", records)))


def runs(results: Path) -> dict[str, StoredChat]:
    stored = read_answerers(results, [])
    return {split_name(run.manifest.dataset.name)[1]: run for run in stored}


def test_who_was_asked_and_who_answered(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No.", "s2": CallError("timeout")})
    run_answerer(tmp_path, dataset, "mask-all", {"s1": "It depends.", "s2": "Who knows?"})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, dataset, stored["mask-all"], stored["no-mask"])

    assert held.condition == "mask-all"
    assert held.oracle
    assert [sample.id for sample in held.samples] == ["s1", "s2", "s3"]
    assert [sample.id for sample in held.asked] == ["s1", "s2"]
    assert held.maskings["s1"].text == "<Full Name> is <Age>."
    assert held.pairs == {"s1": AnswerPair(masked="It depends.", unmasked="No.")}


def test_the_run_without_a_mask_is_beside_itself(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No."})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, dataset, stored["no-mask"], stored["no-mask"])

    assert not held.oracle
    assert held.pairs == {"s1": AnswerPair(masked="No.", unmasked="No.")}


def test_a_system_masks_those_that_it_answered(tmp_path: Path, dataset: Dataset) -> None:
    said = {
        "s1": ('Subject1{"32": "DEM"}', "### Answer: []"),
        "s2": ("", "### Answer: []"),
    }
    run_masker(tmp_path, dataset, said)
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No.", "s2": "No."})
    run_answerer(tmp_path, dataset, SYSTEM, {"s1": "It depends."})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, dataset, stored[SYSTEM], stored["no-mask"])

    assert not held.oracle
    assert [sample.id for sample in held.asked] == ["s1", "s2"]
    assert {name: masked.text for name, masked in held.maskings.items()} == {
        "s1": "Ann Lee is <Age>."
    }
    assert held.pairs == {"s1": AnswerPair(masked="It depends.", unmasked="No.")}


def test_an_answer_to_what_was_masked_before_does_not_count(
    tmp_path: Path, dataset: Dataset
) -> None:
    before = dict.fromkeys(("s1", "s2"), ('Subject1{"32": "DEM"}', "### Answer: []"))
    run_masker(tmp_path, dataset, before)
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No.", "s2": "No."})
    run_answerer(tmp_path, dataset, SYSTEM, {"s1": "It depends.", "s2": "It depends."})
    (tmp_path / "runs").rename(tmp_path / "before")
    run_masker(tmp_path, dataset, {**before, "s2": ("Subject1{}", "### Answer: []")})
    stored = runs(tmp_path)

    held = hold_answers(tmp_path, dataset, stored[SYSTEM], stored["no-mask"])

    assert held.maskings["s2"].text == "Ann Lee is 32."
    assert held.pairs.keys() == {"s1"}


@pytest.mark.parametrize("condition", ["no-mask", "mask-all"])
def test_a_dataset_that_has_changed(tmp_path: Path, dataset: Dataset, condition: str) -> None:
    for each in {"no-mask", condition}:
        run_answerer(tmp_path, dataset, each, {"s1": "No."})
    stored = runs(tmp_path)
    changed = replace(dataset, sha256="0" * 64)

    with pytest.raises(StaleAnswersError, match="the dataset has changed"):
        hold_answers(tmp_path, changed, stored[condition], stored["no-mask"])


def test_answers_of_other_settings_are_not_compared(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No."}, max_tokens=10)
    run_answerer(tmp_path, dataset, "mask-all", {"s1": "No."}, max_tokens=20)
    stored = runs(tmp_path)

    with pytest.raises(StaleAnswersError, match="no-mask was asked with other settings"):
        hold_answers(tmp_path, dataset, stored["mask-all"], stored["no-mask"])


def test_a_run_that_asked_something_else(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No."})
    run_answerer(tmp_path, dataset, "mask-all", {})
    stored = runs(tmp_path)

    with pytest.raises(StaleAnswersError, match="no stored answer is to what would be asked today"):
        hold_answers(tmp_path, dataset, stored["mask-all"], stored["no-mask"])


def test_a_system_whose_runs_are_gone(tmp_path: Path, dataset: Dataset) -> None:
    run_masker(tmp_path, dataset, {"s1": ("Subject1{}", "### Answer: []")})
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No."})
    run_answerer(tmp_path, dataset, SYSTEM, {"s1": "No."})
    (tmp_path / "runs").rename(tmp_path / "gone")
    stored = runs(tmp_path)

    with pytest.raises(InputFileError, match="no manifest of a run"):
        hold_answers(tmp_path, dataset, stored[SYSTEM], stored["no-mask"])


def test_a_pair_needs_both_answers() -> None:
    masked = {"s1": Completion("A"), "s2": Completion(""), "s3": Completion("C"), "s4": None}
    unmasked = {"s1": Completion("1"), "s2": Completion("2"), "s3": None, "s4": Completion("4")}

    assert answer_pairs(masked, unmasked) == {"s1": AnswerPair(masked="A", unmasked="1")}
