from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.decode import CONTEXT, WINDOW, decode, emissions_of
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.systems.tagger.viterbi import Transitions
from pii_bench.systems.tagger.vocabulary import Features, Vocabulary
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def test_a_text_becomes_spans() -> None:
    spans = decode("Word Ann Lee, word", VOCABULARY, NEUTRAL, names_are_people)

    assert spans == [DetectedSpan(5, 12, PiiType.PER)]


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_text_without_tokens_has_no_spans(text: str) -> None:
    def score(features: Features) -> NDArray[np.float32]:
        raise AssertionError(f"asked for {len(features)} tokens")

    assert decode(text, VOCABULARY, NEUTRAL, score) == []


@pytest.mark.parametrize("before", [0, 1, CONTEXT, WINDOW - 1, WINDOW, 2 * WINDOW - 1, 1000])
def test_a_span_is_found_wherever_it_stands_in_a_long_text(before: int) -> None:
    text = "word " * before + "Ann Lee" + " word" * 1000

    spans = decode(text, VOCABULARY, NEUTRAL, names_are_people)

    assert spans == [DetectedSpan(5 * before, 5 * before + 7, PiiType.PER)]


@pytest.mark.parametrize("size", [1, 383, 384, 385, 512, 513, 1024])
def test_every_token_is_scored_once_with_its_neighbours_in_sight(size: int) -> None:
    lengths = []

    def own_place_and_sight(features: Features) -> NDArray[np.float32]:
        lengths.append(len(features))
        places = features.words.astype(np.float32)
        return np.stack([places, places - places[0], places[-1] - places], axis=1)

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


def test_tokens_and_windows_agree() -> None:
    text = "Ann Lee " * 500

    assert len(decode(text, VOCABULARY, NEUTRAL, names_are_people)) == len(tokenize(text)) // 2
