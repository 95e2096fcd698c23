from __future__ import annotations

import sys
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, ClassVar

import pytest

from pii_bench.errors import MissingExtraError
from pii_bench.systems.encoder import augment as module
from pii_bench.systems.encoder.augment import augmented, synonyms, with_synonyms
from tests.systems.encoder.test_augment import TEXT, sample

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Sense:
    """A synset as WordNet has it."""

    kind: str
    names: tuple[str, ...]

    def pos(self) -> str:
        return self.kind

    def lemma_names(self) -> list[str]:
        return list(self.names)


class SmallWordNet:
    senses: ClassVar = {
        "quickly": [Sense("r", ("quickly", "rapidly", "chop-chop", "right_away"))],
        "glad": [Sense("a", ("glad", "happy")), Sense("s", ("beaming", "glad"))],
        "earns": [Sense("v", ("gain", "earn"))],
        "book": [Sense("n", ("book", "volume")), Sense("v", ("book", "reserve"))],
    }

    def synsets(self, word: str) -> list[Sense]:
        return self.senses.get(word, [])


@pytest.fixture(autouse=True)
def wordnet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    synonyms.cache_clear()
    monkeypatch.setattr(module, "_wordnet", SmallWordNet)
    yield
    synonyms.cache_clear()


def test_a_synonym_fits_in_the_place_of_the_word() -> None:
    # Single words in small letters; two kinds of adjective are one part of speech.
    assert synonyms("quickly") == ("rapidly",)
    assert synonyms("glad") == ("happy",)
    # Inflected, of two parts of speech, and unknown.
    assert synonyms("earns") == synonyms("book") == synonyms("zyxt") == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She came quickly, glad.", "She came rapidly, happy."),
        ("Quickly!", "Quickly!"),
        ("a quickly-made bed", "a quickly-made bed"),
    ],
)
def test_words_are_replaced_but_not_names_and_parts_of_words(text: str, found: str) -> None:
    assert with_synonyms(text, Random(1), 1) == found
    assert with_synonyms(text, Random(1), 0) == text


def test_a_share_of_the_words_is_replaced() -> None:
    found = with_synonyms("quickly " * 1_000, Random(1), 0.3)

    assert 250 < found.count("rapidly") < 350


def test_entities_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallWordNet, "synsets", lambda _, word: [Sense("n", (word, "word"))])
    found = [augmented(sample(), ["synonyms"], Random(seed)) for seed in range(20)]

    texts = {each.description for each in found if each is not None}
    assert texts == {TEXT, TEXT.replace("earns", "word")}


def test_without_wordnet_the_error_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    module._wordnet.cache_clear()
    monkeypatch.setitem(sys.modules, "wn", None)

    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[synonyms\]'"):
        synonyms("quickly")
