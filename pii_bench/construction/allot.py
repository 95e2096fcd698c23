"""Which categories each person has: the paper's counts of types, dealt out exactly."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

LEAST: Final = 4
MOST: Final = 16


def allot_types(people: int, counts: Mapping[PiiType, int], random: Random) -> list[list[PiiType]]:
    """Deal types to people, PER once to each, so that every count is met exactly.

    Args:
        people: how many subjects.
        counts: type to its number of entities over all of them; PER is `people`.
        random: decides.

    Returns:
        Per subject the types of its entities without PER: 3 to 15 of them, none more often
        than it has categories.
    """
    remaining: Counter[PiiType] = Counter(counts)
    del remaining[PiiType.PER]
    sizes = _sizes(people, remaining.total(), random)
    dealt: list[Counter[PiiType]] = []
    for size in sizes:
        own: Counter[PiiType] = Counter()
        for _ in range(size):
            chosen = _draw(remaining, own, random)
            if chosen is None:
                # Only types of which this person has all: somebody before takes one for another.
                left = next(t for t in remaining if remaining[t] > 0)
                chosen = _exchange(dealt, left, own, random)
                remaining[left] -= 1
            else:
                remaining[chosen] -= 1
            own[chosen] += 1
        dealt.append(own)
    return [list(own.elements()) for own in dealt]


def _draw(remaining: Counter[PiiType], own: Counter[PiiType], random: Random) -> PiiType | None:
    possible = [t for t in remaining if remaining[t] > 0 and _has_room(own, t)]
    if not possible:
        return None
    # Types that are rare in this person and plenty in the deck come first.
    return random.choices(possible, [remaining[t] / (1 + 2 * own[t]) for t in possible])[0]


def _exchange(
    dealt: list[Counter[PiiType]], left: PiiType, own: Counter[PiiType], random: Random
) -> PiiType:
    """Give `left` to a person who has room for it, in return for a type that `own` can take."""
    while True:
        other = random.choice(dealt)
        for returned in other:
            if other[returned] > 0 and _has_room(other, left) and _has_room(own, returned):
                other[returned] -= 1
                other[left] += 1
                return returned


def _has_room(own: Counter[PiiType], pii_type: PiiType) -> bool:
    return own[pii_type] < len(CATEGORIES[pii_type])


def _sizes(people: int, total: int, random: Random) -> list[int]:
    """Entities per person without PER, around the mean, summing to the total."""
    mean = total / people
    sizes = [min(max(round(random.gauss(mean, 1.7)), LEAST - 1), MOST - 1) for _ in range(people)]
    while (excess := sum(sizes) - total) != 0:
        step = -1 if excess > 0 else 1
        place = random.randrange(people)
        if LEAST - 1 <= sizes[place] + step <= MOST - 1:
            sizes[place] += step
    return sizes
