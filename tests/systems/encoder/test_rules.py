"""Rules in front of and behind the network."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.encoder.rules import (
    fixed_forms,
    is_contact,
    may_need_contact,
    whole_names,
    with_fixed_forms,
    with_parts_of_names,
    with_whole_names,
    with_whole_spans,
    without_labels,
)
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
        ("on 2025-09-21, at", "21", PiiType.DATETIME, "2025-09-21"),
        ("(no. 22072/02) against", "no. 22072", PiiType.CODE, "22072/02"),
        ("a flat of 1,769.50 euros", "1,769", PiiType.QUANTITY, "1,769.50"),
        ("Boris, Anna and", "Boris,", PiiType.PER, "Boris"),
        ("at Laufen (Germany), where", "Laufen (Germany", PiiType.LOC, "Laufen (Germany)"),
        ("she (Anna Berg) left", "(Anna Berg", PiiType.PER, "Anna Berg"),
        ("call (02) 1234 5678 now", "(02) 1234 5678", PiiType.CODE, "(02) 1234 5678"),
        ("I paid $5,000+ for it", "$5,000+", PiiType.QUANTITY, "$5,000+"),
        # What is whole stays.
        ("I (44M) have", "44", PiiType.DEM, "44"),
        ("in May Road 5", "May Road 5", PiiType.LOC, "May Road 5"),
        ("from 2019-2021 she", "2019", PiiType.DATETIME, "2019"),
        ("a B+ student", "B+", PiiType.DEM, "B+"),
    ],
)
def test_a_span_is_whole_and_tidy(text: str, found: str, kind: PiiType, whole: str) -> None:
    assert _whole(text, found, kind) == [whole]


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


def whole_names_of(text: str, *parts: tuple[str, PiiType]) -> list[tuple[str, PiiType]]:
    """The spans that come of parts, each at its first place in the text."""
    spans = sorted((text.index(part), text.index(part) + len(part), kind) for part, kind in parts)
    found = with_whole_names(text, spans)
    assert found == sorted(found)
    return [(text[start:end], kind) for start, end, kind in found]


PER, ORG, LOC, DEM = PiiType.PER, PiiType.ORG, PiiType.LOC, PiiType.DEM


@pytest.mark.parametrize(
    ("text", "parts", "whole"),
    [
        # To the right, to the left, and both.
        ("at Dreisam Repair Circle", [("Dreisam Repair", ORG)], [("Dreisam Repair Circle", ORG)]),
        ("with Andriy Shevchuk", [("Shevchuk", PER)], [("Andriy Shevchuk", PER)]),
        ("an der Pend Oreille Title", [("Oreille", ORG)], [("Pend Oreille Title", ORG)]),
        ("at 79 Hàng Nón", [("79", LOC)], [("79 Hàng Nón", LOC)]),
        ("of the Board of Provident Funds", [("Board of Provident", ORG)],
         [("Board of Provident Funds", ORG)]),
        # Parts of one name; the type is the longer one's.
        ("as Sacha Hosaeni says", [("Sacha", ORG), ("Hosaeni", PER)], [("Sacha Hosaeni", PER)]),
        ("PT Tirta Ke", [("PT", PER), ("Tirta", ORG), ("Ke", PER)], [("PT Tirta Ke", ORG)]),
        ("the Scottish Greens", [("Scottish", DEM), ("Greens", ORG)], [("Scottish Greens", DEM)]),
        # A title, a day, small letters and the first word of a sentence are no part of a name.
        ("and Judge Finn", [("Finn", PER)], [("Finn", PER)]),
        ("with Finn Monday noon", [("Finn", PER)], [("Finn", PER)]),
        ("by Finn and others", [("Finn", PER)], [("Finn", PER)]),
        ("It rained. Yesterday Finn came.", [("Finn", PER)], [("Finn", PER)]),
        ("Yesterday Finn came.", [("Finn", PER)], [("Finn", PER)]),
        # Two names that a comma, a line or two spaces part; and what is no name.
        ("Ann, Bo", [("Ann", PER), ("Bo", PER)], [("Ann", PER), ("Bo", PER)]),
        ("Ann\nBo", [("Ann", PER), ("Bo", PER)], [("Ann", PER), ("Bo", PER)]),
        ("Ann  Bo", [("Ann", PER), ("Bo", PER)], [("Ann", PER), ("Bo", PER)]),
        ("WITH ANN LEE", [("LEE", PER)], [("LEE", PER)]),
        ("a Polish Nurse", [("Polish", DEM)], [("Polish", DEM)]),
        ("a Swede Sikh", [("Swede", DEM), ("Sikh", DEM)], [("Swede", DEM), ("Sikh", DEM)]),
    ],
)  # fmt: skip
def test_names_are_whole(
    text: str, parts: list[tuple[str, PiiType]], whole: list[tuple[str, PiiType]]
) -> None:
    assert whole_names_of(text, *parts) == whole


@given(st.text(alphabet="Ab Cd.,1\n", max_size=40), st.data())
def test_names_only_grow_and_never_overlap(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    spans = [(start, end, data.draw(st.sampled_from([PER, ORG, LOC]))) for start, end in pairs]

    found = with_whole_names(text, spans)

    assert all(before[1] <= after[0] for before, after in pairwise(found))
    assert all(any(a <= start and end <= b for a, b, _ in found) for start, end, _ in spans)
    lines = [sum(text[a:b].count("\n") for a, b, _ in each) for each in (found, spans)]
    assert lines[0] == lines[1]


def parts_found(text: str, *names: str) -> list[str]:
    """What is found besides the names, each at its first place in the text."""
    spans = sorted((text.index(name), text.index(name) + len(name), PiiType.PER) for name in names)
    found = with_parts_of_names(text, spans)
    assert found == sorted(found)
    assert {kind for _, _, kind in found} == {PiiType.PER}
    return [text[start:end] for start, end, kind in found if (start, end, kind) not in spans]


@pytest.mark.parametrize(
    ("text", "names", "parts"),
    [
        ("Laleh Rezai works. Ask Laleh, or Mr Rezai.", ["Laleh Rezai"], ["Laleh", "Rezai"]),
        ("Laleh Rezai works. Laleh's shift is long.", ["Laleh Rezai"], ["Laleh"]),
        ("Ann Wilk lives on Wilk Street.", ["Ann Wilk"], []),
        ("Ann Wilk and Wilk Ann Roe.", ["Ann Wilk"], []),
        ("Ann Wilk: tell Wilk Bo Roe is here.", ["Ann Wilk", "Bo Roe"], ["Wilk"]),
        ("Rose Bell has a rose. Rose waters it.", ["Rose Bell"], []),
        ("Judge Orla Finn sat. The Judge left.", ["Judge Orla Finn"], []),
        ("Will Finn wrote. Will you come?", ["Will Finn"], []),
        ("Ann said that Annika and Ann came.", ["Ann"], []),
        ("Annika Roe and Annikas car.", ["Annika Roe"], []),
        ("Jo Wilk asks for Jo.", ["Jo Wilk"], []),
        ("Wilk 4711 is no name, and Wilk is alone.", ["Wilk 4711"], []),
    ],
)
def test_where_a_part_is_alone(text: str, names: list[str], parts: list[str]) -> None:
    assert parts_found(text, *names) == parts


def test_a_part_inside_another_span_is_left() -> None:
    text = "Ann Wilk works at Wilk and Sons."
    spans = [(0, 8, PiiType.PER), (18, 31, PiiType.ORG)]

    assert with_parts_of_names(text, spans) == spans


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["Laleh Rezai", "Laleh"], {"Laleh Rezai": "Laleh Rezai", "Laleh": "Laleh Rezai"}),
        (["Ann Roe", "Bo Roe", "Roe"], {"Ann Roe": "Ann Roe", "Bo Roe": "Bo Roe", "Roe": "Roe"}),
        (["Ann", "Bo"], {"Ann": "Ann", "Bo": "Bo"}),
        (["@owl_7", "owl"], {"@owl_7": "@owl_7", "owl": "owl"}),
    ],
)
def test_whose_a_part_is(names: list[str], whole: dict[str, str]) -> None:
    assert whole_names(names) == whole


@pytest.mark.parametrize(
    "code",
    [
        "ann.lee+home@mail.example.org",
        "192.0.2.17",
        "2001:db8:2ad4:fad::1b2",
        "d41d8cd98f00b204e9800998ecf8427e",
        "GB29 NWBK 6016 1331 9268 19",
        "DE89370400440532013000",
        "4111 1111 1111 1111",
        "4111111111111111",
        "+49 30 1234567",
        "+1-2025550148",
        "078-05-1120",
    ],
)
def test_a_code_is_found_whole(code: str) -> None:
    text = f"Reach me by {code}, please."

    assert [text[start:end] for start, end, _ in with_fixed_forms(text, [])] == [code]


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3 of 10:15:30",
        "300.1.1.1 is no address",
        "4111 1111 1111 1112 fails Luhn's check",
        "GB28 NWBK 6016 1331 9268 19 has other check digits",
        "order 123456 of 2024-03-04",
        "she said: yes, and he: no",
        "::",
    ],
)
def test_what_only_looks_like_one_is_left(text: str) -> None:
    assert list(fixed_forms(text)) == []


def test_a_rule_takes_the_place_of_what_overlaps_it() -> None:
    text = "Ann, ann@x.example"
    spans = [(0, 3, PiiType.PER), (5, 8, PiiType.ORG), (9, 18, PiiType.ORG)]

    assert with_fixed_forms(text, spans) == [(0, 3, PiiType.PER), (5, 18, PiiType.CODE)]


@given(st.text("aB1_.-+%@ ", max_size=40))
def test_mail_addresses_are_those_of_the_plain_pattern(text: str) -> None:
    plain = re.compile(r"[\w.%+-]*\w@\w[\w-]*(?:\.[\w-]*\w)+")

    assert list(fixed_forms(text)) == [match.span() for match in plain.finditer(text)]


def test_a_long_word_before_no_address_is_passed_over() -> None:
    text = "a" * 1_000_000

    assert list(fixed_forms(f"{text} {text}@x.example")) == [(1_000_001, 2_000_011)]


@pytest.mark.parametrize(
    ("text", "span", "kept"),
    [
        ("Street: Elm Row 4", "Street", False),
        ("CURRICULUM VITAE\nJane Roe", "VITAE", False),
        ("CURRICULUM VITAE\nJane Roe", "Jane Roe", True),
        ("Jane: hello", "Jane", True),
        ("Name: Street", "Street", True),
        ("I live in Street: it is small", "Street", True),
        ("Date: 2024-03-01", "2024-03-01", True),
    ],
)
def test_the_label_of_a_form_or_the_heading_of_a_document_is_no_span(
    text: str, span: str, kept: bool
) -> None:
    start = text.index(span)
    found = [(start, start + len(span), PiiType.LOC)]

    assert without_labels(text, found) == (found if kept else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann.lee@mail.example.org", True),
        ("+44 20 7946 0958", True),
        ("GB82WEST12345698765432", False),
        ("2024-03-04", False),
        ("536-22-8719", False),
    ],
)
def test_contact_data_are_addresses_and_phone_numbers(text: str, *, expected: bool) -> None:
    assert is_contact(text) is expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Write him a reminder", True),
        ("What number do I dial?", True),
        ("Make a label for the parcel.", True),
        ("Is ibuprofen safe with asthma?", False),
        ("How long has he been in this format?", False),
        ("I am ann@mail.example: how do I close my account?", False),
    ],
)
def test_only_a_query_about_reaching_somebody_may_need_them(query: str, *, expected: bool) -> None:
    assert may_need_contact(query) is expected
