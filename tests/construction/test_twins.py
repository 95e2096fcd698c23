from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.twins import twins
from pii_bench.datasets.check import sample_problems
from tests.construction.small_sets import SmallSets, build

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample

COUNT = 2


@pytest.fixture(scope="module")
def sets() -> SmallSets:
    # One pair in six can be turned.
    return build("test", "twins", 40)


@pytest.fixture(scope="module")
def made(sets: SmallSets) -> list[tuple[Sample, Sample]]:
    """Each twin with its original."""
    originals = {each.sample.id: each.sample for each in sets.all}
    return [
        (twin, originals[twin.meta["twin_of"]])
        for part in (sets.singles, sets.pairs)
        for twin in twins(sets.builder, part, COUNT)
    ]


def of_kind(made: list[tuple[Sample, Sample]], kind: str) -> list[tuple[Sample, Sample]]:
    return [pair for pair in made if pair[0].meta["twin"] == kind]


def needed(sample: Sample) -> set[tuple[str, str]]:
    return {(related.subject, related.text) for related in sample.related}


def categories(sample: Sample) -> list[str | None]:
    found = {(s.id, e.text): e.category for s in sample.subjects for e in s.entities}
    return [found[related.subject, related.text] for related in sample.related]


def test_descriptions_of_one_have_two_twins_of_two_three(made: list[tuple[Sample, Sample]]) -> None:
    assert [twin.meta["twin"] for twin, _ in made] == [
        *["second", "paraphrase"] * COUNT,
        *["second", "paraphrase", "turned"] * COUNT,
    ]


def test_a_twin_has_the_description_of_its_original(made: list[tuple[Sample, Sample]]) -> None:
    for twin, original in made:
        assert twin.id == f"{original.id}-{twin.meta['twin']}"
        assert (twin.description, twin.subjects) == (original.description, original.subjects)


def test_every_twin_asks_in_other_words(made: list[tuple[Sample, Sample]]) -> None:
    for twin, original in made:
        assert twin.query != original.query


def test_a_second_query_needs_nothing_of_the_first(made: list[tuple[Sample, Sample]]) -> None:
    for twin, original in of_kind(made, "second"):
        assert twin.related
        assert not needed(twin) & needed(original)


def test_a_paraphrase_needs_the_same(made: list[tuple[Sample, Sample]]) -> None:
    for twin, original in of_kind(made, "paraphrase"):
        assert needed(twin) == needed(original)
        assert twin.meta["scenario"] == original.meta["scenario"]


def test_a_turned_query_needs_the_same_of_the_other_person(
    made: list[tuple[Sample, Sample]],
) -> None:
    for twin, original in of_kind(made, "turned"):
        one, other = ({r.subject for r in sample.related} for sample in (original, twin))
        assert one | other == {"A", "B"}
        assert not one & other
        assert categories(twin) == categories(original)
        assert not {text for _, text in needed(twin)} & {text for _, text in needed(original)}


def test_twins_are_without_problems(made: list[tuple[Sample, Sample]]) -> None:
    assert not [problem for twin, _ in made for problem in sample_problems(twin)]


def test_too_few_descriptions_are_an_error(sets: SmallSets) -> None:
    with pytest.raises(RuntimeError, match=r"of 41 descriptions can have twins"):
        list(twins(sets.builder, sets.singles, 41))
