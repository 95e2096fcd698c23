from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.encoder.boundaries import with_whole_spans
from pii_bench.taxonomy import PiiType


def _whole(text: str, found: str, kind: PiiType) -> list[str]:
    start = text.index(found)
    spans = with_whole_spans(text, [(start, start + len(found), kind)])
    return [text[start:end] for start, end, _ in spans]


@pytest.mark.parametrize(
    ("text", "found", "kind", "whole"),
    [
        ("born on 3 July 2001 in Bonn", "July", PiiType.DATETIME, "3 July 2001"),
        ("born on July 3rd, 2001", "3rd", PiiType.DATETIME, "July 3rd, 2001"),
        ("since March 1999, when", "1999", PiiType.DATETIME, "March 1999"),
        ("on the 2nd of May he", "2nd", PiiType.DATETIME, "2nd of May"),
        ("due 14.03.1962.", "03", PiiType.DATETIME, "14.03.1962"),
        ("(no. 22072/02) against", "no. 22072", PiiType.CODE, "22072/02"),
        ("a flat of 1,769.50 euros", "1,769", PiiType.QUANTITY, "1,769.50"),
        ("Boris, Anna and", "Boris,", PiiType.PER, "Boris"),
        ("at Laufen (Germany), where", "Laufen (Germany", PiiType.LOC, "Laufen (Germany)"),
        ("she (Anna Berg) left", "(Anna Berg", PiiType.PER, "Anna Berg"),
        ("call (02) 1234 5678 now", "(02) 1234 5678", PiiType.CODE, "(02) 1234 5678"),
        ("I paid $5,000+ for it", "$5,000+", PiiType.QUANTITY, "$5,000+"),
    ],
)
def test_a_span_is_whole_and_tidy(text: str, found: str, kind: PiiType, whole: str) -> None:
    assert _whole(text, found, kind) == [whole]


@pytest.mark.parametrize(
    ("text", "found", "kind"),
    [
        ("I (44M) have", "44", PiiType.DEM),
        ("in May Road 5", "May Road 5", PiiType.LOC),
        ("from 2019-2021 she", "2019", PiiType.DATETIME),
        ("a B+ student", "B+", PiiType.DEM),
    ],
)
def test_what_is_whole_stays(text: str, found: str, kind: PiiType) -> None:
    assert _whole(text, found, kind) == [found]


def test_parts_of_one_date_become_one_span() -> None:
    text = "on 3 July 2001"
    parts = [(3, 4, PiiType.DATETIME), (5, 9, PiiType.DATETIME), (10, 14, PiiType.DATETIME)]

    assert with_whole_spans(text, parts) == [(3, 14, PiiType.DATETIME)]


def test_punctuation_alone_is_no_span() -> None:
    assert with_whole_spans("well ... yes", [(5, 8, PiiType.CODE)]) == []


_TEXTS = st.text("a1/., ()May", max_size=30)


@given(_TEXTS, st.lists(st.tuples(st.integers(0, 29), st.integers(1, 5)), max_size=6))
def test_spans_are_in_order_inside_the_text_and_apart(
    text: str, places: list[tuple[int, int]]
) -> None:
    spans = [
        (start, min(start + length, len(text)), PiiType.DATETIME)
        for start, length in places
        if start < len(text)
    ]

    found = with_whole_spans(text, spans)

    edges = [edge for start, end, _ in found for edge in (start, end)]
    assert edges == sorted(edges)
    assert all(any(map(str.isalnum, text[start:end])) for start, end, _ in found)
