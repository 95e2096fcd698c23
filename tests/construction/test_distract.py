from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.distract import TEMPLATES, distract_set
from pii_bench.datasets.check import sample_problems
from tests.construction.small_sets import SmallSets, build

if TYPE_CHECKING:
    from pii_bench.construction.build import Built
    from pii_bench.datasets.sample import Sample

COUNT = 6


@pytest.fixture(scope="module")
def sets() -> SmallSets:
    return build("test", "distract")


@pytest.fixture(scope="module")
def conversations(sets: SmallSets) -> list[Sample]:
    return list(distract_set(sets.builder, sets.singles, sets.pairs, COUNT))


def joined(sample: Sample, sets: SmallSets) -> list[Built]:
    by_id = {each.sample.id: each for each in sets.all}
    return [by_id[name] for name in sample.meta["joined"]]


def owners(sample: Sample, sets: SmallSets) -> dict[str, str]:
    """Subject to the id of the text it comes from: A, B, … in the order of the texts."""
    texts = [each.sample.id for each in joined(sample, sets) for _ in each.profiles]
    return {subject.id: text for subject, text in zip(sample.subjects, texts, strict=True)}


def test_five_different_descriptions_are_joined(
    conversations: list[Sample], sets: SmallSets
) -> None:
    assert [each.id for each in conversations] == [f"distract-{n:04d}" for n in range(1, COUNT + 1)]
    for sample in conversations:
        assert len(set(sample.meta["joined"])) == 5
        assert sum(len(each.profiles) for each in joined(sample, sets)) == len(sample.subjects)


def test_seven_and_a_half_subjects_on_average(conversations: list[Sample]) -> None:
    # Two pairs and three singles are seven; three pairs and two singles, eight.
    assert [len(sample.subjects) for sample in conversations] == [7, 8] * (COUNT // 2)


def test_each_text_is_told_in_order_by_one_speaker(
    conversations: list[Sample], sets: SmallSets
) -> None:
    for sample in conversations:
        lines = re.split(r"\n(?=\[PER_\d\]: )", sample.description)
        for number, each in enumerate(joined(sample, sets), start=1):
            label = f"[PER_{number}]"
            assert sample.meta["speakers"][label] == each.sample.id
            said = "\n".join(line for line in lines if line.startswith(f"{label}: "))
            place = 0
            # Paragraphs of the description are the turns of the conversation.
            for block in each.sample.description.split("\n\n"):
                place = said.index(block, place) + len(block)


def test_entities_are_those_of_the_five(conversations: list[Sample], sets: SmallSets) -> None:
    for sample in conversations:
        subjects = [s for each in joined(sample, sets) for s in each.sample.subjects]
        for told, original in zip(sample.subjects, subjects, strict=True):
            assert {(e.text, e.category) for e in told.entities} == {
                (e.text, e.category) for e in original.entities
            }


def test_what_is_needed_belongs_to_one_person_each_of_three_texts(
    conversations: list[Sample], sets: SmallSets
) -> None:
    for sample in conversations:
        owner = owners(sample, sets)
        asked = {related.subject for related in sample.related}
        assert len(asked) == 3
        assert len({owner[subject] for subject in asked}) == 3
        assert 3 <= len(sample.related) <= 9


def test_turns_are_interleaved(conversations: list[Sample]) -> None:
    for sample in conversations:
        speakers = re.findall(r"^\[PER_(\d)\]: ", sample.description, re.MULTILINE)
        assert set(speakers) == set("12345")
        # Told one after another, five texts would change speakers four times.
        changes = sum(one != other for one, other in pairwise(speakers))
        assert changes > 8


def test_the_query_recalls_three_people_by_what_was_said(
    conversations: list[Sample], sets: SmallSets
) -> None:
    references = {
        line.split(" || ")[1].lower()
        for register in sets.builder.writer.banks.registers.values()
        for line in register.frames("hook")
    }
    for sample in conversations:
        query = (sample.query or "").lower()
        assert sum(reference in query for reference in references) == 3
        for each in joined(sample, sets):
            for person in each.profiles.values():
                assert person.facts[0].value.lower() not in query


def test_conversations_are_without_problems(conversations: list[Sample]) -> None:
    assert not [problem for sample in conversations for problem in sample_problems(sample)]
    assert {sample.meta["template"] for sample in conversations} <= set(TEMPLATES)


def test_records_of_talk_take_no_part(conversations: list[Sample], sets: SmallSets) -> None:
    registers = {each.draft.register for s in conversations for each in joined(s, sets)}
    assert not registers & {"transcript", "chat"}
