"""Descriptions that say the same, or nearly, within a file and across files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.check.problem import Problem
from pii_bench.check.sets import is_derived, origins
from pii_bench.check.text import blanked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pii_bench.datasets.sample import Sample

NEAR: Final = 0.5
"""Descriptions that share more than this of their 5-grams are near-duplicates."""

_WORDS: Final = 5
_WORD: Final = re.compile(r"<[A-Z]+>|\w+(?:['’]\w+)*")
# Rows of the product at a time: it is dense where texts share frames.
_ROWS: Final = 512


@dataclass(frozen=True, slots=True)
class _Document:
    """A sample and the number of its file."""

    file: int
    sample: Sample

    def is_kin(self, other: _Document) -> bool:
        """Whether one was made from the other, or both from a third: they must be alike."""
        derived = is_derived(self.sample) or is_derived(other.sample)
        return derived and not origins(self.sample).isdisjoint(origins(other.sample))


def duplicate_problems(files: Sequence[Sequence[Sample]]) -> Iterator[tuple[int, Problem]]:
    """Descriptions that stand there before, each with the number of its file.

    Rules: `duplicate`, two descriptions are equal; `near-duplicate`, with entities blanked
    they share more than `NEAR` of the word 5-grams of the shorter one. Samples made from one
    another (`meta`) are expected to be alike and pass.
    """
    first: dict[str, _Document] = {}
    for number, samples in enumerate(files):
        for sample in samples:
            document = _Document(number, sample)
            other = first.setdefault(sample.description, document)
            if other is not document and not other.is_kin(document):
                reason = f"the description is that of {other.sample.id}"
                yield number, Problem(sample.id, "duplicate", reason)
    documents = list(first.values())
    for left, right, overlap in near_pairs([blanked(each.sample) for each in documents]):
        one, other = documents[left], documents[right]
        if not one.is_kin(other):
            reason = f"{overlap:.2f} of its word 5-grams are those of {one.sample.id}"
            yield other.file, Problem(other.sample.id, "near-duplicate", reason)


def near_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts (left < right) whose overlap is above `NEAR`, and their overlap.

    The overlap of two sets A and B of word 5-grams is |A & B| / min(|A|, |B|) (overlap
    coefficient); a text of fewer words has no 5-grams and no pair.
    """
    import numpy as np
    from scipy.sparse import csr_array

    numbers: dict[tuple[str, ...], int] = {}
    rows = [
        sorted(numbers.setdefault(gram, len(numbers)) for gram in word_grams(text))
        for text in texts
    ]
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    if not sizes.any():
        return
    matrix = csr_array(
        (
            np.ones(sizes.sum(), dtype=np.int32),
            np.array([number for row in rows for number in row], dtype=np.int64),
            np.concatenate(([0], np.cumsum(sizes))),
        ),
        shape=(len(texts), len(numbers)),
    )
    columns = matrix.T.tocsr()
    for start in range(0, len(texts), _ROWS):
        shared = (matrix[start : start + _ROWS] @ columns).tocoo()
        left, right = shared.coords[0] + start, shared.coords[1]
        overlap = shared.data / np.minimum(sizes[left], sizes[right])
        near = (left < right) & (overlap > NEAR)
        found = zip(left[near].tolist(), right[near].tolist(), overlap[near].tolist(), strict=True)
        yield from sorted(found)


def word_grams(text: str) -> set[tuple[str, ...]]:
    """The word 5-grams of a text, words in lower case."""
    words = [word.lower() for word in _WORD.findall(text)]
    return set(zip(*(words[place:] for place in range(_WORDS)), strict=False))
