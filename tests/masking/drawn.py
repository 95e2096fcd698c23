"""Hypothesis strategies: short texts, whose entities often meet and overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from pii_bench.masking.masked import Entity

TYPES: Final = st.sampled_from([*PiiType, "EMAIL", ""])

PIECES: Final = st.sampled_from(
    [
        *("Ann", "Lee", "Annual", "32", "ann", "李明", "שלום", "👩‍👩‍👧", "🇫🇮", "e\u0301", "\u00e9"),
        *(" ", " ", " ", "\n", "\u00a0", ",", "-", "<", ">", "\u0338", "\u200b", "\u200d"),
        *("O'Neil", "O’NEIL", "ANN", "Ａnn", "An\u00adn", "\u00ad", "Lee-Ann", "Lee‑Ann", "m"),
        *("<Person>", "<Full Name>", "<Full Name 1>", "<Age>", "<Person 2>", "Person", "\ud800"),
    ]
)

TEXTS: Final = st.one_of(
    st.lists(PIECES, max_size=14).map("".join),
    st.text(st.characters(), max_size=20),
)


@st.composite
def texts_and_entities(draw: st.DrawFn) -> tuple[str, list[Entity], list[str]]:
    """A text, entities that it may contain, and texts to keep."""
    text = draw(TEXTS)
    offsets = st.integers(0, len(text))
    bounds = st.tuples(offsets, offsets).map(sorted)
    pieces = st.one_of(bounds.map(lambda ends: text[slice(*ends)]), TEXTS)
    pairs = st.tuples(pieces, TYPES)
    spans = st.tuples(bounds, st.sampled_from(PiiType)).map(
        lambda drawn: DetectedSpan(drawn[0][0], drawn[0][1], drawn[1])
    )
    entities = draw(st.lists(st.one_of(pairs, spans), max_size=5))
    return text, entities, draw(st.lists(pieces, max_size=2))


WORDS: Final = st.lists(st.sampled_from(["Ann", "Lee", "Bo", "32", "lives"]), min_size=1)


@st.composite
def words_and_entities(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]], list[str]]:
    """Words separated by spaces; entities and kept texts are runs of them."""
    words = draw(WORDS.filter(lambda drawn: len(drawn) < 12))

    def run(ends: tuple[int, int]) -> str:
        first, length = ends
        return " ".join(words[first : first + length])

    runs = st.tuples(st.integers(0, len(words) - 1), st.integers(1, 3)).map(run)
    entities = draw(st.lists(st.tuples(runs, st.sampled_from(PiiType)), max_size=4))
    return " ".join(words), entities, draw(st.lists(runs, max_size=2))
