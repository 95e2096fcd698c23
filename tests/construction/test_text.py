from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.people import Fact, Mention
from pii_bench.construction.text import flatten, length, tidy

LUND = Mention(("A",), Fact("City/Region", "home", "Lund"))
IN_POST = Mention(("A",), Fact("Duration", "in-post", "41 days"))
LOWER = Mention(("A",), Fact("Occupation", "", "night porter"))


def text(*pieces: str | Mention, capitals: bool = True) -> str:
    return flatten(tidy(pieces, capitals=capitals))[0]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  a   b\tc ", "A b c"),
        ("well , yes : so .", "Well, yes: so."),
        ("well,, yes", "Well, yes"),
        ("one; , two", "One; two"),
        ("one. two? three! four… five", "One. Two? Three! Four… Five"),
        ("he said 'no.' then left", "He said 'no.' Then left"),
        ("été", "Été"),
        ("a.b c", "A.b c"),
        ("it is 3.5 m", "It is 3.5 m"),
    ],
)
def test_spaces_punctuation_and_capitals(raw: str, expected: str) -> None:
    assert text(raw) == expected


def test_a_chat_may_do_without_capitals() -> None:
    assert text("so . yes", capitals=False) == "so. yes"


def test_a_value_is_never_changed() -> None:
    assert text(LOWER, " by day. ", LOWER, " ,, by night") == (
        "night porter by day. night porter, by night"
    )


def test_empty_alternatives_around_a_value_leave_one_space() -> None:
    assert text("from ", LUND, " ", " for ", IN_POST, " .") == "From Lund for 41 days."


def test_spans_are_code_points_with_exclusive_ends() -> None:
    content, spans = flatten(["à ", LUND, " 😀 ", IN_POST])
    assert content == "à Lund 😀 41 days"
    assert [span for _, span in spans] == [(2, 6), (9, 16)]


PIECES = st.lists(
    st.one_of(st.text("ab .,;:?!'\t", max_size=8), st.sampled_from([LUND, IN_POST, LOWER]))
)


@given(PIECES)
def test_mentions_keep_their_order_and_stand_at_their_spans(pieces: list[str | Mention]) -> None:
    tidied = tidy(pieces)
    content, spans = flatten(tidied)
    assert [mention for mention, _ in spans] == [p for p in pieces if isinstance(p, Mention)]
    assert [content[start:end] for _, (start, end) in spans] == [m.fact.value for m, _ in spans]
    assert length(tidied) == len(content)


@given(PIECES)
def test_no_space_is_doubled_or_stands_at_an_end(pieces: list[str | Mention]) -> None:
    content = text(*pieces)
    assert "  " not in content
    assert content == content.strip()
