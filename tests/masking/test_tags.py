from __future__ import annotations

import pytest

from pii_bench.masking import tags
from pii_bench.masking.tags import ANY_TYPE, PLAIN_NAMES, name_of, number_tags
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType


@pytest.mark.parametrize(
    ("pii_type", "text", "name"),
    [
        ("PER", "Ann Lee", "Full Name"),
        ("PER", "Ann\n  Lee", "Full Name"),
        ("PER", "Nguyễn Thị Hoa", "Full Name"),
        ("PER", "@fennelandsalt", "Social Media Handle"),
        ("PER", "Ann", "Person"),
        ("PER", "李明", "Person"),
        ("CODE", "ann.lee@mail.example", "Email Address"),
        ("CODE", "+1-9025550147", "Phone Number"),
        ("CODE", "+49 (30) 23125-123", "Phone Number"),
        ("CODE", "(902) 555-0147", "Phone Number"),
        ("CODE", "902.555.0147", "Phone Number"),
        ("CODE", "192.0.2.17", "IP Address"),
        ("CODE", "2001:db8::1", "IP Address"),
        ("CODE", "666-31-0847", "Social Security Number"),
        ("CODE", "4111111111111111", "Credit Card"),
        ("CODE", "4111 1111-1111 1111", "Credit Card"),
        # Luhn's formula wants 1 at the end.
        ("CODE", "4111 1111 1111 1112", "Identifier"),
        ("CODE", "0a" * 32, "Password Hash"),
        ("CODE", "20241106", "Identifier"),
        ("CODE", "K12345678", "Identifier"),
        ("CODE", "+1", "Identifier"),
        ("LOC", "27 Copperhill Row", "Location"),
        ("ORG", "Tern Sound Marine", "Organisation"),
        ("DEM", "32", "Age"),
        ("DEM", "32-year-old", "Age"),
        ("DEM", "121", "Personal Detail"),
        ("DEM", "Woman", "Gender"),
        ("DEM", "173 cm", "Height"),
        ("DEM", "5'8\"", "Height"),
        ("DEM", "151 lbs", "Weight"),
        ("DEM", "AB+", "Blood Type"),
        ("DEM", "bisexual", "Sexual Orientation"),
        ("DEM", "piano tuner", "Personal Detail"),
        ("DATETIME", "2024-11-06", "Date"),
        ("DATETIME", "6 November 2024", "Date"),
        ("DATETIME", "Nov. 6th, 2024", "Date"),
        ("DATETIME", "06/11/24", "Date"),
        ("DATETIME", "2024-13-06", "Date or Time"),
        ("DATETIME", "09:40:00", "Time"),
        ("DATETIME", "9:40 pm", "Time"),
        ("DATETIME", "9 a.m.", "Time"),
        ("DATETIME", "41 days", "Duration"),
        ("DATETIME", "1.5 hours", "Duration"),
        ("DATETIME", "last spring", "Date or Time"),
        ("QUANTITY", "$3,940", "Amount"),
        ("QUANTITY", "3940 EUR", "Amount"),
        ("QUANTITY", "6.85%", "Percentage"),
        ("QUANTITY", "650", "Financial Figure"),
        # The format of another type does not count.
        ("ORG", "2024-11-06", "Organisation"),
        ("EMAIL", "ann.lee@mail.example", "Personal Information"),
        ("", "Ann", "Personal Information"),
    ],
)
def test_the_name_of_a_tag(pii_type: str, text: str, name: str) -> None:
    assert name_of(pii_type, text) == name


def test_names_are_categories_of_their_type_but_for_those_that_no_format_tells_apart() -> None:
    named = {(name, pii_type) for pii_type, formats in tags._NAMES.items() for name, _ in formats}

    assert {name for name, each in named if TYPE_OF_CATEGORY.get(name) != each} == {
        "Amount",
        "Percentage",
    }
    assert set(PLAIN_NAMES) == set(PiiType)


def test_no_name_holds_what_would_break_a_tag() -> None:
    names = {name for formats in tags._NAMES.values() for name, _ in formats}

    for name in {*names, *PLAIN_NAMES.values(), ANY_TYPE}:
        assert name.replace(" ", "").isalpha()


def test_only_a_name_of_several_texts_is_numbered() -> None:
    assert number_tags({"Ann Lee": "Full Name", "32": "Age", "Bo Ek": "Full Name"}, "") == {
        "Ann Lee": "<Full Name 1>",
        "32": "<Age>",
        "Bo Ek": "<Full Name 2>",
    }


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("say <Age> or <age>", "<Age 1>"),
        ("say <Age> or <Age 1>", "<Age 2>"),
        ("say <Age 1>", "<Age>"),
        ("say <age>", "<Age 1>"),
        ("say [Age] or &lt;age 1&gt;", "<Age 2>"),
        ("say Age", "<Age>"),
    ],
)
def test_a_tag_that_the_text_holds_is_not_given_away(text: str, tag: str) -> None:
    assert number_tags({"32": "Age"}, text) == {"32": tag}


def test_numbers_that_the_text_holds_are_left_out() -> None:
    assert number_tags({"32": "Age", "41": "Age"}, "ask <Age 2>") == {
        "32": "<Age 1>",
        "41": "<Age 3>",
    }
