from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.scorer import MaskedTextScore, masking_headline, score_masked_text
from pii_bench.scorer.masked_text import GoldTexts, Trace, find_traces, score_rewritten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    Spans = Sequence[tuple[int, int]]
    Drawn = tuple[str, list[tuple[str, Spans]], list[str], Spans, Spans]

#        0         1         2         3
#        0123456789012345678901234567890123456
TEXT = "Ann Lee, 32, is in Oslo. Ann Lee naps"
NAME: Final = ("Ann Lee", [(0, 7), (25, 32)])
AGE: Final = ("32", [(9, 11)])
CITY: Final = ("Oslo", [(19, 23)])
ENTITIES: Final = [NAME, AGE, CITY]

# Outside all spans are 11 visible characters: "," "," "is" "in" "." "naps".
EVERYTHING: Final = [(0, len(TEXT))]


@pytest.mark.parametrize(
    ("masked", "protection", "retention", "collateral"),
    [
        ([], 0, 1, 0),
        (EVERYTHING, 1, 0, 1),
        ([(0, 7), (9, 11), (25, 32)], 1, 1, 0),
        # One of two occurrences is readable, or one character of one.
        ([(0, 7), (9, 11)], 1 / 2, 1, 0),
        ([(0, 7), (9, 11), (25, 31)], 1 / 2, 1, 0),
        # The space between two masked words does not count.
        ([(0, 3), (4, 7), (9, 11), (25, 28), (29, 32)], 1, 1, 0),
        # Oslo is masked in part.
        ([(22, 23)], 0, 0, 0),
        # Of the masked ", 32, is", white space and "32" are no collateral.
        ([(7, 15)], 1 / 2, 1, 4 / 11),
        # Spans may overlap.
        ([(9, 10), (9, 11), (10, 11)], 1 / 2, 1, 0),
    ],
)
def test_scores_follow_the_masked_spans(
    masked: Spans, protection: float, retention: float, collateral: float
) -> None:
    score = score_masked_text(TEXT, masked, ENTITIES, ["Oslo"])

    assert score == MaskedTextScore(protection, retention, collateral)


# Two people called Ann Lee; the texts differ only in white space.
TWICE: Final = [("Ann Lee", [(0, 7)]), ("Ann  Lee", [(25, 32)]), AGE]


@pytest.mark.parametrize(
    ("masked", "entities", "related", "expected"),
    [
        # One readable occurrence of a needed text is enough.
        ([(0, 7)], ENTITIES, ["Ann Lee"], (0, 1, 0)),
        ([(0, 7), (25, 26)], ENTITIES, ["Ann Lee"], (0, 0, 0)),
        # There is nothing to protect or retain.
        ([], ENTITIES, ["Oslo", "32", "Ann Lee"], (1, 1, 0)),
        (EVERYTHING, ENTITIES, [], (1, 1, 1)),
        ([], [], [], (1, 1, 0)),
        # There is nothing outside the gold spans.
        ([], [(TEXT, EVERYTHING)], [], (0, 1, None)),
        # A failure scores 0 even if there is nothing to protect.
        (None, ENTITIES, ["Oslo"], (0, 0, None)),
        (None, ENTITIES, [], (0, 0, None)),
        (None, [], [], (0, 0, None)),
        # Entities with equal texts are one unit, needed if any is.
        ([(0, 7), (9, 11)], TWICE, [], (1 / 2, 1, 0)),
        ([(0, 7), (9, 11)], TWICE, ["Ann\nLee"], (1, 1, 0)),
        # Blank entities and those without spans are left out.
        ([], [*ENTITIES, (" ", [(3, 4)]), ("Rome", []), ("Bo", [])], ["Oslo", "Rome"], (0, 1, 0)),
    ],
)
def test_scores_follow_the_entities_and_what_is_needed(
    masked: Spans | None,
    entities: list[tuple[str, Spans]],
    related: list[str],
    expected: tuple[float, float, float | None],
) -> None:
    assert score_masked_text(TEXT, masked, entities, related) == MaskedTextScore(*expected)


def test_protection_can_be_weighted() -> None:
    masked = [(9, 11)]
    weights = {"Ann  Lee": 3.0, "Oslo": 2.0, "Rome": 9.0}

    def protection(weights: dict[str, float] | None) -> float:
        return score_masked_text(TEXT, masked, ENTITIES, [], weights=weights).protection

    assert protection(None) == 1 / 3
    # 32 has the default weight 1, of 3 + 1 + 2.
    assert protection(weights) == 1 / 6
    assert protection({"Ann Lee": 0, "Oslo": 0}) == 1
    # All weights are 0.
    assert protection({"Ann Lee": 0, "32": 0, "Oslo": 0}) == 1


@pytest.mark.parametrize("span", [(-1, 2), (3, 2), (0, 38)])
def test_a_span_outside_the_text_is_refused(span: tuple[int, int]) -> None:
    message = rf"a span came from {span[0]} to {span[1]}; allowed: 0 <= start <= end <= 37"
    with pytest.raises(PiiBenchError, match=message):
        score_masked_text(TEXT, [span], ENTITIES, [])
    with pytest.raises(PiiBenchError, match=message):
        score_masked_text(TEXT, [], [("x", [span])], [])


def test_one_string_or_a_negative_weight_is_refused() -> None:
    with pytest.raises(PiiBenchError, match="texts came as one str"):
        score_masked_text(TEXT, [], ENTITIES, "Oslo")
    with pytest.raises(PiiBenchError, match="a weight is below 0"):
        score_masked_text(TEXT, [], ENTITIES, [], weights={"32": -1})


class TestHeadline:
    def test_it_is_the_harmonic_mean_of_the_two_means(self) -> None:
        scores = [MaskedTextScore(1, 0, 0), MaskedTextScore(0.5, 1, None)]

        # P = 3/4, R = 1/2.
        assert masking_headline(scores) == pytest.approx(2 * 0.75 * 0.5 / 1.25)

    def test_masking_nothing_or_everything_scores_0(self) -> None:
        nothing, everything = (
            score_masked_text(TEXT, masked, ENTITIES, ["Oslo"]) for masked in ([], EVERYTHING)
        )

        assert masking_headline([nothing] * 3) == masking_headline([everything] * 3) == 0

    def test_it_is_none_without_samples(self) -> None:
        assert masking_headline([]) is None


WORDS: Final = ["Ann", "Lee", "32", "Oslo", "is", "\n", "\u00a0"]
DESCRIPTIONS: Final = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@st.composite
def maskings(draw: st.DrawFn) -> Drawn:
    """Draw a description, entities, related texts and two sets of masked spans."""
    description = draw(DESCRIPTIONS)
    offset = st.integers(0, len(description))
    span = st.tuples(offset, offset).map(lambda ends: (min(ends), max(ends)))
    spans = st.lists(span, max_size=4)
    text = st.sampled_from(["Ann", "Ann  Lee", "Ann Lee", "32", " "])
    entities: list[tuple[str, Spans]] = [*draw(st.lists(st.tuples(text, spans), max_size=4))]
    related = draw(st.lists(text, max_size=2))
    return description, entities, related, draw(spans), draw(spans)


def offsets(spans: Spans) -> set[int]:
    return {n for start, end in spans for n in range(start, end)}


@given(maskings())
def test_scores_equal_those_of_counting_characters(drawn: Drawn) -> None:
    description, entities, related, masked, _ = drawn
    gone = offsets(masked)
    needed = {" ".join(text.split()) for text in related}
    units: dict[str, list[set[int]]] = {}
    for text, spans in entities:
        if text.strip():
            unit = units.setdefault(" ".join(text.split()), [])
            unit += [{n for n in offsets([s]) if not description[n].isspace()} for s in spans]
    hidden = [all(p <= gone for p in u) for t, u in units.items() if u and t not in needed]
    kept = [any(not p & gone for p in u) for t, u in units.items() if u and t in needed]
    gold = offsets([span for text, spans in entities if text.strip() for span in spans])
    others = {n for n, c in enumerate(description) if not c.isspace()} - gold

    assert score_masked_text(description, masked, entities, related) == MaskedTextScore(
        sum(hidden) / len(hidden) if hidden else 1,
        sum(kept) / len(kept) if kept else 1,
        len(others & gone) / len(others) if others else None,
    )


@given(maskings())
def test_more_masking_never_protects_less_nor_retains_more(drawn: Drawn) -> None:
    description, entities, related, masked, more = drawn
    less = score_masked_text(description, masked, entities, related)
    larger = score_masked_text(description, [*masked, *more], entities, related)

    assert less.protection <= larger.protection
    assert less.retention >= larger.retention
    assert (less.collateral or 0) <= (larger.collateral or 0)


@given(maskings())
def test_the_order_of_arguments_changes_nothing(drawn: Drawn) -> None:
    description, entities, related, masked, _ = drawn
    backwards = [(text, list(reversed(spans))) for text, spans in reversed(entities)]

    assert score_masked_text(
        description, list(reversed(masked)), backwards, list(reversed(related))
    ) == score_masked_text(description, masked, entities, related)


#       0         1         2         3         4         5
#       012345678901234567890123456789012345678901234567890123456
STORY = "Anna Lindqvist, 32, a nurse, lives in Göteborg and runs."
VALUES = [
    ("Anna Lindqvist", [(0, 14)]),
    ("32", [(16, 18)]),
    ("Göteborg", [(38, 46)]),
]


def traces(rewritten: str, query: str = "") -> dict[str, Trace]:
    found = find_traces(STORY, rewritten, GoldTexts(STORY, VALUES, []), query)
    return {trace.text.text: trace.trace for trace in found}


@pytest.mark.parametrize(
    ("rewritten", "expected"),
    [
        ("A nurse lives in a city and runs.", (Trace.GONE, Trace.GONE, Trace.GONE)),
        (STORY, (Trace.READABLE, Trace.READABLE, Trace.READABLE)),
        ("ANNA  LINDQVIST runs.", (Trace.READABLE, Trace.GONE, Trace.GONE)),
        ("A thirty-two-year-old runs.", (Trace.GONE, Trace.RESTATED, Trace.GONE)),
        ("A nurse of Gothenburg.", (Trace.GONE, Trace.GONE, Trace.RESTATED)),
        ("Anna runs.", (Trace.PART, Trace.GONE, Trace.GONE)),
        # Longer numbers and words.
        ("At 3200 or 1932 Annapolis.", (Trace.GONE, Trace.GONE, Trace.GONE)),
        ("", (Trace.GONE, Trace.GONE, Trace.GONE)),
    ],
)
def test_traces_of_values(rewritten: str, expected: tuple[Trace, ...]) -> None:
    assert tuple(traces(rewritten).values()) == expected


def test_traces_have_their_spans() -> None:
    rewritten = "At 32 (thirty-two) in Goteborg"
    found = find_traces(STORY, rewritten, GoldTexts(STORY, VALUES, []))

    assert [[rewritten[start:end] for start, end in trace.spans] for trace in found] == [
        [],
        ["32", "thirty-two"],
        ["Goteborg"],
    ]


def test_words_of_the_query_or_the_rest_of_the_text_are_no_part() -> None:
    assert traces("Anna runs.", query="Does Anna run?")["Anna Lindqvist"] is Trace.GONE
    other = GoldTexts("Bank of Oslo. A bank.", [("Bank of Oslo", [(0, 12)])], [])

    assert find_traces("Bank of Oslo. A bank.", "A bank.", other)[0].trace is Trace.GONE
    assert find_traces("Bank of Oslo. A bank.", "In Oslo.", other)[0].trace is Trace.PART


def test_a_value_inside_a_needed_one_does_not_leak() -> None:
    text = "Ann, 32, of 32 Elm Street"
    gold = GoldTexts(text, [("32", [(5, 7)]), ("32 Elm Street", [(12, 25)])], ["32 Elm Street"])

    def leaks(rewritten: str) -> list[bool]:
        return [trace.leaks for trace in find_traces(text, rewritten, gold)]

    assert leaks("She is of 32 Elm Street") == [False, False]
    assert leaks("32, of 32 Elm Street") == [True, False]


@pytest.mark.parametrize(
    ("rewritten", "protection", "retention"),
    [
        (STORY, 0, 1),
        ("", 1, 0),
        ("A nurse, 32, runs.", 1, 1),
        # A restated text is retained; a part of it is not enough.
        ("A nurse, thirty-two, runs.", 1, 1),
        ("Anna, 32, runs.", 1 / 2, 1),
        ("A nurse in Gothenburg.", 1 / 2, 0),
        (None, 0, 0),
    ],
)
def test_scores_of_rewritings(rewritten: str | None, protection: float, retention: float) -> None:
    score = score_rewritten_text(STORY, rewritten, VALUES, ["32"])

    assert score == MaskedTextScore(protection, retention, None)


def test_protection_of_a_rewriting_can_be_weighted() -> None:
    weights = {"Anna Lindqvist": 3.0}

    assert score_rewritten_text(STORY, "Of Gothenburg.", VALUES, ["32"], weights=weights) == (
        MaskedTextScore(3 / 4, 0, None)
    )


@given(st.text(max_size=30))
def test_longer_rewritings_never_protect_more_nor_retain_less(more: str) -> None:
    before = score_rewritten_text(STORY, "A nurse, 32.", VALUES, ["32"])
    after = score_rewritten_text(STORY, f"A nurse, 32.\n\n{more}", VALUES, ["32"])

    assert after.protection <= before.protection
    assert after.retention >= before.retention


@given(st.text(max_size=40))
def test_spans_of_traces_are_inside_the_rewriting(rewritten: str) -> None:
    for trace in find_traces(STORY, rewritten, GoldTexts(STORY, VALUES, ["32"])):
        assert all(0 <= start < end <= len(rewritten) for start, end in trace.spans)
        assert (trace.trace is Trace.GONE) == (not trace.spans)
