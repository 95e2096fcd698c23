from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import PiiBenchError
from pii_bench.web.marks import (
    Choice,
    Item,
    Mark,
    items_of_marks,
    items_of_sample,
    marks_of_subjects,
    parse_choice,
    parse_marks,
    snap,
)

TEXT = "Ann met Bo in Bonn. Bo is 32."
#       0123456789012345678901234567


@pytest.mark.parametrize(
    ("start", "end", "held"),
    [
        (0, 3, "Ann"),
        (1, 2, "Ann"),
        (9, 15, "Bo in Bonn"),
        (3, 4, None),  # A space alone.
        (3, 8, "met"),
        (25, 29, "32."),
        (28, 29, "."),
        (5, 5, "met"),  # A click inside a word.
    ],
)
def test_a_selection_snaps_to_the_tokens_that_it_touches(
    start: int, end: int, held: str | None
) -> None:
    span = snap(TEXT, start, end)

    assert (None if span is None else TEXT[slice(*span)]) == held


@given(st.text(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_snapping_twice_changes_nothing(text: str, start: int, end: int) -> None:
    span = snap(text, start, end)

    assert span is None or snap(text, *span) == span


def mark(start: int, end: int, *, persons: Any = ("A",), type: Any = "PER", **more: Any) -> Any:  # noqa: A002
    return {"start": start, "end": end, "persons": list(persons), "type": type, **more}


def test_marks_are_sorted_by_position() -> None:
    answer = {
        "marks": [
            mark(20, 22, persons="BA", category="Full Name", origin="encoder"),
            mark(0, 3),
        ]
    }

    marks = parse_marks(TEXT, answer)

    assert marks == (
        Mark(0, 3, ("A",), "PER"),
        Mark(20, 22, ("A", "B"), "PER", "Full Name", "encoder"),
    )
    assert parse_marks(TEXT, {"marks": [asdict(each) for each in marks]}) == marks


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "list of at most"),
        ({"marks": [mark(0, 3)] * 5001}, "list of at most 5000"),
        ({"marks": ["x"]}, "must be an object"),
        ({"marks": [mark(0, 99)]}, "inside of 0 to 29"),
        ({"marks": [mark(3, 0)]}, "inside of 0 to 29"),
        ({"marks": [mark(0, 2)]}, "whole tokens"),
        ({"marks": [mark(0, 3), mark(0, 7)]}, "overlap"),
        ({"marks": [mark(0, 3, type="NAME")]}, "must be one of PER, CODE"),
        ({"marks": [mark(0, 3, category="Age")]}, "category of a mark must be one of PER"),
        ({"marks": [mark(0, 3, persons=())]}, "at least one"),
        ({"marks": [mark(0, 3, persons=["<b>"])]}, "A to Z"),
        ({"marks": [mark(0, 3, persons=[["A"]])]}, "A to Z"),
        ({"marks": [mark(0, 3, category=7)]}, "must be a name"),
        ({"marks": [mark(0, 3, origin=3)]}, "origin"),
    ],
)
def test_invalid_marks_are_refused(answer: Any, reason: str) -> None:
    with pytest.raises(PiiBenchError, match=reason):
        parse_marks(TEXT, answer)


def test_marks_with_the_same_text_and_person_become_one_entity() -> None:
    marks = [
        Mark(20, 22, ("B",), "PER", "Full Name"),
        Mark(8, 10, ("B",), "PER", "Full Name"),
        Mark(14, 18, ("A", "B"), "LOC", "City/Region"),
    ]

    assert items_of_marks(TEXT, marks) == (
        Item("B", "Bo", "PER", "Full Name", ((8, 10), (20, 22))),
        Item("A", "Bonn", "LOC", "City/Region", ((14, 18),)),
        Item("B", "Bonn", "LOC", "City/Region", ((14, 18),)),
    )


def test_the_entities_of_a_sample_are_sorted_by_position() -> None:
    entities = (
        Entity("32", "DEM", "Age", ((26, 28),)),
        Entity("Ann", "PER", spans=((0, 3),)),
        Entity("Cy", "PER"),
    )
    sample = Sample("x", TEXT, "How old?", (Subject("one", entities),), ())

    assert [(item.person, item.text, item.spans) for item in items_of_sample(sample)] == [
        ("A", "Ann", ((0, 3),)),
        ("A", "32", ((26, 28),)),
        ("A", "Cy", ()),
    ]


def test_texts_found_by_a_system_are_marked_at_all_occurrences() -> None:
    subjects = [[("Bo", "PER"), ("Mars", "LOC"), ("32", "NUMBER")], [("Bo in Bonn", "LOC")]]

    assert marks_of_subjects(TEXT, subjects, "encoder") == (
        Mark(8, 18, ("B",), "LOC", None, "encoder"),
        Mark(20, 22, ("A",), "PER", None, "encoder"),
    )


ITEMS = (
    Item("A", "Ann", "PER", "Full Name", ((0, 3),)),
    Item("A", "32", "DEM", "Age", ((26, 28),)),
)


def test_a_choice_holds_the_needed_items_and_the_corrected_persons() -> None:
    answer = {
        "needed": [1, 1],
        "persons": {"1": "B", "0": "A"},
        "necessary": True,
        "sufficient": True,
        "remark": "x" * 2000,
    }

    assert parse_choice(ITEMS, answer) == Choice((1,), {1: "B"}, True, True, False, "x" * 2000)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "numbers of items, 0 to 1"),
        ({"needed": [2]}, "numbers of items"),
        ({"needed": [True]}, "numbers of items"),
        ({"needed": [], "persons": {"2": "A"}}, "to letters"),
        ({"needed": [], "persons": {"0": "AB"}}, "to letters"),
        ({"needed": [], "persons": {"9" * 5000: "A"}}, "to letters"),
        ({"needed": [], "necessary": 1}, "true or false"),
        ({"needed": [], "remark": 5}, "at most 2,000"),
    ],
)
def test_an_invalid_choice_is_refused(answer: Any, reason: str) -> None:
    with pytest.raises(PiiBenchError, match=reason):
        parse_choice(ITEMS, answer)
