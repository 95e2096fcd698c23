from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.pieces import cut
from pii_bench.datasets.sample import Entity, Related, Sample, Subject

TEXT = "Ann of New York pays $9 in York."


def sample() -> Sample:
    """A city inside a larger one, and again on its own."""
    entities = (
        Entity("Ann", "PER", None, ((0, 3),)),
        Entity("New York", "LOC", None, ((7, 15),)),
        Entity("York", "LOC", None, ((11, 15), (27, 31))),
    )
    meta = {"public": ["$9"]}
    return Sample("s1", TEXT, "Where?", (Subject("A", entities),), (Related("A", "York"),), meta)


def test_a_text_is_cut_at_every_end_of_an_annotation() -> None:
    pieces = cut(sample(), public=True).pieces

    assert [(piece.text, len(piece.inside), piece.whole) for piece in pieces] == [
        ("Ann", 1, True),
        (" of ", 0, True),
        ("New ", 1, False),
        ("York", 2, False),
        (" pays ", 0, True),
        ("$9", 1, True),
        (" in ", 0, True),
        ("York", 1, True),
        (".", 0, True),
    ]


def test_annotations_hold_what_stands_in_their_place() -> None:
    whole = cut(sample(), public=True)

    made = whole.with_texts(["Bo", " of ", "Old ", "Hull", " gets ", "€8", " in ", "Hull", "!"])

    assert made is not None
    assert made.description == "Bo of Old Hull gets €8 in Hull!"
    assert [(each.text, each.spans) for each in made.entities] == [
        ("Bo", ((0, 2),)),
        ("Old Hull", ((6, 14),)),
        ("Hull", ((10, 14), (26, 30))),
    ]
    assert made.related == (Related("A", "Hull"),)
    assert made.meta == {"public": ["€8"]}


@pytest.mark.parametrize(
    ("place", "text"), [(0, ""), (0, " "), (7, "Hull")], ids=["empty", "blank", "of two texts"]
)
def test_an_annotation_is_one_text_and_not_empty(place: int, text: str) -> None:
    whole = cut(sample())
    pieces = [piece.text for piece in whole.pieces]
    pieces[min(place, len(pieces) - 2)] = text

    assert whole.with_texts(pieces) is None


def test_what_the_text_does_not_hold_stays() -> None:
    elsewhere = replace(sample().subjects[0].entities[0], text="Annette", spans=())
    subjects = (Subject("A", (elsewhere,)),)
    whole = cut(replace(sample(), subjects=subjects, related=(), meta={}))

    made = whole.with_texts(["Nothing."])

    assert made is not None
    assert made.entities == (elsewhere,)


@given(st.sampled_from(load_dataset("demo").samples), st.booleans())
def test_the_same_pieces_are_the_same_sample(original: Sample, public: bool) -> None:
    whole = cut(original, public=public)

    assert whole.with_texts([piece.text for piece in whole.pieces]) == original
