"""Agreement of raters beyond chance: Cohen's kappa of two, Fleiss' of any number.

Sources: J. Cohen, "A coefficient of agreement for nominal scales", 1960; J. L. Fleiss, "Measuring
nominal scale agreement among many raters", 1971.
"""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Label = TypeVar("Label", bound="Hashable")


def cohen_kappa(cells: Mapping[tuple[Label, Label], int]) -> float | None:
    """Cohen's kappa of two raters.

    Args:
        cells: (label by the one, label by the other) to the number of units.

    Returns:
        None without a unit; 1 where both gave one label to everything.
    """
    total = sum(cells.values())
    if not total:
        return None
    first: Counter[Label] = Counter()
    second: Counter[Label] = Counter()
    same = 0
    for (one, other), count in cells.items():
        first[one] += count
        second[other] += count
        same += count * (one == other)
    expected = sum(first[label] * second[label] for label in first) / total**2
    return _beyond_chance(same / total, expected)


def fleiss_kappa(units: Mapping[tuple[Label, ...], int]) -> float | None:
    """Fleiss' kappa.

    Args:
        units: the labels that the raters of a unit gave to the number of such units. Where units
            have different numbers of raters, each has the same weight; those with fewer than
            two are left out.

    Returns:
        None without a unit; 1 where all gave one label to everything.
    """
    agreeing: list[float] = []
    number = 0
    labels: Counter[Label] = Counter()
    for unit, count in units.items():
        raters = len(unit)
        if raters < 2:
            continue
        given = Counter(unit)
        for label, times in given.items():
            labels[label] += times * count
        pairs = sum(times * (times - 1) for times in given.values())
        agreeing.append(count * pairs / (raters * (raters - 1)))
        number += count
    if not number:
        return None
    total = labels.total()
    expected = sum(count * count for count in labels.values()) / total**2
    return _beyond_chance(fsum(agreeing) / number, expected)


def _beyond_chance(observed: float, expected: float) -> float:
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
