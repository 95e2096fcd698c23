"""Samples of other pieces, and noise."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.datasets.variants import (
    MISREAD,
    cut,
    in_capitals,
    in_small_letters,
    misread,
    with_typos,
    without_punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TOWN = "Ann of New York pays $9 in York."


def sample() -> Sample:
    """A city inside a larger one, and again on its own."""
    entities = (
        Entity("Ann", "PER", None, ((0, 3),)),
        Entity("New York", "LOC", None, ((7, 15),)),
        Entity("York", "LOC", None, ((11, 15), (27, 31))),
    )
    meta = {"public": ["$9"]}
    return Sample("s1", TOWN, "Where?", (Subject("A", entities),), (Related("A", "York"),), meta)


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


if TYPE_CHECKING:
    Noise = Callable[[str, Random, float], str]

ALL = (with_typos, misread, without_punctuation, in_small_letters, in_capitals)


@pytest.mark.parametrize(
    ("noise", "text", "told"),
    [
        (misread, "Is 501 more?", "ls SOl rn0rc?"),
        (without_punctuation, "No, Al. At 4.50, yes!", "No Al At 4.50 yes!"),
        (in_small_letters, "Ann of IBM", "ann of ibm"),
        (in_capitals, "Ann of Gießen", "ANN OF GIESSEN"),
    ],
)
def test_everything_is_changed_at_a_rate_of_one(noise: Noise, text: str, told: str) -> None:
    assert noise(text, Random(1), 1) == told


def test_letters_alone_are_misread_by_the_table_of_letters() -> None:
    assert misread("lo 10", Random(1), 1, MISREAD) == "10 10"


@pytest.mark.parametrize("noise", ALL)
@given(text=st.text(), seed=st.integers())
def test_nothing_is_changed_at_a_rate_of_nothing(noise: Noise, text: str, seed: int) -> None:
    assert noise(text, Random(seed), 0) == text


@pytest.mark.parametrize("noise", ALL)
@given(text=st.text(), seed=st.integers())
def test_a_seed_gives_one_text(noise: Noise, text: str, seed: int) -> None:
    assert noise(text, Random(seed), 0.5) == noise(text, Random(seed), 0.5)


@given(text=st.text(alphabet=st.characters(exclude_categories=["L"])), seed=st.integers())
def test_only_letters_are_mistyped(text: str, seed: int) -> None:
    assert with_typos(text, Random(seed), 1) == text


@given(text=st.text(alphabet="abcdefg", min_size=1), seed=st.integers())
def test_a_typo_takes_at_most_a_letter_away(text: str, seed: int) -> None:
    assert len(with_typos(text, Random(seed), 0.5)) <= len(text)
