from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.scorer import MaskedTextScore
from pii_bench.scorer.masked_text import GoldTexts
from pii_bench.scorer.rewritten_text import Trace, score_rewritten_text, tell

#       0         1         2         3         4         5
#       012345678901234567890123456789012345678901234567890123456
TEXT = "Anna Lindqvist, 32, a nurse, lives in Göteborg and runs."
ENTITIES = [
    ("Anna Lindqvist", [(0, 14)]),
    ("32", [(16, 18)]),
    ("Göteborg", [(38, 46)]),
]


def traces(rewritten: str, query: str = "", related: tuple[str, ...] = ()) -> dict[str, Trace]:
    told = tell(TEXT, rewritten, GoldTexts(TEXT, ENTITIES, related), query)
    return {each.text.text: each.trace for each in told}


def test_the_example() -> None:
    assert [TEXT[start:end] for _, [(start, end)] in ENTITIES] == [text for text, _ in ENTITIES]


@pytest.mark.parametrize(
    ("rewritten", "told"),
    [
        ("A nurse lives in a city and runs.", (Trace.GONE, Trace.GONE, Trace.GONE)),
        (TEXT, (Trace.READABLE, Trace.READABLE, Trace.READABLE)),
        ("ANNA  LINDQVIST runs.", (Trace.READABLE, Trace.GONE, Trace.GONE)),
        ("A thirty-two-year-old runs.", (Trace.GONE, Trace.RESTATED, Trace.GONE)),
        ("A nurse of Gothenburg.", (Trace.GONE, Trace.GONE, Trace.RESTATED)),
        ("Anna runs.", (Trace.PART, Trace.GONE, Trace.GONE)),
        # Neither is told by a longer number, or a longer word.
        ("At 3200 or 1932 Annapolis.", (Trace.GONE, Trace.GONE, Trace.GONE)),
        ("", (Trace.GONE, Trace.GONE, Trace.GONE)),
    ],
)
def test_how_a_value_is_told(rewritten: str, told: tuple[Trace, ...]) -> None:
    assert tuple(traces(rewritten).values()) == told


def test_where_it_is_told() -> None:
    rewritten = "At 32 (thirty-two) in Goteborg"
    told = tell(TEXT, rewritten, GoldTexts(TEXT, ENTITIES, []))

    assert [[rewritten[start:end] for start, end in each.spans] for each in told] == [
        [],
        ["32", "thirty-two"],
        ["Goteborg"],
    ]


def test_no_part_is_told_by_what_the_query_or_the_rest_of_the_text_says() -> None:
    assert traces("Anna runs.", query="Does Anna run?")["Anna Lindqvist"] is Trace.GONE
    other = GoldTexts("Bank of Oslo. A bank.", [("Bank of Oslo", [(0, 12)])], [])

    assert tell("Bank of Oslo. A bank.", "A bank.", other)[0].trace is Trace.GONE
    assert tell("Bank of Oslo. A bank.", "In Oslo.", other)[0].trace is Trace.PART


def test_a_value_inside_a_needed_one_does_not_leak() -> None:
    text = "Ann, 32, of 32 Elm Street"
    gold = GoldTexts(text, [("32", [(5, 7)]), ("32 Elm Street", [(12, 25)])], ["32 Elm Street"])

    assert [each.leaks for each in tell(text, "She is of 32 Elm Street", gold)] == [False, False]
    assert [each.leaks for each in tell(text, "32, of 32 Elm Street", gold)] == [True, False]


@pytest.mark.parametrize(
    ("rewritten", "protection", "retention"),
    [
        (TEXT, 0, 1),
        ("", 1, 0),
        ("A nurse, 32, runs.", 1, 1),
        # Needed and restated is kept; a part is not all.
        ("A nurse, thirty-two, runs.", 1, 1),
        ("Anna, 32, runs.", 1 / 2, 1),
        ("A nurse in Gothenburg.", 1 / 2, 0),
        (None, 0, 0),
    ],
)
def test_scores(rewritten: str | None, protection: float, retention: float) -> None:
    score = score_rewritten_text(TEXT, rewritten, ENTITIES, ["32"])

    assert score == MaskedTextScore(protection, retention, None)


def test_protection_may_be_weighed() -> None:
    weights = {"Anna Lindqvist": 3.0}

    assert score_rewritten_text(TEXT, "Of Gothenburg.", ENTITIES, ["32"], weights=weights) == (
        MaskedTextScore(3 / 4, 0, None)
    )


def test_a_gold_text_without_a_place_is_left_out() -> None:
    assert score_rewritten_text("Ann", "Bo", [("Bo", [])], []) == MaskedTextScore(1, 1, None)


def test_a_span_outside_of_the_description_is_refused() -> None:
    with pytest.raises(PiiBenchError, match="span came from 0 to 9"):
        score_rewritten_text("Ann", "Bo", [("Ann", [(0, 9)])], [])


@given(st.text(max_size=30))
def test_more_text_never_protects_more_and_never_keeps_less(more: str) -> None:
    before = score_rewritten_text(TEXT, "A nurse, 32.", ENTITIES, ["32"])
    after = score_rewritten_text(TEXT, f"A nurse, 32.\n\n{more}", ENTITIES, ["32"])

    assert after.protection <= before.protection
    assert after.retention >= before.retention


@given(st.text(max_size=40))
def test_nothing_told_is_outside_of_the_rewriting(rewritten: str) -> None:
    for each in tell(TEXT, rewritten, GoldTexts(TEXT, ENTITIES, ["32"])):
        assert all(0 <= start < end <= len(rewritten) for start, end in each.spans)
        assert (each.trace is Trace.GONE) == (not each.spans)
