from __future__ import annotations

import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.masking.places import Places

ZERO_WIDTH: Final = "\u200b\u2060\ufeff"


def found(text: str, wanted: str) -> list[str]:
    return [text[start:end] for start, end in Places(text).spans(wanted)]


def test_a_text_is_found_wherever_it_stands() -> None:
    assert Places("Ann and Bo, Ann's friend").spans("Ann") == ((0, 3), (12, 15))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Annual report by Ann", "Ann"),
        ("MaryAnn met Ann", "Ann"),
        ("ann_lee is Ann", "Ann"),
        ("Flat 320, age 32", "32"),
        ("Übermut und Mut", "Mut"),
        # e and U+0301, then x: the mark does not end the word.
        ("lee\u0301x lee", "lee"),
    ],
)
def test_a_part_of_a_word_is_another_text(text: str, wanted: str) -> None:
    assert Places(text).spans(wanted) == ((len(text) - len(wanted), len(text)),)


def test_what_stands_only_inside_words_is_found_there() -> None:
    # Finnish: "to Anna".
    assert found("Kerro Annalle", "Anna") == ["Anna"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("李明在北京工作", "李明"), ("김철수는 의사다", "김철수"), ("สมชายอยู่เชียงใหม่", "สมชาย")],
)
def test_scripts_without_spaces_have_no_longer_words(text: str, wanted: str) -> None:
    assert found(text, wanted) == [wanted]


def test_white_space_and_unicode_forms_are_as_in_the_scorer() -> None:
    text = "Zoe\u0308  \n Le\u0301vy, Zo\u00eb L\u00e9vy"

    assert found(text, "Zo\u00eb L\u00e9vy") == ["Zoe\u0308  \n Le\u0301vy", "Zo\u00eb L\u00e9vy"]
    assert found(text, "Zoe\u0308 Le\u0301vy") == ["Zoe\u0308  \n Le\u0301vy", "Zo\u00eb L\u00e9vy"]


def test_a_letter_is_not_found_without_its_mark() -> None:
    assert found("Zoe\u0308", "Zoe") == []


def test_zero_width_characters_do_not_hide_a_text() -> None:
    assert found("\ufeffAnn\u200b \u200bLe\u200be!", "Ann Lee") == ["Ann\u200b \u200bLe\u200be"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("signed: ANN LEE", "Ann Lee"),
        ("Ann O’Brien", "Ann O'Brien"),
        ("2020–2024", "2020-2024"),
        ("Tel. ９０２", "902"),
        ("Große Straße", "GROSSE STRASSE"),
    ],
)
def test_what_stands_nowhere_is_found_in_another_writing(text: str, wanted: str) -> None:
    assert len(found(text, wanted)) == 1


def test_another_writing_counts_only_where_the_right_one_is_missing() -> None:
    assert found("May I call May?", "May") == ["May", "May"]
    assert found("I may call May.", "May") == ["May"]
    assert found("MAY 5, dismayed", "may") == ["MAY"]


@pytest.mark.parametrize("wanted", ["", " \n", "\u200b", "Bo"])
def test_what_is_blank_or_absent_stands_nowhere(wanted: str) -> None:
    assert Places("Ann \u200b Lee").spans(wanted) == ()


def test_every_character_is_found_in_each_of_its_forms() -> None:
    decomposed = {
        character: unicodedata.normalize("NFD", character)
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.decomposition(character)[:1] not in {"", "<"}
        or 0xAC00 <= ord(character) <= 0xD7A3
    }

    missed = [
        character
        for character, apart in decomposed.items()
        if not character.isspace()
        and not (Places(f". {apart} .").spans(character) and Places(character).spans(apart))
    ]

    assert len(decomposed) > 13_000
    assert missed == []


@given(st.text(), st.text(), st.text())
def test_a_text_between_others_is_found_whichever_form_it_has(
    before: str, wanted: str, after: str
) -> None:
    text = f"{before} {unicodedata.normalize('NFD', wanted)} {after}"

    blank = not wanted.translate(dict.fromkeys(map(ord, ZERO_WIDTH))).strip()
    assert blank or Places(text).spans(unicodedata.normalize("NFC", wanted))


@given(st.text("aB .\u0301\u200b李", max_size=20), st.text("aB \u0301", max_size=3))
def test_spans_lie_in_the_text_and_in_order(text: str, wanted: str) -> None:
    spans = Places(text).spans(wanted)

    assert list(spans) == sorted(set(spans))
    assert all(0 <= start < end <= len(text) for start, end in spans)
