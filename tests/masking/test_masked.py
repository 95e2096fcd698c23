from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.masking import Masked, MaskedSpan, absent_tags, inexact_tags, mask, unmask
from pii_bench.scorer.locate import Locator
from tests.masking.drawn import texts_and_entities

if TYPE_CHECKING:
    from pii_bench.masking.plan import Entity

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
    assert masked.places == 5
    assert masked.not_found == ()
    assert unmask(masked.text, masked.mapping) == text


def test_writings_of_one_text_share_a_tag_and_each_comes_back_as_it_was() -> None:
    text = "Zoë Lee, Zoe\u0308\nLee, Zoë Lee"

    masked = mask(text, [("Zoë Lee", "PER")])

    assert masked.text == "<Full Name>, <Full Name>, <Full Name>"
    assert masked.mapping == {"<Full Name>": ("Zoë Lee", "Zoe\u0308\nLee", "Zoë Lee")}
    assert unmask(masked.text, masked.mapping) == text
    assert unmask("Dear <Full Name>", masked.mapping) == "Dear Zoë Lee"


def test_a_value_is_masked_in_every_writing_and_each_comes_back() -> None:
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


def test_one_letter_is_masked_as_a_word_alone() -> None:
    assert mask("I'm a man (m), 5 m.", [("m", "DEM")]).text == (
        "I'm a man (<Personal Detail>), 5 <Personal Detail>."
    )
    assert mask("Female, from Fife.", [("F", "DEM")]) == Masked(
        "Female, from Fife.", {}, (), not_found=("F",)
    )


def test_what_was_masked_is_carried_along() -> None:
    masked = mask("Ann (32) and ANN", [("Ann", "PER"), ("32", "DEM")])

    assert masked.spans == (
        MaskedSpan(0, 3, "<Person>"),
        MaskedSpan(5, 7, "<Age>"),
        MaskedSpan(13, 16, "<Person>"),
    )


def test_a_text_of_two_types_has_one_tag() -> None:
    masked = mask("Jordan met Jordan", [("Jordan", "LOC"), ("Jordan", "PER")])

    assert masked.text == "<Person> met <Person>"


def test_a_text_that_holds_tags_already_is_restored() -> None:
    text = "<Person> is what we write for Ann, <Person 1> for Bo"

    masked = mask(text, [("Ann", "PER"), ("Bo", "PER")])

    assert masked.text == "<Person> is what we write for <Person 2>, <Person 1> for <Person 3>"
    assert unmask(masked.text, masked.mapping) == text


def test_what_a_tag_stands_for_is_not_searched_for_tags() -> None:
    assert unmask("<Age>", {"<Age>": ("<Person>",), "<Person>": ("Ann",)}) == "<Person>"


def test_a_text_without_entities_stays() -> None:
    assert mask("Ann", []) == Masked("Ann", {}, ())
    assert unmask("<Age>", {}) == "<Age>"


def test_ten_tags_are_no_tag_with_a_nought() -> None:
    names = [f"Ann {letter}" for letter in "ABCDEFGHIJ"]

    masked = mask(", ".join(names), [(name, "PER") for name in names])

    assert masked.text.endswith("<Full Name 9>, <Full Name 10>")
    assert unmask("<Full Name 10>", masked.mapping) == "Ann J"


def test_neither_texts_nor_mapping_show_in_a_log() -> None:
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
        ("Age, (Age), <Full Name 3>, [Ages]", "Age, (Age), <Full Name 3>, [Ages]"),
    ],
)
def test_tags_are_restored_in_any_case_spacing_and_brackets(answer: str, restored: str) -> None:
    assert unmask(answer, MAPPING) == restored


@pytest.mark.parametrize("tag", ["<full name>", "[Full Name]", "&lt;Full Name&gt;", "[FULL_NAME]"])
def test_a_tag_without_a_number_is_restored_in_any_writing(tag: str) -> None:
    assert unmask(f"Dear {tag},", {"<Full Name>": ("Ann Lee",)}) == "Dear Ann Lee,"


def test_tags_of_other_tools_are_restored_in_any_writing() -> None:
    answer = "<PER_1> &lt;PER_1&gt; [per_1] <Per 1>"

    assert unmask(answer, {"<PER_1>": ("Ann Lee",)}) == "Ann Lee " * 3 + "Ann Lee"


def test_what_could_be_taken_for_a_tag_is_none() -> None:
    text = "Write [person], &lt;Person 1&gt; or &#60;person 2&#62; for Ann and Bo."

    masked = mask(text, [("Ann", "PER"), ("Bo", "PER")])

    assert masked.text == (
        "Write [person], &lt;Person 1&gt; or &#60;person 2&#62; for <Person 3> and <Person 4>."
    )
    assert unmask(masked.text, masked.mapping) == text


def test_tags_that_an_answer_lacks_are_told() -> None:
    assert absent_tags("Dear <Full Name 2>, [x]", MAPPING) == ["<Full Name 1>", "<Age>"]


@pytest.mark.parametrize(
    ("answer", "inexact"),
    [
        ("<Full Name 3> [full name]", ["<Full Name 3>", "[full name]"]),
        ("<Age 2>, <Age 2>", ["<Age 2>"]),
        ("<Age> <Full Name 1> <Phone Number> <b> < > <>", []),
    ],
)
def test_tags_with_another_number_are_told(answer: str, inexact: list[str]) -> None:
    assert inexact_tags(answer, MAPPING) == inexact


@given(texts_and_entities())
def test_masking_can_always_be_undone(drawn: tuple[str, list[Entity], list[str]]) -> None:
    text, entities, keep = drawn
    masked = mask(text, entities, keep)

    assert unmask(masked.text, masked.mapping) == text


@given(texts_and_entities())
def test_the_masked_text_is_the_text_with_tags_for_the_spans(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    masked = mask(text, entities, keep)

    shown = text
    for span in reversed(masked.spans):
        assert text[span.start : span.end] in masked.mapping[span.tag]
        shown = shown[: span.start] + span.tag + shown[span.end :]
    assert masked.text == shown


@given(texts_and_entities())
def test_tags_say_nothing_else_than_they_stand_for(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    masked = mask(text, entities, keep)

    assert absent_tags(masked.text, masked.mapping) == []
    assert not any(tag in text for tag in masked.mapping)
    assert sum(masked.text.count(tag) for tag in masked.mapping) == masked.places


@given(texts_and_entities(), st.integers())
def test_the_order_of_entities_changes_nothing(
    drawn: tuple[str, list[Entity], list[str]], seed: int
) -> None:
    text, entities, keep = drawn
    other = entities * 2
    random.Random(seed).shuffle(other)

    assert mask(text, other, reversed(keep)) == mask(text, entities, keep)


@given(texts_and_entities())
def test_what_is_masked_can_be_masked_again(drawn: tuple[str, list[Entity], list[str]]) -> None:
    text, entities, keep = drawn
    once = mask(text, entities, keep)
    pairs = [entity for entity in entities if isinstance(entity, tuple)]
    twice = mask(once.text, pairs)

    assert unmask(unmask(twice.text, twice.mapping), once.mapping) == text


def test_places_that_are_made_before_serve_many_plans_of_a_text() -> None:
    text = "Ann Lee, 32, lives in York."
    locator = Locator(text)
    for entities in ([("Ann Lee", "PER")], [("32", "DEM"), ("York", "LOC")]):
        assert mask(text, entities, ["32"], locator=locator) == mask(text, entities, ["32"])
