"""Features of tokens (word, shape and characters as numbers), and the files of a trained tagger.

Only the files needed to run a tagger are read and written here.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pii_bench.errors import InputFileError
from pii_bench.files import RecordError, get, read_object, replacing, write_whole, writing
from pii_bench.scorer.text import nfc
from pii_bench.systems.tagger import LABELS, Transitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.scorer.text import Token

PADDING: Final = 0
UNKNOWN: Final = 1
_FIRST: Final = 2

CHARACTERS: Final = 24
"""A token is seen by this many characters: all, or its first and last twelve."""


class Shape(IntEnum):
    """The shape of a token (the spelling features of Huang et al., Section 3)."""

    LOWER = 1
    TITLE = 2
    UPPER = 3
    MIXED = 4
    CASELESS = 5
    NUMBER = 6
    ALPHANUMERIC = 7
    SYMBOL = 8


SHAPES: Final = 2 * len(Shape) + 1
"""Number of shapes, each with white space before it or not, and 0 for padding."""


@dataclass(frozen=True, slots=True)
class Features:
    """Tokens of one text as numbers: indices of words, shapes and characters.

    Shapes (tokens,), (tokens,) and (tokens, `CHARACTERS`).
    """

    words: NDArray[np.int64]
    shapes: NDArray[np.int64]
    characters: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, part: slice) -> Features:
        return Features(self.words[part], self.shapes[part], self.characters[part])


class Vocabulary:
    """The words and characters of a network; 0 is padding, 1 any other.

    Words are lower-cased, with every digit as 0. Without characters, a token is seen by its word
    alone, and not by how it is written.
    """

    def __init__(self, words: Sequence[str], characters: Sequence[str]) -> None:
        self.words, self.characters = tuple(words), tuple(characters)
        self._words = {word: index for index, word in enumerate(words, _FIRST)}
        self._characters = {char: index for index, char in enumerate(characters, _FIRST)}

    @classmethod
    def of(cls, forms: Iterable[str], least: int, *, spelling: bool = True) -> Vocabulary:
        """Return the words and characters with at least `least` occurrences among tokens.

        The most frequent come first.
        """
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form in map(nfc, forms):
            words[_word(form)] += 1
            characters.update(form)
        return cls(_frequent(words, least), _frequent(characters, least) if spelling else ())

    @property
    def word_count(self) -> int:
        """Rows of the table of word embeddings."""
        return _FIRST + len(self.words)

    @property
    def character_count(self) -> int:
        """Rows of the table of character embeddings."""
        return _FIRST + len(self.characters)

    def encode(self, text: str, tokens: Sequence[Token]) -> Features:
        """Return the features of a text."""
        size = len(tokens)
        words = np.zeros(size, np.int64)
        shapes = np.zeros(size, np.int64)
        characters = np.zeros((size, CHARACTERS), np.int64)
        end = -1
        for place, token in enumerate(tokens):
            form = nfc(text[token.start : token.end])
            words[place] = self._words.get(_word(form), UNKNOWN)
            if not self.characters:
                # The same for every token.
                shapes[place], characters[place, 0] = 1, UNKNOWN
                continue
            shapes[place] = 2 * shape_of(form) - (token.start == end)
            seen = [self._characters.get(char, UNKNOWN) for char in _ends(form)]
            characters[place, : len(seen)] = seen
            end = token.end
        return Features(words, shapes, characters)


def distinct(characters: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct spellings of tokens, shape (..., `CHARACTERS`): most tokens repeat.

    The shapes are (spellings, `CHARACTERS`), and (...) for which one occurs where.
    """
    rows = characters.reshape(-1, CHARACTERS)
    spellings, places = np.unique(rows, axis=0, return_inverse=True)
    return spellings, places.reshape(characters.shape[:-1])


def inputs_of(features: Features) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of the network for one text, in their order.

    Shapes (1, tokens), (1, tokens), (spellings, characters) and (1, tokens).
    """
    spellings, places = distinct(features.characters)
    return {
        "words": features.words[None],
        "shapes": features.shapes[None],
        "spellings": spellings,
        "places": places[None],
    }


def shape_of(form: str) -> Shape:
    """Return the shape of a token."""
    if not any(map(str.isalnum, form)):
        return Shape.SYMBOL
    if any(map(str.isdigit, form)):
        return Shape.ALPHANUMERIC if any(map(str.isalpha, form)) else Shape.NUMBER
    if form.islower():
        return Shape.LOWER
    if form.istitle():
        return Shape.TITLE
    if form.isupper():
        return Shape.UPPER
    return Shape.CASELESS if form.lower() == form.upper() else Shape.MIXED


def _word(form: str) -> str:
    return re.sub(r"\d", "0", form.lower())


def _ends(form: str) -> str:
    half = CHARACTERS // 2
    return form if len(form) <= CHARACTERS else form[:half] + form[-half:]


def _frequent(counts: Counter[str], least: int) -> list[str]:
    # Ties by code point, so that the same texts in another order give the same numbers.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, count in ranked if count >= least]


EMISSIONS: Final = "emissions.onnx"
TRANSITIONS: Final = "transitions.npz"
VOCABULARY: Final = "vocabulary.json"
LOG: Final = "training.json"


def write_decoder(folder: Path, vocabulary: Vocabulary, scores: Transitions) -> None:
    """Write `VOCABULARY` and `TRANSITIONS`; the same input gives the same bytes."""
    known = {"labels": LABELS, "characters": vocabulary.characters, "words": vocabulary.words}
    write_whole(folder / VOCABULARY, json.dumps(known, ensure_ascii=False, indent=0) + "\n")
    with writing(folder / TRANSITIONS), replacing(folder / TRANSITIONS) as file:
        np.savez(file, start=scores.start, pairs=scores.pairs, end=scores.end)


def read_decoder(folder: Path) -> tuple[Vocabulary, Transitions]:
    """Read what `write_decoder` wrote.

    Raises:
        InputFileError: a file is missing, broken or of other labels.
    """
    vocabulary = read_object(folder / VOCABULARY, "vocabulary of a tagger", _vocabulary)
    transitions = folder / TRANSITIONS
    try:
        with np.load(transitions, allow_pickle=False) as scores:
            return vocabulary, Transitions(scores["start"], scores["pairs"], scores["end"])
    except OSError as error:
        raise InputFileError(transitions, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputFileError(transitions, "holds no transitions of a tagger") from error


def _vocabulary(known: dict[str, Any]) -> Vocabulary:
    if tuple(get(known, "labels", list)) != LABELS:
        raise RecordError(f"its labels must be {', '.join(LABELS)}")
    return Vocabulary(get(known, "words", list), get(known, "characters", list))
