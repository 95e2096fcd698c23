from __future__ import annotations

from random import Random

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.systems.encoder.conversations import conversation, conversations

DEMO = load_dataset("demo").samples


@pytest.mark.parametrize("seed", range(20))
def test_every_entity_is_where_its_spans_say(seed: int) -> None:
    talk = conversation(Random(seed).sample(DEMO, 3), Random(seed))

    for entity in talk.entities:
        assert entity.spans
        assert {talk.description[start:end] for start, end in entity.spans} == {entity.text}


@pytest.mark.parametrize("seed", range(20))
def test_it_needs_what_the_texts_need_that_are_asked_about(seed: int) -> None:
    samples = Random(seed).sample(DEMO, 3)
    talk = conversation(samples, Random(seed))

    asked = {int(need.subject[0]) for need in talk.related}
    assert all((samples[place].query or "") in (talk.query or "") for place in asked)
    assert {(need.subject[1:], need.text) for need in talk.related} == {
        (need.subject, need.text) for place in asked for need in samples[place].related
    }


def test_people_of_several_texts_stay_apart() -> None:
    talk = conversation(DEMO[:2], Random(1))

    assert [subject.id for subject in talk.subjects] == [
        f"{place}{subject.id}" for place in (0, 1) for subject in DEMO[place].subjects
    ]


def test_turns_keep_the_order_of_their_text() -> None:
    talk = conversation(DEMO[:3], Random(2))
    turns = talk.description.splitlines()

    for place, sample in enumerate(DEMO[:3], start=1):
        own = [turn.partition(": ")[2] for turn in turns if turn.startswith(f"[PER_{place}]: ")]
        places = [sample.description.find(turn.splitlines()[0]) for turn in own]
        assert own
        assert places == sorted(places)


def test_as_many_as_asked_for_the_same_each_time() -> None:
    first = conversations(DEMO, 5, Random(3))

    assert len(first) == 5
    assert conversations(DEMO, 5, Random(3)) == first
