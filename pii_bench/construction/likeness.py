"""No two descriptions may be nearly the same: what was written before is remembered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pii_bench.datasets.check.duplicates import NEAR, word_grams
from pii_bench.datasets.check.text import blanked

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample

Gram = tuple[str, ...]


@dataclass
class Memory:
    """The word 5-grams, entities blanked, of the descriptions that were kept."""

    _holders: dict[Gram, list[int]] = field(default_factory=dict)
    _sizes: list[int] = field(default_factory=list)

    def keep(self, sample: Sample) -> bool:
        """Remember a description, unless it shares more than `NEAR` with an earlier one.

        Shared are |A & B| of the min(|A|, |B|) 5-grams of the shorter one, as the checker of
        files counts. Returns whether it was remembered.
        """
        grams = word_grams(blanked(sample))
        shared = Counter(number for gram in grams for number in self._holders.get(gram, ()))
        if any(n > NEAR * min(len(grams), self._sizes[other]) for other, n in shared.items()):
            return False
        for gram in grams:
            self._holders.setdefault(gram, []).append(len(self._sizes))
        self._sizes.append(len(grams))
        return True
