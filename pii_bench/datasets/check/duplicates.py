"""Descriptions that say the same, or nearly, within a file and across files."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.check.sets import is_derived, origins
from pii_bench.datasets.check.text import Problem, blanked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample

NEAR: Final = 0.5
"""Descriptions that share more than this of their 5-grams are near-duplicates."""

_WORDS: Final = 5
_AT_LEAST: Final = 16
_WORD: Final = re.compile(r"<[A-Z]+>|\w+(?:['’]\w+)*")

Near: TypeAlias = tuple[int, int, float]
"""Two texts, the earlier one first, and their overlap."""


@dataclass(slots=True)
class Effort:
    """How much a search for near texts may compare, and how far it got.

    Attributes:
        most: 5-grams to look at, over all texts. Each text has an equal part and what those before
            it left, and is compared with `_AT_LEAST` texts in any case.
        spent: how many were looked at.
        texts: that were searched for.
        cut_short: those of them that were not compared with every text that may be near.
    """

    most: int = 300_000_000
    spent: int = 0
    texts: int = 0
    cut_short: int = 0


@dataclass(frozen=True, slots=True)
class _Document:
    """A sample and the number of its file."""

    file: int
    sample: Sample

    def is_kin(self, other: _Document) -> bool:
        """Whether one was made from the other, or both from a third: they must be alike."""
        derived = is_derived(self.sample) or is_derived(other.sample)
        return derived and not origins(self.sample).isdisjoint(origins(other.sample))


def duplicate_problems(
    files: Sequence[Sequence[Sample]], effort: Effort | None = None
) -> Iterator[tuple[int, Problem]]:
    """Descriptions that are there before, each with the number of its file.

    Rules: `duplicate`, two descriptions are equal, and so are their queries or they are in two
    files (a set may ask several things of one description); `near-duplicate`, with entities blanked
    they share more than `NEAR` of the word 5-grams of the shorter one. Of several descriptions
    that it is like, one is named. Samples made from one another (`meta`) are expected to be
    alike and pass.

    Args:
        files: their samples.
        effort: bounds the search for near-duplicates, and is told how far it got.
    """
    first: dict[str, _Document] = {}
    asked: set[tuple[str, str | None]] = set()
    for number, samples in enumerate(files):
        for sample in samples:
            document = _Document(number, sample)
            other = first.setdefault(sample.description, document)
            question = sample.description, sample.query
            again = question in asked or other.file != number
            asked.add(question)
            if other is not document and again and not other.is_kin(document):
                reason = f"the description is that of {other.sample.id}"
                yield number, Problem(sample.id, "duplicate", reason)
    documents = list(first.values())

    def may_be_alike(left: int, right: int) -> bool:
        return documents[left].is_kin(documents[right])

    texts = (blanked(each.sample) for each in documents)
    for left, right, overlap in near_earlier(texts, may_be_alike, effort=effort):
        other, document = documents[left], documents[right]
        reason = f"{overlap:.2f} of its word 5-grams are those of {other.sample.id}"
        yield document.file, Problem(document.sample.id, "near-duplicate", reason)


def near_earlier(
    texts: Iterable[str],
    passes: Callable[[int, int], bool] | None = None,
    limit: float = NEAR,
    effort: Effort | None = None,
) -> Iterator[Near]:
    """For each text whose overlap with an earlier one is above a limit, such a one.

    The overlap of two sets A and B of word 5-grams is |A & B| / min(|A|, |B|) (overlap
    coefficient); a text of fewer words has no 5-grams and is near to none.

    Two sets that overlap so share one of the rarest 5-grams of the smaller one (with a limit of
    a half, of its rarest half), which finds them among many (prefix filter: S. Chaudhuri et al.,
    "A primitive operator for similarity joins in data cleaning", ICDE 2006). Texts that
    are near to no earlier one are asked first: of many that are alike, each is compared with one.

    Args:
        texts: in their order.
        passes: whether two texts, the earlier one first, may be near; None for never.
        limit: above which two texts are near, 0 to 1.
        effort: bounds the search, and is told how far it got; None to compare whatever it takes.
            Texts that share the rarest 5-grams are compared first.
    """
    alone, others = _Index(), _Index()
    sets = _gram_sets(texts, limit)
    effort = Effort(sys.maxsize) if effort is None else effort
    effort.texts = len(sets)
    for number, grams in enumerate(sets):
        allowed = effort.most * (number + 1) // len(sets)
        found = None
        compared = chain(alone.compared(grams), others.compared(grams))
        for place, (earlier, share, cost) in enumerate(compared):
            if effort.spent >= allowed and place >= _AT_LEAST:
                effort.cut_short += 1
                break
            effort.spent += cost
            if share > limit and (passes is None or not passes(earlier, number)):
                found = earlier, number, share
                break
        if found is not None:
            yield found
        (alone if found is None else others).add(number, grams)


@dataclass(frozen=True, slots=True)
class _Grams:
    """The 5-grams of a text that other texts have too, as numbers.

    Attributes:
        size: of the whole set.
        ordered: the rarest first.
        prefix: how many of those are among the rarest of the whole set that a near one shares.
    """

    size: int
    ordered: NDArray[np.int32]
    prefix: int


@dataclass(slots=True)
class _Index:
    """Finds the texts that may be near to one."""

    _sets: dict[int, _Grams] = field(default_factory=dict)
    _by_prefix: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _by_rest: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, number: int, grams: _Grams) -> None:
        self._sets[number] = grams
        for place, gram in enumerate(grams.ordered.tolist()):
            index = self._by_prefix if place < grams.prefix else self._by_rest
            index[gram].append(number)

    def compared(self, grams: _Grams) -> Iterator[tuple[int, float, int]]:
        """Each text that may be near, its overlap, and the 5-grams that were looked at for it."""
        own = grams.ordered.tolist()
        held = frozenset(own)
        seen: set[int] = set()
        looked_at = 0
        for number in self._candidates(own, grams.prefix):
            looked_at += 1
            if number not in seen:
                seen.add(number)
                other = self._sets[number]
                overlap = len(held.intersection(other.ordered.tolist()))
                yield number, overlap / min(grams.size, other.size), looked_at + len(other.ordered)
                looked_at = 0

    def _candidates(self, grams: Sequence[int], prefix: int) -> Iterator[int]:
        for place, gram in enumerate(grams):
            yield from self._by_prefix.get(gram, ())
            if place < prefix:
                yield from self._by_rest.get(gram, ())


def _gram_sets(texts: Iterable[str], limit: float) -> list[_Grams]:
    import numpy as np

    # Of 64 bits: that two of a billion 5-grams are taken for one has a chance of 3 %.
    hashed = [np.fromiter(map(hash, word_grams(text)), dtype=np.int64) for text in texts]
    if not hashed:
        return []
    _, numbers, counts = np.unique(np.concatenate(hashed), return_inverse=True, return_counts=True)
    found = []
    for own in np.split(numbers, np.cumsum([len(each) for each in hashed])[:-1]):
        shared = own[counts[own] > 1]
        ordered = shared[np.lexsort((shared, counts[shared]))].astype(np.int32)
        # Those that no other text has are the rarest, and find nothing.
        unshared = len(own) - len(shared)
        prefix = max(0, len(own) - int(limit * len(own)) - unshared)
        found.append(_Grams(len(own), ordered, prefix))
    return found


def word_grams(text: str) -> set[tuple[str, ...]]:
    """The word 5-grams of a text, words in lower case."""
    words = [word.lower() for word in _WORD.findall(text)]
    return set(zip(*(words[place:] for place in range(_WORDS)), strict=False))
