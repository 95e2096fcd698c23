"""Masking, tags and restoring."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.masking import MaskedSpan, absent_tags, inexact_tags, mask, unmask
from pii_bench.masking.masked import (
    ANY_TYPE,
    PLAIN_NAMES,
    TAG_NAMES,
    make_plan,
    name_of,
    number_tags,
)
from pii_bench.scorer.locate import DetectedSpan, Locator
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType
from tests.masking.drawn import texts_and_entities, words_and_entities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.masking.masked import Entity


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


def test_names_are_words_and_all_but_two_are_categories_of_their_type() -> None:
    named = {(name, pii_type) for pii_type, formats in TAG_NAMES.items() for name, _ in formats}
    names = {*(name for name, _ in named), *PLAIN_NAMES.values(), ANY_TYPE}

    assert all(name.replace(" ", "").isalpha() for name in names)
    assert {name for name, pii_type in named if TYPE_OF_CATEGORY.get(name) != pii_type} == {
        "Amount",
        "Percentage",
    }
    assert set(PLAIN_NAMES) == set(PiiType)


@pytest.mark.parametrize(
    ("text", "names", "tags"),
    [
        ("", {"Ann": "Person", "32": "Age", "Bo": "Person"}, ["<Person 1>", "<Age>", "<Person 2>"]),
        ("say <Age> or <age>", {"32": "Age"}, ["<Age 1>"]),
        ("say <Age> or <Age 1>", {"32": "Age"}, ["<Age 2>"]),
        ("say <Age 1>", {"32": "Age"}, ["<Age>"]),
        ("say <age>", {"32": "Age"}, ["<Age 1>"]),
        ("say [Age] or &lt;age 1&gt;", {"32": "Age"}, ["<Age 2>"]),
        ("say Age", {"32": "Age"}, ["<Age>"]),
        ("ask <Age 2>", {"32": "Age", "41": "Age"}, ["<Age 1>", "<Age 3>"]),
    ],
)
def test_shared_names_are_numbered_and_tags_of_the_text_are_not_used(
    text: str, names: dict[str, str], tags: list[str]
) -> None:
    assert number_tags(names, text) == dict(zip(names, tags, strict=True))


def masked(text: str, entities: Iterable[Entity], keep: Iterable[str] = ()) -> list[str]:
    """Return the masked pieces as `TYPE: piece`."""
    plan = make_plan(text, entities, keep)
    return [f"{claim.label}: {text[claim.start : claim.end]}" for claim in plan.claims]


DEGREE = "an MSc from Dalrymple University, Halifax"
DEGREES = [("Dalrymple University", "ORG"), ("MSc", "DEM")]


def span(start: int, end: int) -> DetectedSpan:
    return DetectedSpan(start, end, PiiType.PER)


@pytest.mark.parametrize(
    ("text", "entities", "keep", "pieces"),
    [
        pytest.param(
            "Ann Lee, 32, Oslo. Ann Lee!",
            [("Ann Lee", "PER"), ("32", "DEM"), ("Oslo", "LOC")],
            ["32"],
            ["PER: Ann Lee", "LOC: Oslo", "PER: Ann Lee"],
            id="every occurrence, except of kept texts",
        ),
        pytest.param(
            "Zoe\u0308\nLee",
            [("Zo\u00eb Lee", "PER")],
            ["Zoe\u0308  Lee"],
            [],
            id="kept texts are compared as the scorer does",
        ),
        pytest.param(
            "Ann Lee Shipping Ltd",
            [("Ann Lee", "PER"), ("Lee Shipping Ltd", "ORG"), ("Shipping", "ORG")],
            [],
            ["PER: Ann", "ORG: Lee Shipping Ltd"],
            id="the longest of overlapping entities is one span",
        ),
        pytest.param(
            "Victoria",
            [("Victoria", "LOC"), ("Victoria", "ORG")],
            [],
            ["LOC: Victoria"],
            id="of two types the first in the taxonomy wins",
        ),
        pytest.param(
            "Victoria",
            [("Victoria", "ORG"), ("Victoria", "LOC")],
            [],
            ["LOC: Victoria"],
            id="the order of two types does not matter",
        ),
        pytest.param(
            "Victoria",
            [("Victoria", "ZZZ"), ("Victoria", "LOC")],
            [],
            ["LOC: Victoria"],
            id="an unknown type comes last",
        ),
        pytest.param(
            "Ann32",
            [span(0, 3), span(3, 5)],
            [],
            ["PER: Ann", "PER: 32"],
            id="adjacent entities stay apart",
        ),
        pytest.param(
            DEGREE, DEGREES, ["MSc from Dalrymple University"], [], id="a kept text around entities"
        ),
        pytest.param(
            DEGREE,
            DEGREES,
            ["Dalrymple"],
            ["DEM: MSc", "ORG: University"],
            id="a kept text inside an entity",
        ),
        pytest.param(
            DEGREE,
            DEGREES,
            ["University, Halifax"],
            ["DEM: MSc", "ORG: Dalrymple"],
            id="a kept text across the end of an entity",
        ),
        pytest.param(
            "Aged 32, number 666-32-0847",
            [("666-32-0847", "CODE"), ("32", "DEM")],
            ["32"],
            ["CODE: 666-32-0847"],
            id="a kept text inside a longer entity and elsewhere",
        ),
        pytest.param(
            " Ann \n",
            [span(0, 6)],
            [],
            ["PER: Ann"],
            id="white space at the ends of a span is not masked",
        ),
        pytest.param(" Ann \n", [span(4, 6), span(2, 2)], [], [], id="spans without visible text"),
        pytest.param(
            "Zoe\u0308 Lee",
            [span(0, 3)],
            [],
            ["PER: Zoe\u0308"],
            id="a span includes the combining marks after it",
        ),
        pytest.param(
            "👩‍👩‍👧 שלום Ann",
            [span(11, 14), ("שלום", "PER")],
            [],
            ["PER: שלום", "PER: Ann"],
            id="offsets are code points",
        ),
    ],
)
def test_what_is_masked(
    text: str, entities: list[Entity], keep: list[str], pieces: list[str]
) -> None:
    assert masked(text, entities, keep) == pieces


def test_pairs_match_whole_words_but_spans_may_lie_inside_words() -> None:
    text = "Annual report by Ann"

    assert make_plan(text, [("Ann", "PER")], []).spans == [(17, 20)]
    assert make_plan(text, [span(0, 3)], []).spans == [(0, 3)]


def test_entities_that_are_not_found_are_listed() -> None:
    entities = [("Bo", "PER"), ("Al", "PER"), ("Ann", "PER"), (" ", "PER"), ("Bo", "ORG")]

    plan = make_plan("Ann", entities, ["Cy"])

    assert plan.not_found == ("Al", "Bo")
    assert len(plan.claims) == 1


@pytest.mark.parametrize(
    ("entities", "keep", "message"),
    [
        ([span(2, 4)], [], "a span came from 2 to 4; allowed: 0 <= start"),
        ([span(2, 1)], [], "a span came from 2 to 1; allowed: 0 <= start"),
        ([span(-1, 1)], [], "a span came from -1 to 1; allowed: 0 <= start"),
        (["Me"], [], "an entity came as str; allowed: "),
        ([("Me", "PER", "x")], [], "an entity came as tuple; allowed: "),
        ([], "Me", "keep came as one str; allowed: an iterable of str"),
    ],
)
def test_invalid_entities_are_refused(
    entities: Sequence[Any], keep: Sequence[str], message: str
) -> None:
    with pytest.raises(PiiBenchError, match=f"^{re.escape(message)}"):
        make_plan("Ann", entities, keep)


def places(text: str, wanted: str) -> list[set[int]]:
    """Find the offsets of each occurrence of a run of words without the module under test."""
    pattern = rf"(?=(?<!\S){re.escape(wanted)}(?!\S))"
    return [set(range(m.start(), m.start() + len(wanted))) for m in re.finditer(pattern, text)]


@given(words_and_entities())
def test_entities_and_nothing_else_are_masked_except_where_they_meet_kept_texts(
    drawn: tuple[str, list[tuple[str, str]], list[str]],
) -> None:
    text, entities, keep = drawn
    masked_offsets = {
        n for start, end in make_plan(text, entities, keep).spans for n in range(start, end)
    }
    to_mask = [place for value, _ in entities if value not in keep for place in places(text, value)]
    to_keep = [places(text, kept) for kept in keep]

    spaces = {n for n, character in enumerate(text) if character == " "}
    may_stay = spaces.union(*(place for kept in to_keep for place in kept))
    assert masked_offsets <= set().union(*to_mask)
    for place in to_mask:
        assert place - masked_offsets <= may_stay
    # A kept text may be masked inside a longer entity, but not everywhere.
    for kept in to_keep:
        assert any(place.isdisjoint(masked_offsets) for place in kept)
        for place in kept:
            assert place.isdisjoint(masked_offsets) or any(place < longer for longer in to_mask)


@given(texts_and_entities())
def test_claims_are_sorted_disjoint_and_stripped(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    pieces = make_plan(text, entities, keep).claims

    ends = [0, *(piece.end for piece in pieces)]
    for end, piece in zip(ends, pieces, strict=False):
        assert end <= piece.start < piece.end <= len(text)
        assert not text[piece.start].isspace()
        assert not text[piece.end - 1].isspace()


MAPPING = {"<Full Name 1>": ("Ann Lee",), "<Full Name 2>": ("Bo Ek",), "<Age>": ("32",)}


def test_a_text_is_masked_and_restored() -> None:
    text = "Ann Lee (32) and Bo Ek live in Oslo. Call Ann Lee: +47-2155501234."
    entities = [
        *(("Ann Lee", "PER"), ("Bo Ek", "PER"), ("32", "DEM"), ("Oslo", "LOC")),
        ("+47-2155501234", "CODE"),
    ]

    masked = mask(text, entities, keep=["Oslo"])

    assert masked.text == (
        "<Full Name 1> (<Age>) and <Full Name 2> live in Oslo. Call <Full Name 1>: <Phone Number>."
    )
    assert masked.mapping == MAPPING | {"<Phone Number>": ("+47-2155501234",)}
    assert len(masked.spans) == 5
    assert masked.not_found == ()
    assert unmask(masked.text, masked.mapping) == text


def test_a_value_is_masked_in_every_spelling_and_restored() -> None:
    text = "O'Neil called. Later O’Neil and O'NEIL wrote, Anne‑Marie O\u00adNeil not."

    masked = mask(text, [("O'Neil", "PER"), ("Anne-Marie", "PER")])

    assert masked.text == (
        "<Person 1> called. Later <Person 1> and <Person 1> wrote, <Person 2> O\u00adNeil not."
    )
    assert masked.mapping == {
        "<Person 1>": ("O'Neil", "O’Neil", "O'NEIL"),
        "<Person 2>": ("Anne‑Marie",),
    }
    assert unmask(masked.text, masked.mapping) == text
    # In a text that uses the tag less often, each use is the first spelling.
    assert unmask("Dear <Person 1>", masked.mapping) == "Dear O'Neil"


def test_spans_of_a_masked_text() -> None:
    masked = mask("Ann (32) and ANN", [("Ann", "PER"), ("32", "DEM")])

    assert masked.spans == (
        MaskedSpan(0, 3, "<Person>", "PER"),
        MaskedSpan(5, 7, "<Age>", "DEM"),
        MaskedSpan(13, 16, "<Person>", "PER"),
    )
    around = ((0, 3), (1, 2), (2, 9), (3, 5), (6, 20), (16, 20))
    tags = [masked.tag_over(*span) for span in around]
    assert tags == ["<Person>", "<Person>", "<Person>", None, "<Age>", None]


@pytest.mark.parametrize(
    ("text", "entities", "shown"),
    [
        # A text of two types has one tag.
        (
            "Jordan met Jordan",
            [("Jordan", "LOC"), ("Jordan", "PER")],
            "<Person> met <Person>",
        ),
        # Tags that the text contains, in any spelling, are not used.
        (
            "<Person> is what we write for Ann, <Person 1> for Bo",
            [("Ann", "PER"), ("Bo", "PER")],
            "<Person> is what we write for <Person 2>, <Person 1> for <Person 3>",
        ),
        (
            "Write [person], &lt;Person 1&gt; or &#60;person 2&#62; for Ann and Bo.",
            [("Ann", "PER"), ("Bo", "PER")],
            "Write [person], &lt;Person 1&gt; or &#60;person 2&#62; for <Person 3> and <Person 4>.",
        ),
        ("Ann", [], "Ann"),
    ],
)
def test_a_masked_text_is_restored(text: str, entities: list[tuple[str, str]], shown: str) -> None:
    masked = mask(text, entities)

    assert masked.text == shown
    assert unmask(masked.text, masked.mapping) == text


def test_restored_texts_are_not_searched_for_tags() -> None:
    assert unmask("<Age>", {"<Age>": ("<Person>",), "<Person>": ("Ann",)}) == "<Person>"


def test_a_mapping_with_a_tag_without_texts_is_refused() -> None:
    with pytest.raises(PiiBenchError, match=r"^tag 2 of the mapping has no text"):
        unmask("<Age>", {"<Person>": ("Ann",), "<Age>": ()})


def test_tag_ten_is_not_tag_one() -> None:
    names = [f"Ann {letter}" for letter in "ABCDEFGHIJ"]

    masked = mask(", ".join(names), [(name, "PER") for name in names])

    assert masked.text.endswith("<Full Name 9>, <Full Name 10>")
    assert unmask("<Full Name 10>", masked.mapping) == "Ann J"


def test_the_repr_shows_no_text() -> None:
    assert repr(mask("Ann, 32", [("Ann", "PER"), ("Bo", "PER")])) == "Masked()"


@pytest.mark.parametrize(
    ("answer", "restored"),
    [
        ("<Full Name 2>, <Age>, likes <Full Name 1>.", "Bo Ek, 32, likes Ann Lee."),
        ("<full name 2> < Age> <Full_Name 1>", "Bo Ek 32 Ann Lee"),
        ("**[Full Name 2]**, &lt;Age&gt;", "**Bo Ek**, 32"),
        ("<<Age>>", "<32>"),
        ("[full name 1] [FULL NAME 2] [age]", "Ann Lee Bo Ek 32"),
        ("&lt;Full_Name_1&gt;, &lt;FULL NAME 2&gt;", "Ann Lee, Bo Ek"),
        ("&LT;Age&GT; &#60;Age&#62; &#x3C;Age&#x3e; &lt;Age>", "32 32 32 32"),
        ("5 &lt; 6, <b>&lt;Age&gt;</b> &amp; [x]", "5 &lt; 6, <b>32</b> &amp; [x]"),
        ("\\<Age\\>, \\[full name 1\\], \\<Full\\_Name 2\\>", "32, Ann Lee, Bo Ek"),
        ("C:\\<Age>, \\\\<Age\\\\>", "C:\\32, \\\\32"),
        ("Age, (Age), <Full Name 3>, [Ages]", "Age, (Age), <Full Name 3>, [Ages]"),
    ],
)
def test_tags_are_restored_in_any_case_spacing_and_brackets(answer: str, restored: str) -> None:
    assert unmask(answer, MAPPING) == restored


@pytest.mark.parametrize(
    ("tag", "answer"),
    [
        ("<Full Name>", "[full name]"),
        ("<PER_1>", "&lt;PER_1&gt;"),
        ("<PER_1>", "<Per 1>"),
    ],
)
def test_tags_without_number_or_of_other_tools_are_restored(tag: str, answer: str) -> None:
    assert unmask(f"Dear {answer},", {tag: ("Ann Lee",)}) == "Dear Ann Lee,"


def test_absent_tags() -> None:
    assert absent_tags("Dear <Full Name 2>, [x]", MAPPING) == ["<Full Name 1>", "<Age>"]


@pytest.mark.parametrize(
    ("answer", "inexact"),
    [
        ("<Full Name 3> [full name]", ["<Full Name 3>", "[full name]"]),
        ("<Age 2>, <Age 2>", ["<Age 2>"]),
        ("<Age> <Full Name 1> <Phone Number> <b> < > <>", []),
    ],
)
def test_inexact_tags(answer: str, inexact: list[str]) -> None:
    assert inexact_tags(answer, MAPPING) == inexact


@given(texts_and_entities())
def test_the_masked_text_is_the_text_with_tags_for_the_spans_and_can_be_restored(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    masked = mask(text, entities, keep)

    shown = text
    for span in reversed(masked.spans):
        assert text[span.start : span.end] in masked.mapping[span.tag]
        shown = shown[: span.start] + span.tag + shown[span.end :]
    assert masked.text == shown
    assert unmask(masked.text, masked.mapping) == text


@given(texts_and_entities())
def test_every_tag_occurs_only_where_it_replaces_a_text(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    masked = mask(text, entities, keep)

    assert absent_tags(masked.text, masked.mapping) == []
    assert not any(tag in text for tag in masked.mapping)
    assert sum(masked.text.count(tag) for tag in masked.mapping) == len(masked.spans)


@given(texts_and_entities(), st.integers())
def test_the_order_of_entities_does_not_matter(
    drawn: tuple[str, list[Entity], list[str]], seed: int
) -> None:
    text, entities, keep = drawn
    other = entities * 2
    random.Random(seed).shuffle(other)

    assert mask(text, other, reversed(keep)) == mask(text, entities, keep)


@given(texts_and_entities())
def test_masking_twice_can_be_undone(drawn: tuple[str, list[Entity], list[str]]) -> None:
    text, entities, keep = drawn
    once = mask(text, entities, keep)
    pairs = [entity for entity in entities if isinstance(entity, tuple)]
    twice = mask(once.text, pairs)

    assert unmask(unmask(twice.text, twice.mapping), once.mapping) == text


def test_a_locator_can_be_shared() -> None:
    text = "Ann Lee, 32, lives in York."
    locator = Locator(text)
    for entities in ([("Ann Lee", "PER")], [("32", "DEM"), ("York", "LOC")]):
        assert mask(text, entities, ["32"], locator=locator) == mask(text, entities, ["32"])
