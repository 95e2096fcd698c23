from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.check.spans import span_problems
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import ann, build, rules


def holding(description: str, *entities: Entity) -> Sample:
    return Sample("s1", description, None, (Subject("A", entities),), ())


def test_a_sound_sample_passes() -> None:
    assert rules(span_problems, ann()) == []


@pytest.mark.parametrize(
    ("span", "reason"),
    [
        ((7, 14), "[7, 14] does not hold 'Ann Lee'"),
        ((-14, -7), "[-14, -7] does not hold 'Ann Lee'"),
    ],
)
def test_a_span_holds_its_entity(span: tuple[int, int], reason: str) -> None:
    sample = holding("Ann Lee is 32.", Entity("Ann Lee", "PER", spans=((0, 7), span)))

    assert [(p.rule, p.reason) for p in span_problems(sample)] == [("span-exact", reason)]


def test_a_span_is_listed_once() -> None:
    sample = holding("Ann Lee is 32.", Entity("Ann Lee", "PER", spans=((0, 7), (0, 7))))

    assert rules(span_problems, sample) == ["span-exact"]


def test_every_occurrence_is_annotated() -> None:
    sample = holding("Ann Lee is Ann Lee.", Entity("Ann Lee", "PER", spans=((0, 7),)))

    (problem,) = span_problems(sample)
    assert problem.rule == "span-complete"
    assert problem.reason == "'Ann Lee' at [11, 18] is not annotated"


def test_an_occurrence_inside_a_longer_entity_is_annotated() -> None:
    hull = Entity("Hull", "LOC", spans=((22, 26),))
    university = Entity("University of Hull", "ORG", spans=((0, 18),))

    assert rules(span_problems, holding("University of Hull in Hull", university, hull)) == []
    assert rules(span_problems, holding("University of Hull in Hull", hull)) == ["span-complete"]


def test_an_occurrence_that_another_subject_has_is_annotated() -> None:
    first = Subject("A", (Entity("Hull", "LOC", spans=((0, 4),)),))
    second = Subject("B", (Entity("Hull", "LOC", spans=((9, 13),)),))

    assert rules(span_problems, Sample("s1", "Hull and Hull", None, (first, second), ())) == []


def test_an_entity_without_spans_stands_somewhere() -> None:
    assert rules(span_problems, holding("Ann is here.", Entity("Ann", "PER"))) == []
    assert rules(span_problems, holding("Anna is here.", Entity("Ann", "PER"))) == ["span-complete"]


def test_spans_overlap_only_where_one_holds_the_other() -> None:
    sample = build("At old Hull pier.", {"old Hull": "City/Region", "Hull pier": "Landmark"})

    (problem,) = span_problems(sample)
    assert (problem.rule, problem.reason) == (
        "span-overlap",
        "'old Hull' and 'Hull pier' overlap at 7",
    )


SPANS = st.tuples(st.integers(0, 8), st.integers(1, 5)).map(lambda each: (each[0], sum(each)))


@given(st.sets(SPANS, max_size=8))
def test_each_span_that_crosses_an_earlier_one_is_named(spans: set[tuple[int, int]]) -> None:
    crossing = {
        second for first in spans for second in spans if first[0] < second[0] < first[1] < second[1]
    }
    entities = [Entity("x" * (end - start), "PER", spans=((start, end),)) for start, end in spans]
    found = [
        problem.reason
        for problem in span_problems(holding("x" * 13, *entities))
        if problem.rule == "span-overlap"
    ]

    assert sorted(int(reason.rpartition(" ")[2]) for reason in found) == sorted(
        start for start, _ in crossing
    )


def test_a_subject_has_an_entity_once() -> None:
    sample = ann()
    (subject,) = sample.subjects
    twice = replace(subject, entities=(*subject.entities, subject.entities[1]))

    assert rules(span_problems, replace(sample, subjects=(twice,))) == ["entity-repeated"]
