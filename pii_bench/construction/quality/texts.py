"""How alike the descriptions are, once their entities are blanked."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final

from pii_bench.construction.quality.measure import Measure, Unit
from pii_bench.datasets.check.duplicates import NEAR, near_earlier
from pii_bench.datasets.check.text import blanked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample

    Sentence = tuple[str, ...]
    """Its words."""

_LIKENESS_GOAL: Final = 0.01
_WORDS_COMPARED: Final = 100_000
_OPENING: Final = 3

_WORD: Final = re.compile(r"<[A-Z]+>|\w+(?:['’]\w+)*")
# Behind a full stop and what closes with it, or where a line ends.
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|\s*\n\s*")


def text_measures(sets: Mapping[str, Sequence[Sample]]) -> list[Measure]:
    """Measure descriptions with every entity replaced by its type, such as `<PER>`.

    Near neighbours are sought in all sets together (overlap of word 5-grams, see
    `check.duplicates.near_earlier`). Case and punctuation do not count.

    Args:
        sets: samples by name of the set, at least one each.
    """
    texts = {name: [blanked(sample) for sample in samples] for name, samples in sets.items()}
    split = {name: [sentences(text) for text in own] for name, own in texts.items()}
    repeated = {name: _most_frequent(map(set, own)) for name, own in split.items()}
    openings = {
        name: _most_frequent([sentence[:_OPENING]] for sentence in chain(*own))
        for name, own in split.items()
    }
    own_words = {
        name: [word for text in own for word in _words(text) if not _is_blank(word)]
        for name, own in texts.items()
    }
    return [
        Measure(
            f"descriptions whose nearest neighbour shares over {NEAR} of the 5-grams",
            Unit.SHARE,
            _near_shares(texts),
            goal=_LIKENESS_GOAL,
        ),
        _frequency("samples that hold the most frequent sentence", repeated, _LIKENESS_GOAL),
        _frequency(f"sentences with the most frequent {_OPENING} first words", openings),
        Measure(
            "distinct words",
            Unit.COUNT,
            {name: len(set(words)) for name, words in own_words.items()},
        ),
        Measure(
            f"type-token ratio of the first {_WORDS_COMPARED:,} words",
            Unit.SCORE,
            {name: type_token_ratio(words) for name, words in own_words.items()},
        ),
    ]


def sentences(text: str) -> list[Sentence]:
    """The sentences of a blanked description, as words in lower case.

    What has less than three words, or nothing but placeholders, is a heading or a
    signature and no sentence.
    """
    split = (tuple(_words(part)) for part in _SENTENCE_END.split(text))
    return [
        sentence
        for sentence in split
        if len(sentence) >= _OPENING and not all(map(_is_blank, sentence))
    ]


def type_token_ratio(words: Sequence[str]) -> float:
    """Distinct words by words, over the first 100,000: longer texts repeat themselves more."""
    compared = words[:_WORDS_COMPARED]
    return len(set(compared)) / len(compared) if compared else 0.0


def _near_shares(texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    owners = [name for name, own in texts.items() for _ in own]
    whole = [*chain(*texts.values())]
    near = {right for _, right, _ in near_earlier(whole)}
    # The first of those that are alike has only later ones.
    near |= {len(whole) - 1 - right for _, right, _ in near_earlier(whole[::-1])}
    counts = Counter(owners[place] for place in near)
    return {name: counts[name] / len(own) for name, own in texts.items()}


def _most_frequent(groups: Iterable[Iterable[Sentence]]) -> tuple[Sentence, float]:
    """What the largest share of groups holds, and that share."""
    listed = [*groups]
    counts = Counter(chain(*listed))
    if not counts:
        return (), 0.0
    # Among equals the first by alphabet: sets have no order of their own.
    found, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return found, count / len(listed)


def _frequency(
    name: str, found: Mapping[str, tuple[Sentence, float]], goal: float | None = None
) -> Measure:
    return Measure(
        name,
        Unit.SHARE,
        {owner: share for owner, (_, share) in found.items()},
        goal=goal,
        examples={owner: " ".join(words) for owner, (words, _) in found.items()},
    )


def _words(text: str) -> list[str]:
    return [word if _is_blank(word) else word.lower() for word in _WORD.findall(text)]


def _is_blank(word: str) -> bool:
    return word.startswith("<")
