from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.sample import Entity
from pii_bench.diagnosis.places import Description, overlap
from pii_bench.scorer import normalise


def texts_at(description: str, text: str) -> list[str]:
    return [description[start:end] for start, end in Description(description).places(text)]


@pytest.mark.parametrize(
    ("description", "text", "places"),
    [
        ("Oslo, then Oslo", "Oslo", ((0, 4), (11, 15))),
        ("32 of 132, a 3-2", "32", ((0, 2),)),
        ("a 32-year-old", "32", ((2, 4),)),
        ("US$2,180 or $2,180", "$2,180", ((2, 8), (12, 18))),
        ("Stanford", "Stanfor", ((0, 7),)),
        ("Oslo", "oslo", ()),
        ("Oslo", " ", ()),
        ("Oslo", "Oslo Oslo", ()),
        ("", "Oslo", ()),
    ],
)
def test_a_text_stands_at_its_whole_words_or_else_anywhere(
    description: str, text: str, places: tuple[tuple[int, int], ...]
) -> None:
    assert Description(description).places(text) == places


def test_white_space_and_unicode_form_do_not_count() -> None:
    composed, decomposed = "José Ruiz", unicodedata.normalize("NFD", "José Ruiz")

    assert texts_at("by José \n Ruiz", composed) == ["José \n Ruiz"]
    assert texts_at(f"by {decomposed}.", composed) == [decomposed]
    assert texts_at(f"by {composed}.", decomposed) == [composed]


def test_a_script_without_spaces_has_no_words_to_cut() -> None:
    assert Description("我在北京。北京很大").places("北京") == ((2, 4), (5, 7))


def test_annotated_places_go_before_those_of_the_text() -> None:
    description = Description("Oslo, then Oslo")

    assert description.entity_places(Entity("Oslo", "LOC", spans=((11, 15),))) == ((11, 15),)
    assert description.entity_places(Entity("Oslo", "LOC")) == ((0, 4), (11, 15))


@pytest.mark.parametrize(
    ("others", "share"),
    [(((2, 4),), False), (((2, 4), (1, 2)), True), (((5, 8),), True), ((), False)],
)
def test_places_overlap_where_any_two_share_a_character(
    others: tuple[tuple[int, int], ...], share: bool
) -> None:
    assert overlap(((0, 2), (7, 8)), others) is share


@given(st.text(alphabet="ab3 \n\té\u0301\u1100\u1161-", max_size=30), st.data())
def test_it_holds_the_normalised_text_and_finds_what_stands_in_it(
    text: str, data: st.DataObject
) -> None:
    description = Description(text)
    assert description.normalised == normalise(text)
    start = data.draw(st.integers(0, len(description.normalised)))
    piece = normalise(description.normalised[start : start + 4])

    places = description.places(piece)

    assert bool(places) == bool(piece)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
