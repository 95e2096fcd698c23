from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.scorer.text import (
    decomposed,
    entity_set,
    nfc,
    normalise,
    normalise_type,
    text_set,
    tokenize,
    tokens,
)


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        ("Ann Lee", "Ann Lee"),
        ("  Ann \t\n Lee ", "Ann Lee"),
        ("Ann\u00a0\u2003Lee\u3000", "Ann Lee"),
        ("Jose\u0301", "Jos\u00e9"),
        ("ANN lee", "ANN lee"),
        ("\u212b", "\u00c5"),  # the angstrom sign is canonically a letter
        ("\uff21", "\uff21"),  # a full-width A is only a compatible one
        (" \n ", ""),
    ],
)
def test_texts_are_normalised(raw: str, normalised: str) -> None:
    assert normalise(raw) == normalised


# Characters that decompose or are reordered by their combining class.
MOVED = st.text("aé\u0301\u0316\u0345\u0344\u0f73\u0f71\u1100\u1161\u11a8\uac00\u212b\u09be\u09c7")


@given(st.text() | MOVED)
def test_the_decomposition_equals_that_of_unicodedata(text: str) -> None:
    assert decomposed(text) == unicodedata.normalize("NFD", text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "e\u0316\u0301", "\u0345\u0301\u1161"])
def test_nfc_of_a_long_text_equals_that_of_unicodedata(marks: str) -> None:
    text = "é" + marks * 1500

    assert nfc(text) == unicodedata.normalize("NFC", text)


def test_a_hundred_thousand_marks_are_normalised_quickly() -> None:
    # The first acute composes with the letter, although a grave below is between them.
    assert normalise("e" + "\u0316\u0301" * 50_000) == "é" + "\u0316" * 50_000 + "\u0301" * 49_999


@given(st.text())
def test_normalise_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_a_type_is_stripped_and_upper_cased() -> None:
    assert normalise_type(" Org\n") == "ORG"


def test_one_string_is_refused_as_texts() -> None:
    with pytest.raises(PiiBenchError, match="came as one str") as caught:
        text_set("Ann Lee")
    assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    "subject",
    [
        ["Xi"],  # unpacks like a pair
        {"Xi": "PER"},
        [{"text": "Xi", "type": "PER"}],
        [("Xi", "PER", "Name")],
    ],
)
def test_an_entity_that_is_not_a_pair_is_refused(subject: list[tuple[str, str]]) -> None:
    with pytest.raises(PiiBenchError, match=r"allowed: a pair \(text, type\)") as caught:
        entity_set(subject)
    assert "Xi" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("St. Brendan's Hospital", ["st", "brendan", "s", "hospital"]),
        ("snake_case $4,350", ["snake", "case", "4", "350"]),
        ("QT448120", ["qt448120"]),
        ("", []),
        ("?!", []),
        ("Łódź-Süd", ["łódź", "süd"]),
        ("Москва 12", ["москва", "12"]),
        ("x²", ["x²"]),
        # Vowel signs, virama and accents without a composed form stay in their word.
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("x\u0302y", ["x\u0302y"]),
        ("مُحَمَّد", ["مُحَمَّد"]),
        ("क्\u200cष", ["क्\u200cष"]),
        ("\u0130zmir", ["i\u0307zmir"]),  # lower-casing makes a combining dot
        ("\u0301 a \u0301b", ["a", "b"]),  # a mark without a letter
        # One token per character, with its marks.
        ("王小明", ["王", "小", "明"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("王Wang5号", ["王", "wang5", "号"]),
        ("佐々木・タロー", ["佐", "々", "木", "タ", "ロ", "ー"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("\uff76\uff9e\uff78", ["\uff76\uff9e", "\uff78"]),
        ("김철수", ["김", "철", "수"]),
        ("\u1112\u119e", ["\u1112", "\u119e"]),  # old Hangul, which NFC cannot compose
        ("ที่นี่", ["ที่", "นี่"]),
        ("น้ำ๕", ["น้", "ำ", "๕"]),
        ("、。฿", []),
    ],
)
def test_rouge_l_tokens(text: str, expected: list[str]) -> None:
    assert list(tokens(text)) == expected


def pieces(text: str) -> list[str]:
    return [text[token.start : token.end] for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\u00a0\u200b", []),
        ("a 32-year-old, then", ["a", "32", "-", "year", "-", "old", ",", "then"]),
        ("$5,400 by 17:45", ["$", "5", ",", "400", "by", "17", ":", "45"]),
        ("@night_owl77", ["@", "night_owl77"]),
        ("St. Brendan's", ["St", ".", "Brendan", "'", "s"]),
        ("Łódź, Ōsaka", ["Łódź", ",", "Ōsaka"]),
        ("Москва́ и Ψυχή", ["Москва́", "и", "Ψυχή"]),
        ("नरेन्द्र मोदी", ["नरेन्द्र", "मोदी"]),
        ("می‌روم", ["می‌روم"]),
        ("王小明住在東京", ["王", "小", "明", "住", "在", "東", "京"]),
        ("김민수는", ["김", "민", "수", "는"]),
        ("ฉันชื่อ", ["ฉั", "น", "ชื่", "อ"]),
        ("👍🏽ok", ["👍", "🏽", "ok"]),
        ("Jose\u0301 Ruiz", ["Jose\u0301", "Ruiz"]),
        ("\u0301 a", ["\u0301", "a"]),
        pytest.param("a \ud800 b", ["a", "\ud800", "b"], id="lone surrogate"),
    ],
)
def test_a_text_of_any_script_is_split(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text())
def test_tokens_are_in_order_and_cover_all_visible_letters(text: str) -> None:
    tokens = tokenize(text)

    assert all(token.start < token.end for token in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))
    assert not any(char.isspace() for piece in pieces(text) for char in piece)
    seen = {place for token in tokens for place in range(token.start, token.end)}
    assert not any(text[place].isalnum() for place in set(range(len(text))) - seen)
