from __future__ import annotations

from dataclasses import replace

import pytest

from pii_bench.construction.recorded import SIZES, Recorded, build_sets, hard_set
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.sets import CANARY
from pii_bench.datasets.readings import FINISHED, READINGS, load_readings, version_of
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import PiiBenchError

TEST_SETS = ("single", "multi", "hard", "distract", "twins", "frontier")


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded.load()


@pytest.fixture(scope="module")
def built(recorded: Recorded) -> dict[str, tuple[Sample, ...]]:
    return build_sets(recorded)


@pytest.mark.parametrize("name", [*SIZES, "hard"])
def test_the_built_sets_are_the_shipped_ones(
    name: str, built: dict[str, tuple[Sample, ...]]
) -> None:
    assert built[name] == load_dataset(name).samples


@pytest.mark.parametrize("name", SIZES)
def test_every_reading_is_of_a_recorded_version(name: str, recorded: Recorded) -> None:
    versions = {(sample.id, version_of(sample)) for sample in recorded.versions(name)}
    readings = [*load_readings(name, READINGS), *load_readings(name, FINISHED)]

    assert {(reading.id, reading.version) for reading in readings} <= versions


def test_only_the_first_sample_of_each_test_set_contains_the_canary(
    built: dict[str, tuple[Sample, ...]],
) -> None:
    for name, samples in built.items():
        first = CANARY if name in TEST_SETS else None
        assert [s.meta.get("canary") for s in samples] == [first, *[None] * (len(samples) - 1)]


def test_an_incomplete_set_is_refused(recorded: Recorded) -> None:
    one = dict(list(recorded.sets["distract"].items())[:1])
    short = Recorded(recorded.folder, {**recorded.sets, "distract": one})
    with pytest.raises(PiiBenchError, match=r"^distract: 1 texts are recorded in .*, not 200$"):
        build_sets(short)


def sample(sample_id: str, chars: int, entities: int, related: int) -> Sample:
    own = tuple(Entity(str(n), "DEM") for n in range(entities))
    return Sample(
        sample_id,
        "x" * chars,
        "?",
        (Subject("A", own),),
        tuple(Related("A", str(n)) for n in range(related)),
        {"register": "letter"},
    )


LONG = sample("long", chars=900, entities=9, related=1)  # one entity in 100 characters
LONGER = sample("longer", chars=1000, entities=5, related=1)
DENSE = sample("dense", chars=100, entities=8, related=1)
NEEDY = sample("needy", chars=500, entities=6, related=3)
NEEDIER = sample("needier", chars=500, entities=7, related=3)
PLAIN = sample("plain", chars=400, entities=4, related=1)
SOURCE = [LONG, LONGER, DENSE, NEEDY, NEEDIER, PLAIN]


def test_each_criterion_chooses_in_turn() -> None:
    chosen = hard_set([SOURCE], 4)
    assert [(hard.meta["hard_of"], hard.meta["criterion"]) for hard in chosen] == [
        ("longer", "longest description"),
        ("dense", "highest density"),
        # As many are needed in "needy", which has fewer to choose from.
        ("needier", "most query-related"),
        ("long", "longest description"),
    ]


def test_a_sample_is_chosen_only_once_and_sources_give_equally_many() -> None:
    # First by every criterion, chosen by one.
    best = sample("best", chars=2000, entities=2000, related=3)
    assert len({hard.meta["hard_of"] for hard in hard_set([[best, *SOURCE]], 7)}) == 7

    chosen = hard_set([SOURCE, SOURCE[:3]], 3)
    assert [hard.id for hard in chosen] == [f"hard-{n:04d}" for n in range(1, 7)]
    assert {hard.meta["hard_of"] for hard in chosen[3:]} == {"long", "longer", "dense"}


def test_only_id_and_meta_differ_from_the_source() -> None:
    meta = {"register": "letter", "hard_of": "plain", "criterion": "longest description"}

    assert hard_set([[PLAIN]], 1) == (replace(PLAIN, id="hard-0001", meta=meta),)
