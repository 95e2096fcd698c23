from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.analysis.utility.chats import AnswerPair, judge_questions
from pii_bench.analysis.utility.stored import (
    ConditionAnswers,
    condition_of,
    load_answers,
    mask_by_gold,
    read_answerers,
    read_judges,
    read_maskings,
    run_name,
    split_name,
)
from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.models.base import CallError, Completion, Draws, Finish
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY
from tests.analysis.utility.runs import (
    ANSWERER,
    JUDGE,
    MASKER,
    run_answerer,
    run_judge,
    run_masker,
)
from tests.builders import make_sample, sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = condition_of(MASKER[0], MASKER[2])
AGE = ('Subject1{"32": "DEM"}', "### Answer: []")
"""Outputs of a system that finds only the age, and no related entity."""


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Three equal samples about Ann Lee, 32, and one without a query."""
    records = [sample_record(f"s{number}") for number in (1, 2, 3)]
    records.append(sample_record("without-query", query=None, related=[]))
    return load_dataset(str(write_lines(tmp_path / "set.jsonl", records)))


@pytest.mark.parametrize(
    ("condition", "texts"),
    [
        ("no-mask", ["Ann Lee is 32.", "Bo and Ann Lee are 32."]),
        ("mask-all", ["<Full Name> is <Age>.", "Bo and <Full Name> are 32."]),
        ("mask-query-unrelated", ["<Full Name> is 32.", "Bo and <Full Name> are 32."]),
    ],
)
def test_masking_by_gold(condition: str, texts: list[str]) -> None:
    entity = {"text": "Ann Lee", "type": "PER", "spans": [[7, 14]]}
    bo = make_sample(
        "s2",
        description="Bo and Ann Lee are 32.",
        subjects=[{"id": "A", "entities": [entity]}],
        related=[],
    )

    masked = mask_by_gold(condition, [make_sample("s1"), bo])

    assert [masked["s1"].text, masked["s2"].text] == texts


def test_masking_by_gold_rejects_other_conditions() -> None:
    with pytest.raises(PiiBenchError, match="unknown condition 'mask-some'"):
        mask_by_gold("mask-some", [])


@pytest.mark.parametrize(
    ("strategy", "related", "oracle", "masked"),
    [
        ("naive", "### Answer: []", False, {"s1": "Ann Lee is <Age>."}),
        # A failed query-related answer; an oracle in one of the two runs.
        ("naive", "no list", False, {}),
        ("naive-choice", "### Answer: []", True, {"s1": "Ann Lee is <Age>."}),
    ],
)
def test_a_masker_is_read_from_its_runs(
    tmp_path: Path,
    dataset: Dataset,
    strategy: str,
    related: str,
    oracle: bool,
    masked: dict[str, str],
) -> None:
    run_masker(tmp_path, dataset, {"s1": (AGE[0], related)}, strategy)

    runs = (MASKER[0], "detection", strategy)
    told_gold, maskings = read_maskings(tmp_path, dataset, SYSTEM, runs, dataset.samples)

    assert told_gold is oracle
    assert {sample_id: each.text for sample_id, each in maskings.items()} == masked


def test_an_absent_or_outdated_run_of_a_masker_is_an_error(
    tmp_path: Path, dataset: Dataset
) -> None:
    with pytest.raises(InputFileError, match=r"fake--masker/detection/set-\w+\.run\.json"):
        read_maskings(tmp_path, dataset, SYSTEM, MASKER, dataset.samples)

    run_masker(tmp_path, dataset, {"s1": AGE})
    (path,) = tmp_path.glob("runs/fake--masker/naive/*.run.json")
    manifest = json.loads(path.read_text())
    manifest["dataset"]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputFileError, match="has changed since"):
        read_maskings(tmp_path, dataset, SYSTEM, MASKER, dataset.samples)


@pytest.mark.parametrize("condition", ["mask-all", "openai/gpt-4o@host:80+naive+schema"])
def test_run_names_contain_dataset_and_condition(condition: str) -> None:
    assert split_name(run_name("demo", condition)) == ("demo", condition)


def test_stored_verdicts_match_by_their_answers(tmp_path: Path, dataset: Dataset) -> None:
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


def test_unreadable_manifests_and_lines_are_reported(tmp_path: Path, dataset: Dataset) -> None:
    for condition in ("mask-all", "no-mask"):
        run_answerer(tmp_path, dataset, condition, {"s1": "east"})
    manifest, other = sorted(tmp_path.rglob("*.run.json"))
    manifest.write_text("{}")
    lines = other.with_name(other.name.replace(".run.json", ".jsonl"))
    lines.write_text("{}\n")
    left_out: list[str] = []

    read_answerers(tmp_path, left_out)

    assert left_out == [
        f"{manifest}: no manifest of a run: record: 'system' is missing; {MANIFEST_REMEDY}",
        f"{lines}:1: record: 'id' is missing; {LINE_REMEDY}",
    ]


def load(results: Path, dataset: Dataset, condition: str) -> ConditionAnswers:
    """Load the answers under a condition with those to no-mask."""
    runs = {run.condition: run for run in read_answerers(results, [])}
    return load_answers(results, dataset, runs[condition], runs["no-mask"])


def test_answers_are_paired_for_samples_that_have_both(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No.", "s2": CallError("timeout")})
    run_answerer(tmp_path, dataset, "mask-all", {"s1": "It depends.", "s2": "Who knows?"})

    answers = load(tmp_path, dataset, "mask-all")

    assert (answers.run.condition, answers.oracle) == ("mask-all", True)
    assert [sample.id for sample in answers.samples] == ["s1", "s2", "s3"]
    assert [sample.id for sample in answers.asked] == ["s1", "s2"]
    assert answers.maskings["s1"].text == "<Full Name> is <Age>."
    assert answers.pairs == {"s1": AnswerPair(masked="It depends.", unmasked="No.")}


def test_answers_to_outdated_maskings_are_ignored(tmp_path: Path, dataset: Dataset) -> None:
    run_masker(tmp_path, dataset, {"s1": AGE, "s2": AGE})
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No.", "s2": "No."})
    run_answerer(tmp_path, dataset, SYSTEM, {"s1": "It depends.", "s2": "It depends."})
    (tmp_path / "runs").rename(tmp_path / "before")
    run_masker(tmp_path, dataset, {"s1": AGE, "s2": ("Subject1{}", "### Answer: []")})

    answers = load(tmp_path, dataset, SYSTEM)

    assert answers.maskings["s2"].text == "Ann Lee is 32."
    assert answers.pairs.keys() == {"s1"}


@pytest.mark.parametrize(
    ("answers", "max_tokens", "changes", "reason"),
    [
        ({"s1": "No."}, 20, {}, "no-mask was asked with other settings"),
        ({"s1": "No."}, 10, {"sha256": "0" * 64}, "the dataset has changed"),
        ({}, 10, {}, "no stored answer matches the current requests"),
    ],
)
def test_answers_that_cannot_be_compared(
    tmp_path: Path,
    dataset: Dataset,
    answers: dict[str, str],
    max_tokens: int,
    changes: dict[str, Any],
    reason: str,
) -> None:
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "No."}, max_tokens=10)
    run_answerer(tmp_path, dataset, "mask-all", answers, max_tokens=max_tokens)

    with pytest.raises(PiiBenchError, match=reason):
        load(tmp_path, replace(dataset, **changes), "mask-all")
