from __future__ import annotations

from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.scorer.text import tokenize
from pii_bench.systems.tagger import (
    CONTEXT,
    LABELS,
    WINDOW,
    Transitions,
    best_labels,
    decode,
    emissions_of,
    gold_spans,
    labels_of,
    may_follow,
    spans_of,
)
from pii_bench.systems.tagger.vocabulary import Features, Vocabulary
from pii_bench.taxonomy import PiiType
from tests.builders import make_sample, unlisted

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXT = "Ann Lee is 32, from Oslo."


def numbers(*labels: str) -> list[int]:
    return [LABELS.index(label) for label in labels]


def test_there_is_a_b_and_an_i_of_each_type() -> None:
    assert LABELS[:3] == ("O", "B-PER", "I-PER")
    assert len(LABELS) == len(set(LABELS)) == 15


def test_every_token_that_a_span_touches_is_labelled() -> None:
    spans = [DetectedSpan(0, 7, PiiType.PER), DetectedSpan(11, 13, PiiType.DEM)]

    labels = labels_of(tokenize(TEXT), spans)

    assert labels == numbers("B-PER", "I-PER", "O", "B-DEM", "O", "O", "O", "O")
    assert labels_of(tokenize("Leeds"), [DetectedSpan(0, 3, PiiType.PER)]) == numbers("B-PER")


@pytest.mark.parametrize(
    ("text", "labels", "spans"),
    [
        # Those that touch stay apart.
        ("Ann Lee", ["B-PER", "B-PER"], [(0, 3, PiiType.PER), (4, 7, PiiType.PER)]),
        # An inside without its beginning begins a span.
        (
            "Ann Lee Oslo",
            ["I-PER", "I-PER", "I-LOC"],
            [(0, 7, PiiType.PER), (8, 12, PiiType.LOC)],
        ),
        # Nothing but punctuation is none.
        ("a , b", ["O", "B-LOC", "O"], []),
    ],
)
def test_labels_become_spans(
    text: str, labels: list[str], spans: list[tuple[int, int, PiiType]]
) -> None:
    expected = [DetectedSpan(*span) for span in spans]

    assert spans_of(text, tokenize(text), numbers(*labels)) == expected


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [("“Oslo”,", 1, 5), ("Oslo —", 0, 4), ("$5,400", 0, 6), ("5'11\"", 0, 5), ("AB-", 0, 3)],
)
def test_only_punctuation_that_is_never_part_of_a_value_is_trimmed(
    text: str, start: int, end: int
) -> None:
    tokens = tokenize(text)
    labels = numbers("B-LOC", *["I-LOC"] * (len(tokens) - 1))

    assert spans_of(text, tokens, labels) == [DetectedSpan(start, end, PiiType.LOC)]


def test_an_inside_follows_only_its_own_type() -> None:
    inside, begin_of_other = LABELS.index("I-LOC"), LABELS.index("B-ORG")

    allowed = {LABELS[before] for before in range(len(LABELS)) if may_follow(before, inside)}
    assert allowed == {"B-LOC", "I-LOC"}
    assert all(may_follow(before, begin_of_other) for before in range(len(LABELS)))


def test_gold_spans_come_in_order_and_without_overlap() -> None:
    entities = [
        {"text": "Lee", "type": "LOC", "spans": [[4, 7]]},
        {"text": "Ann Lee", "type": "PER", "spans": [[0, 7], [12, 19]]},
    ]
    subjects = [{"id": "A", "entities": entities}]
    sample = make_sample(description="Ann Lee met Ann Lee.", subjects=subjects, related=[])

    assert gold_spans(sample) == [
        DetectedSpan(0, 7, PiiType.PER),
        DetectedSpan(12, 19, PiiType.PER),
    ]
    assert gold_spans(unlisted(sample)) == gold_spans(sample)


@given(st.data())
def test_labels_give_their_spans_back(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.text("ab1$@", min_size=1, max_size=4), min_size=1, max_size=8))
    text = " ".join(words)
    starts = [sum(map(len, words[:place])) + place for place in range(len(words))]
    chosen = data.draw(
        st.lists(st.none() | st.sampled_from(PiiType), min_size=len(words), max_size=len(words))
    )
    spans = [
        DetectedSpan(start, start + len(word), pii_type)
        for start, word, pii_type in zip(starts, words, chosen, strict=True)
        if pii_type is not None
    ]
    tokens = tokenize(text)

    assert spans_of(text, tokens, labels_of(tokens, spans)) == spans


# Eighths add up without rounding, so that equal sums are equal.
EIGHTHS = st.integers(-80, 80).map(lambda eighths: eighths / 8)


def total(labels: tuple[int, ...], emissions: NDArray[np.float32], scores: Transitions) -> float:
    own = sum(float(emissions[place, label]) for place, label in enumerate(labels))
    steps = sum(float(scores.pairs[step]) for step in pairwise(labels))
    return float(scores.start[labels[0]]) + own + steps + float(scores.end[labels[-1]])


@given(st.data(), st.integers(1, 3), st.integers(1, 5))
def test_no_other_sequence_scores_higher(data: st.DataObject, labels: int, tokens: int) -> None:
    def draw(*shape: int) -> NDArray[np.float32]:
        drawn: NDArray[np.float32] = data.draw(st_numpy.arrays(np.float32, shape, elements=EIGHTHS))
        return drawn

    emissions = draw(tokens, labels)
    scores = Transitions(draw(labels), draw(labels, labels), draw(labels))

    best = tuple(best_labels(emissions, scores))

    others = product(range(labels), repeat=tokens)
    assert len(best) == tokens
    assert total(best, emissions, scores) == max(
        total(other, emissions, scores) for other in others
    )


COUNT = len(LABELS)
VOCABULARY = Vocabulary(["word", "ann", "lee"], [])
NEUTRAL = Transitions(
    np.zeros(COUNT, np.float32), np.zeros((COUNT, COUNT), np.float32), np.zeros(COUNT, np.float32)
)


def names_are_people(features: Features) -> NDArray[np.float32]:
    """Ann begins a person, Lee goes on with it."""
    label_of_word = [0, 0, 0, LABELS.index("B-PER"), LABELS.index("I-PER")]
    emissions = np.zeros((len(features), COUNT), np.float32)
    emissions[np.arange(len(features)), [label_of_word[word] for word in features.words]] = 1
    return emissions


def test_without_tokens_there_are_no_labels_and_no_spans() -> None:
    assert best_labels(np.zeros((0, COUNT), np.float32), NEUTRAL) == []
    assert decode(" ", VOCABULARY, NEUTRAL, names_are_people) == []


def test_a_span_may_reach_across_two_pieces() -> None:
    text = "word " * (WINDOW - 1) + "Ann Lee" + " word" * 1000

    start = 5 * (WINDOW - 1)
    expected = [DetectedSpan(start, start + 7, PiiType.PER)]
    assert decode(text, VOCABULARY, NEUTRAL, names_are_people) == expected


@pytest.mark.parametrize("size", [1, 384, 385, 512, 513])
def test_every_token_is_scored_once_with_its_neighbours_in_sight(size: int) -> None:
    lengths = []

    def own_place_and_sight(features: Features) -> NDArray[np.float32]:
        lengths.append(len(features))
        places = features.words.astype(np.float32)
        scores = np.zeros((len(features), COUNT), np.float32)
        scores[:, :3] = np.stack([places, places - places[0], places[-1] - places], axis=1)
        return scores

    words = ["".join(letters) for letters in islice(product("abcdefghij", repeat=4), size)]
    text = " ".join(words)
    vocabulary = Vocabulary(words, [])
    places = np.arange(size)

    emissions = emissions_of(text, tokenize(text), vocabulary, own_place_and_sight)

    # The first word of a vocabulary has the number 2.
    assert emissions[:, 0].tolist() == list(range(2, size + 2))
    assert (emissions[:, 1] >= np.minimum(places, CONTEXT)).all()
    assert (emissions[:, 2] >= np.minimum(size - 1 - places, CONTEXT)).all()
    assert max(lengths) <= WINDOW + 2 * CONTEXT


def test_a_piece_begins_as_its_text_goes_on() -> None:
    seen = []

    def shapes(features: Features) -> NDArray[np.float32]:
        seen.append(features.shapes[0])
        return np.zeros((len(features), COUNT), np.float32)

    # Full stops follow their words without a space, wherever a piece begins.
    text = "a." * (WINDOW + CONTEXT)
    emissions_of(text, tokenize(text), Vocabulary(["a"], ["a", "."]), shapes)

    assert len(seen) == 3
    # Of the piece that begins the text its first word follows nothing.
    assert seen[0] != seen[1] == seen[2]
