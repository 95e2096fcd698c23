"""Privacy: the share of the PII's occurrences that a masked text no longer holds.

P = 1 - sum C(e, T_m) / sum C(e, T_o) over the distinct texts e of E, where C counts
occurrences (benchmark, "Privacy against utility").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.tagger.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# No letter, digit or space: beside it a word ends, and nothing reaches across it.
_REMOVED: Final = "\ufffc"


def privacy(
    entities: Iterable[str], original: str, masked: str, tags: Collection[str] = ()
) -> float | None:
    """P of one text, from 0 (all is left) to 1.

    An occurrence is a whole word or several: an age of `32` is not in `1932`. A text that
    stands only inside of words is counted there; in scripts without spaces each letter is a
    word (`tagger.tokens`). Where entities overlap, each counts by itself: `Acme Bank` holds
    an `Acme` too. Case counts. No entity counts more often in the masked text than in the
    original: to cut a word makes no new occurrence. An entity that is masked in part is gone,
    as the formula has it.

    Args:
        entities: texts of E; one that stands twice counts once, blank ones never.
        original: T_o.
        masked: T_m.
        tags: what stands in T_m in the place of PII; no entity is looked for in them.

    Returns:
        None where nothing of E stands in the original.
    """
    shown = _without(tags, masked)
    inside_original, inside_shown = _inside_words(original), _inside_words(shown)
    before = after = 0
    for entity in dict.fromkeys(entities):
        if not entity.strip():
            continue
        count = _count(entity, original, inside_original)
        left = _count(entity, shown, inside_shown)
        if not count:
            count, left = _count(entity, original), _count(entity, shown)
        before += count
        after += min(count, left)
    return 1 - after / before if before else None


def _count(entity: str, text: str, inside_words: Collection[int] = ()) -> int:
    starts = (match.start() for match in re.finditer(f"(?={re.escape(entity)})", text))
    return sum(
        start not in inside_words and start + len(entity) not in inside_words for start in starts
    )


def _inside_words(text: str) -> frozenset[int]:
    """Offsets before which a word has begun and not ended."""
    return frozenset(n for token in tokenize(text) for n in range(token.start + 1, token.end))


def _without(tags: Collection[str], masked: str) -> str:
    if not tags:
        return masked
    longest_first = sorted(tags, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), _REMOVED, masked)
