from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.scorer.tokens import tokenize


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
    ],
)
def test_a_text_of_any_script_is_split(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_a_mark_stays_with_its_letter_composed_or_not() -> None:
    assert pieces("Jose\u0301 Ruiz") == ["Jose\u0301", "Ruiz"]
    assert pieces("\u0301 a") == ["\u0301", "a"]


def test_a_lone_surrogate_is_a_token() -> None:
    assert pieces("a \ud800 b") == ["a", "\ud800", "b"]


@given(st.text())
def test_tokens_are_in_order_and_leave_out_only_what_cannot_be_seen(text: str) -> None:
    tokens = tokenize(text)

    assert all(token.start < token.end for token in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))
    assert not any(char.isspace() for piece in pieces(text) for char in piece)
    seen = {place for token in tokens for place in range(token.start, token.end)}
    assert not any(text[place].isalnum() for place in set(range(len(text))) - seen)
