from __future__ import annotations

from random import Random

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.systems.encoder.excerpts import excerpt, excerpts

DEMO = load_dataset("demo").samples

TEXT = "Ann lives in Bonn. Bo is 32."
SAMPLE = Sample(
    id="s",
    description=TEXT,
    query="How old is he?",
    subjects=(
        Subject(
            "A", (Entity("Ann", "PER", spans=((0, 3),)), Entity("Bonn", "LOC", spans=((13, 17),)))
        ),
        Subject(
            "B", (Entity("Bo", "PER", spans=((19, 21),)), Entity("32", "DEM", spans=((25, 27),)))
        ),
    ),
    related=(Related("B", "32"),),
)


def drawn() -> dict[str, Sample]:
    """What can be drawn of two sentences: each alone, and both."""
    found = [excerpt(SAMPLE, Random(seed)) for seed in range(50)]
    return {sample.description: sample for sample in found}


def test_an_excerpt_is_a_sentence_or_more() -> None:
    assert drawn().keys() == {"Ann lives in Bonn.", "Bo is 32.", TEXT}


def test_it_has_the_entities_that_stand_in_it() -> None:
    second = drawn()["Bo is 32."]

    assert [entity.text for entity in second.entities] == ["Bo", "32"]
    assert [entity.spans for entity in second.entities] == [((0, 2),), ((6, 8),)]


def test_it_is_asked_about_only_where_what_is_needed_stands_in_it() -> None:
    found = drawn()

    assert (found["Bo is 32."].query, found["Bo is 32."].related) == (SAMPLE.query, SAMPLE.related)
    assert (found["Ann lives in Bonn."].query, found["Ann lives in Bonn."].related) == (None, ())


@pytest.mark.parametrize("seed", range(20))
def test_every_entity_is_where_its_spans_say(seed: int) -> None:
    for sample in excerpts(DEMO, 5, Random(seed)):
        for entity in sample.entities:
            assert {sample.description[start:end] for start, end in entity.spans} == {entity.text}


def test_more_than_there_are_texts_draw_each_text_once_before_one_twice() -> None:
    found = excerpts(DEMO, len(DEMO) + 1, Random(3))

    assert [sample.id for sample in found[:-1]] == [sample.id for sample in DEMO]
    assert excerpts(DEMO, len(DEMO) + 1, Random(3)) == found
