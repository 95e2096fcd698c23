from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction import sets
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check import CANARY
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALL = 24
WRITTEN = {name: load_dataset(name).samples[:SMALL] for name in ("single", "multi", "twins")}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of 24, with eight entities a person, one of each type and two demographics."""
    sizes = {"SINGLE": SMALL, "MULTI": SMALL, "HARD_PER_SOURCE": 6, "DISTRACT": 2}
    for name, size in {**sizes, "TRAIN": 6, "DEV": 3}.items():
        monkeypatch.setattr(sets, name, size)
    for name, people in (("_SINGLE_TYPES", SMALL), ("_MULTI_TYPES", 2 * SMALL)):
        counts = {**dict.fromkeys(PiiType, people), PiiType.DEM: 2 * people}
        monkeypatch.setattr(sets, name, MappingProxyType(counts))


@pytest.mark.usefixtures("_small")
def test_the_test_sets_and_what_links_them() -> None:
    calls: list[None] = []
    built = sets.build_test_sets("a seed", lambda: calls.append(None), WRITTEN).sets
    assert all(built[name][1:] == WRITTEN[name][1:] for name in WRITTEN)
    assert {name: len(samples) for name, samples in built.items()} == {
        "single": SMALL,
        "multi": SMALL,
        "hard": 12,
        "distract": 2,
        "twins": SMALL,
    }
    ids = {sample.id for name in ("single", "multi") for sample in built[name]}
    assert {sample.meta["hard_of"] for sample in built["hard"]} <= ids
    made_of = {name for sample in built["distract"] for name in sample.meta["joined"]}
    assert all(name.startswith("grammar-") for name in made_of)
    assert len(calls) == 2 * SMALL + 2


@pytest.mark.usefixtures("_small")
def test_the_canary_is_in_the_first_sample_of_each_test_set() -> None:
    for samples in sets.build_test_sets("a seed", lambda: None, WRITTEN).sets.values():
        assert [sample.meta.get("canary") for sample in samples] == [
            CANARY,
            *[None] * (len(samples) - 1),
        ]


@pytest.mark.usefixtures("_small")
def test_train_and_dev_are_of_one_person_and_of_two() -> None:
    built = sets.build_train_sets("a seed", lambda: None).sets
    assert {name: len(samples) for name, samples in built.items()} == {
        "train-single": 6,
        "train-multi": 6,
        "dev-single": 3,
        "dev-multi": 3,
    }
    assert all(
        sample.id.startswith(f"{name}-") for name, samples in built.items() for sample in samples
    )


@pytest.mark.parametrize(
    ("counts", "total", "people"),
    [
        # PER, CODE, LOC, ORG, DEM, DATETIME, QUANTITY of paper_type_distribution.csv.
        (sets._SINGLE_TYPES, 9303, 1214),
        (sets._MULTI_TYPES, 16136, 2 * 1228),
    ],
)
def test_counts_are_the_paper_s(counts: Mapping[PiiType, int], total: int, people: int) -> None:
    assert Counter(counts).total() == total
    assert counts[PiiType.PER] == people


def test_a_full_set_has_the_paper_s_counts_and_others_their_share() -> None:
    assert sets.plan_of("single", "test", 1, sets.SINGLE).types == sets._SINGLE_TYPES
    half = sets.plan_of("dev", "train", 2, sets.MULTI // 2).types
    assert half == {pii_type: count // 2 for pii_type, count in sets._MULTI_TYPES.items()}


def test_sizes_are_the_paper_s() -> None:
    assert (sets.SINGLE, sets.MULTI) == (1214, 1228)
    assert (2 * sets.HARD_PER_SOURCE, sets.DISTRACT) == (200, 200)
    assert (sets.TRAIN, sets.DEV) == (2000, 250)
