from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.recorded import Recorded
from pii_bench.construction.sets import HARD_PER_SOURCE, TEXTS, build_sets
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.sets import CANARY
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample

TEST_SETS = ("single", "multi", "hard", "distract", "twins", "frontier")


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded.load()


@pytest.fixture(scope="module")
def built(recorded: Recorded) -> dict[str, tuple[Sample, ...]]:
    return build_sets(recorded)


@pytest.mark.parametrize("name", [*TEXTS, "hard"])
def test_the_sets_are_those_that_ship(name: str, built: dict[str, tuple[Sample, ...]]) -> None:
    assert built[name] == load_dataset(name).samples


def test_the_canary_is_in_the_first_sample_of_each_test_set(
    built: dict[str, tuple[Sample, ...]],
) -> None:
    for name, samples in built.items():
        first = CANARY if name in TEST_SETS else None
        assert [s.meta.get("canary") for s in samples] == [first, *[None] * (len(samples) - 1)]


def test_a_set_that_lacks_texts_is_not_built(recorded: Recorded) -> None:
    one = dict(list(recorded.sets["distract"].items())[:1])
    short = Recorded(recorded.folder, {**recorded.sets, "distract": one})
    with pytest.raises(PiiBenchError, match=r"^distract: 1 texts are recorded in .*, not 200$"):
        build_sets(short)


def test_sizes_are_the_paper_s() -> None:
    assert (TEXTS["single"], TEXTS["multi"], TEXTS["distract"]) == (1214, 1228, 200)
    assert 2 * HARD_PER_SOURCE == 200


def test_train_and_dev_have_two_queries_for_each_text(
    built: dict[str, tuple[Sample, ...]],
) -> None:
    for part, texts in (("train", 390), ("dev", 60)):
        for kind in ("single", "multi"):
            samples = built[f"{part}-{kind}"]
            assert len(samples) == 2 * texts
            assert len({sample.description for sample in samples}) == texts
