from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.encoder.fixed_forms import (
    fixed_forms,
    is_contact,
    may_need_contact,
    with_fixed_forms,
    without_labels,
)
from pii_bench.taxonomy import PiiType


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
    ],
)
def test_only_a_query_about_reaching_somebody_may_need_them(query: str, *, expected: bool) -> None:
    assert may_need_contact(query) is expected
