"""Privacy: the share of the PII's occurrences that a masked text no longer holds.

P = 1 - sum C(e, T_m) / sum C(e, T_o) over the distinct texts e of E, where C counts
occurrences (benchmark, "Privacy against utility").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.scorer.locate import Locator, Strictness, locator_of, overlap, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.scorer.locate import Span


def privacy(entities: Iterable[str], original: str, masked: Sequence[Span]) -> float | None:
    """P of one text, from 0 (all is left) to 1.

    An occurrence is wherever an entity can be read in the original (`Strictness.READABLE`): an
    age of `32` is not in `1932`. It is left if none of its characters is masked; one that is
    masked in part is gone, as the formula has it. Where entities overlap, each counts by itself:
    `Acme Bank` holds an `Acme` too.

    Args:
        entities: texts of E; writings of one value count once, blank ones never.
        original: T_o.
        masked: what of it is masked in T_m.

    Returns:
        None where nothing of E can be read in the original.
    """
    locator = locator_of(original)
    distinct = {reading(entity): entity for entity in entities}
    occurrences = [span for entity in distinct.values() for span in locator.spans(entity)]
    left = sum(not overlap([span], masked) for span in occurrences)
    return 1 - left / len(occurrences) if occurrences else None


def privacy_of_rewriting(entities: Iterable[str], original: str, rewritten: str) -> float | None:
    """P of a text that was written anew, from 0 to 1.

    It still holds an entity where it tells it in any form (`Strictness.RESTATED`). A text that
    says an entity more often than the original has no less than 0.

    Args:
        entities: texts of E; writings of one value count once, blank ones never.
        original: T_o.
        rewritten: T_m.

    Returns:
        None where nothing of E can be read in the original.
    """
    before, after = locator_of(original), Locator(rewritten)
    distinct = {reading(entity): entity for entity in entities}.values()
    occurrences = sum(len(before.spans(entity)) for entity in distinct)
    if not occurrences:
        return None
    left = sum(len(after.spans(entity, Strictness.RESTATED)) for entity in distinct)
    return max(0.0, 1 - left / occurrences)
