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
from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Callable

    Noise = Callable[[str, Random, float], str]

TOWN = "Ann of New York pays $9 in York."


def sample() -> Sample:
    """Return a sample with a city inside a larger one, and again by itself."""
    entities = (
        Entity("Ann", "PER", None, ((0, 3),)),
        Entity("New York", "LOC", None, ((7, 15),)),
        Entity("York", "LOC", None, ((11, 15), (27, 31))),
    )
    meta = {"public": ["$9"]}
    return Sample("s1", TOWN, "Where?", (Subject("A", entities),), (Related("A", "York"),), meta)


def test_a_text_is_cut_at_the_ends_of_annotations() -> None:
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


def test_annotations_get_the_new_texts_of_their_spans() -> None:
    variant = cut(sample(), public=True).with_texts(
        ["Bo", " of ", "Old ", "Hull", " gets ", "€8", " in ", "Hull", "!"]
    )

    assert variant is not None
    assert variant.description == "Bo of Old Hull gets €8 in Hull!"
    assert [(entity.text, entity.spans) for entity in variant.entities] == [
        ("Bo", ((0, 2),)),
        ("Old Hull", ((6, 14),)),
        ("Hull", ((10, 14), (26, 30))),
    ]
    assert variant.related == (Related("A", "Hull"),)
    assert variant.meta == {"public": ["€8"]}


@pytest.mark.parametrize(
    ("index", "text"), [(0, ""), (0, " "), (7, "Hull")], ids=["empty", "blank", "of two texts"]
)
def test_blank_or_ambiguous_annotations_are_refused(index: int, text: str) -> None:
    cut_sample = cut(sample())
    texts = [piece.text for piece in cut_sample.pieces]
    texts[min(index, len(texts) - 2)] = text

    assert cut_sample.with_texts(texts) is None


def test_an_annotation_without_occurrence_stays() -> None:
    elsewhere = replace(sample().subjects[0].entities[0], text="Annette", spans=())
    subjects = (Subject("A", (elsewhere,)),)
    cut_sample = cut(replace(sample(), subjects=subjects, related=(), meta={}))

    variant = cut_sample.with_texts(["Nothing."])

    assert variant is not None
    assert variant.entities == (elsewhere,)


def test_an_entity_that_lists_no_spans_is_cut_where_it_can_be_read() -> None:
    entities = [{"text": "Ann", "type": "PER"}, {"text": "32", "type": "DEM"}]
    subjects = [{"id": "A", "entities": entities}]
    texts = [piece.text for piece in cut(make_sample(subjects=subjects, related=[])).pieces]

    assert texts == ["Ann", " Lee is ", "32", "."]


@given(st.sampled_from(load_dataset("demo").samples), st.booleans())
def test_unchanged_pieces_give_the_same_sample(original: Sample, public: bool) -> None:
    cut_sample = cut(original, public=public)

    assert cut_sample.with_texts([piece.text for piece in cut_sample.pieces]) == original


ALL = (with_typos, misread, without_punctuation, in_small_letters, in_capitals)


@pytest.mark.parametrize(
    ("noise", "text", "expected"),
    [
        (misread, "Is 501 more?", "ls SOl rn0rc?"),
        (without_punctuation, "No, Al. At 4.50, yes!", "No Al At 4.50 yes!"),
        (in_small_letters, "Ann of IBM", "ann of ibm"),
        (in_capitals, "Ann of Gießen", "ANN OF GIESSEN"),
    ],
)
def test_everything_changes_at_rate_1(noise: Noise, text: str, expected: str) -> None:
    assert noise(text, Random(1), 1) == expected


def test_digits_are_kept_with_the_table_of_letters() -> None:
    assert misread("lo 10", Random(1), 1, MISREAD) == "10 10"


@pytest.mark.parametrize("noise", ALL)
@given(text=st.text(), seed=st.integers())
def test_nothing_changes_at_rate_0_and_a_seed_gives_one_text(
    noise: Noise, text: str, seed: int
) -> None:
    assert noise(text, Random(seed), 0) == text
    assert noise(text, Random(seed), 0.5) == noise(text, Random(seed), 0.5)


@given(text=st.text(alphabet=st.characters(exclude_categories=["L"])), seed=st.integers())
def test_only_letters_are_mistyped(text: str, seed: int) -> None:
    assert with_typos(text, Random(seed), 1) == text


@given(text=st.text(alphabet="abcdefg", min_size=1), seed=st.integers())
def test_typos_never_lengthen_a_text(text: str, seed: int) -> None:
    assert len(with_typos(text, Random(seed), 0.5)) <= len(text)
