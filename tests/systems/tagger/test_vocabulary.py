from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.scorer.text import tokenize
from pii_bench.systems.tagger import LABELS, Transitions
from pii_bench.systems.tagger.vocabulary import (
    CHARACTERS,
    SHAPES,
    UNKNOWN,
    VOCABULARY,
    Features,
    Shape,
    Vocabulary,
    inputs_of,
    read_decoder,
    shape_of,
    write_decoder,
)
from tests.builders import read_folder

if TYPE_CHECKING:
    from pathlib import Path

THE = Vocabulary(["the", "00"], ["t", "h", "e"])


def encode(text: str, vocabulary: Vocabulary = THE) -> Features:
    return vocabulary.encode(text, tokenize(text))


def test_words_and_characters_that_come_often_are_known_the_most_frequent_first() -> None:
    vocabulary = Vocabulary.of(["The", "the", "11", "29", "11", "cat"], least=2)

    assert vocabulary.words == ("00", "the")
    assert vocabulary.characters == ("1", "e", "h", "t")
    assert (vocabulary.word_count, vocabulary.character_count) == (4, 6)
    # The order of the texts does not matter.
    assert Vocabulary.of("abc", 1).words == Vocabulary.of("cab", 1).words == ("a", "b", "c")


def test_a_word_is_known_in_any_case_and_with_any_digits_its_characters_as_written() -> None:
    features = encode("the The 42 cat")

    assert features.words.tolist() == [2, 2, 3, UNKNOWN]
    assert features.characters[:2, :4].tolist() == [[2, 3, 4, 0], [UNKNOWN, 3, 4, 0]]


def test_without_characters_a_token_is_seen_by_its_word_alone() -> None:
    vocabulary = Vocabulary.of(["the", "Cat", "cat", "42"], least=1, spelling=False)
    one, other = encode("the cat 42", vocabulary), encode("THE (Cat) 13", vocabulary)

    assert vocabulary.characters == ()
    for name in ("words", "shapes", "characters"):
        assert getattr(one, name).tolist() == getattr(other, name)[[0, 2, 4]].tolist()


def test_of_a_long_token_both_ends_are_seen() -> None:
    (seen,) = encode("t" * 12 + "x" * 40 + "h" * 12).characters

    assert seen.tolist() == [2] * 12 + [3] * 12


def test_composed_and_decomposed_texts_look_the_same() -> None:
    vocabulary = Vocabulary.of(["José"], 1)

    one, other = encode("José", vocabulary), encode("Jose\u0301", vocabulary)

    assert one.words.tolist() == other.words.tolist() == [2]
    assert one.characters.tolist() == other.characters.tolist()


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("oslo", Shape.LOWER),
        ("Oslo", Shape.TITLE),
        ("NASA", Shape.UPPER),
        ("McKay", Shape.MIXED),
        ("東", Shape.CASELESS),
        ("1985", Shape.NUMBER),
        ("QT44", Shape.ALPHANUMERIC),
        ("$", Shape.SYMBOL),
    ],
)
def test_shapes(form: str, shape: Shape) -> None:
    assert shape_of(form) is shape


def test_a_shape_says_whether_white_space_stands_before() -> None:
    free, glued = encode("a $5").shapes[1:]

    assert (free, glued) == (2 * Shape.SYMBOL, 2 * Shape.NUMBER - 1)


def test_the_network_sees_each_spelling_once() -> None:
    features = encode("the cat the")

    inputs = inputs_of(features)

    assert inputs["words"].tolist() == [[2, UNKNOWN, 2]]
    assert inputs["spellings"].shape == (2, CHARACTERS)
    spelled = inputs["spellings"][inputs["places"]]
    assert spelled.tolist() == [features.characters.tolist()]


@given(st.text())
def test_every_text_has_numbers_within_the_tables(text: str) -> None:
    features = encode(text)

    assert len(features) == len(tokenize(text)) == len(features.characters)
    assert features.words.max(initial=0) < THE.word_count
    assert features.shapes.max(initial=0) < SHAPES
    assert features.shapes.min(initial=1) > 0
    assert features.characters.max(initial=0) < THE.character_count


COUNT = len(LABELS)


KNOWN = Vocabulary(["łódź", "東"], ["ł", "'"])
NUMBERS = np.arange(COUNT, dtype=np.float32)
PAIRS = np.arange(COUNT * COUNT, dtype=np.float32).reshape(COUNT, COUNT)
SCORES = Transitions(NUMBERS, PAIRS, -NUMBERS)


def test_a_decoder_is_read_as_it_was_written_and_written_alike_again(tmp_path: Path) -> None:
    write_decoder(tmp_path / "new", KNOWN, SCORES)
    vocabulary, scores = read_decoder(tmp_path / "new")
    write_decoder(tmp_path / "again", vocabulary, scores)

    assert (vocabulary.words, vocabulary.characters) == (KNOWN.words, KNOWN.characters)
    np.testing.assert_array_equal(scores.start, NUMBERS)
    np.testing.assert_array_equal(scores.pairs, PAIRS)
    np.testing.assert_array_equal(scores.end, -NUMBERS)
    assert read_folder(tmp_path / "again") == read_folder(tmp_path / "new")


def test_other_labels_are_refused(tmp_path: Path) -> None:
    write_decoder(tmp_path, KNOWN, SCORES)
    known = json.loads((tmp_path / VOCABULARY).read_text(encoding="utf-8"))
    known["labels"].remove("I-PER")
    (tmp_path / VOCABULARY).write_text(json.dumps(known), encoding="utf-8")

    with pytest.raises(InputFileError, match=r"its labels must be O, B-PER, I-PER"):
        read_decoder(tmp_path)
