from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.conditions import (
    GOLD_CONDITIONS,
    Masker,
    condition_of,
    mask_by_gold,
    mask_by_system,
    read_masker,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status
from tests.analysis.utility.runs import run_masker
from tests.builders import make_sample, sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

ANN = make_sample("s1")
BO = make_sample(
    "s2",
    description="Bo and Ann Lee are 32.",
    subjects=[{"id": "A", "entities": [{"text": "Ann Lee", "type": "PER", "spans": [[7, 14]]}]}],
    related=[],
)


@pytest.mark.parametrize(
    ("condition", "texts"),
    [
        ("no-mask", ["Ann Lee is 32.", "Bo and Ann Lee are 32."]),
        ("mask-all", ["<Full Name> is <Age>.", "Bo and <Full Name> are 32."]),
        ("mask-query-unrelated", ["<Full Name> is 32.", "Bo and <Full Name> are 32."]),
    ],
)
def test_what_gold_masks(condition: str, texts: list[str]) -> None:
    masked = mask_by_gold(condition, [ANN, BO])

    assert [masked["s1"].text, masked["s2"].text] == texts
    assert condition in GOLD_CONDITIONS


def test_gold_knows_its_conditions_alone() -> None:
    with pytest.raises(ValueError, match="mask-some is not told by gold"):
        mask_by_gold("mask-some", [])


def test_a_system_masks_what_it_finds_and_does_not_need() -> None:
    said = Prediction(Status.OK, ((("Ann", "PER"), ("32", "DEM")),), ("Ann",))

    masked = mask_by_system(Masker(oracle=False, predictions={"s1": said}), [ANN])

    assert masked["s1"].text == "Ann Lee is <Age>."


@pytest.mark.parametrize(
    "predictions",
    [
        {},
        {"s1": Prediction(Status.MALFORMED)},
        {"s1": Prediction(Status.INFRA_ERROR)},
    ],
)
def test_a_system_that_failed_has_no_masking(predictions: dict[str, Prediction]) -> None:
    assert mask_by_system(Masker(oracle=False, predictions=predictions), [ANN]) == {}


def test_stored_runs_of_a_system_are_read_back(tmp_path: Path) -> None:
    dataset = load_dataset(str(write_lines(tmp_path / "set.jsonl", [sample_record()])))
    run_masker(tmp_path, dataset, {"s1": ('Subject1{"32": "DEM"}', "### Answer: []")})

    masker = read_masker(tmp_path, "fake/masker", ("detection", "naive"), dataset)

    assert not masker.oracle
    assert mask_by_system(masker, dataset.samples)["s1"].text == "Ann Lee is <Age>."


def test_a_part_that_failed_fails_the_masking(tmp_path: Path) -> None:
    dataset = load_dataset(str(write_lines(tmp_path / "set.jsonl", [sample_record()])))
    run_masker(tmp_path, dataset, {"s1": ('Subject1{"32": "DEM"}', "no list")})

    masker = read_masker(tmp_path, "fake/masker", ("detection", "naive"), dataset)

    assert mask_by_system(masker, dataset.samples) == {}


def test_an_oracle_in_either_part_is_one(tmp_path: Path) -> None:
    dataset = load_dataset(str(write_lines(tmp_path / "set.jsonl", [sample_record()])))
    run_masker(tmp_path, dataset, {"s1": ("Subject1{}", "### Answer: []")}, "naive-choice")

    prompts = ("detection", "naive-choice")
    assert read_masker(tmp_path, "fake/masker", prompts, dataset).oracle


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    dataset = load_dataset("demo")

    with pytest.raises(InputFileError, match=r"fake--masker/detection/demo\.run\.json"):
        read_masker(tmp_path, "fake/masker", ("detection", "naive"), dataset)


def test_a_run_on_what_the_dataset_was_before(tmp_path: Path) -> None:
    dataset = load_dataset(str(write_lines(tmp_path / "set.jsonl", [sample_record()])))
    run_masker(tmp_path, dataset, {"s1": ("Subject1{}", "### Answer: []")})
    folder = tmp_path / "runs" / "fake--masker" / "naive"
    path = folder / f"{dataset.name}.run.json"
    manifest = json.loads(path.read_text())
    manifest["dataset"]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))

    with pytest.raises(InputFileError, match="has changed since"):
        read_masker(tmp_path, "fake/masker", ("detection", "naive"), dataset)


def test_how_the_condition_of_a_system_is_called() -> None:
    assert condition_of("bilstm-crf", "embedding") == "bilstm-crf+embedding"
