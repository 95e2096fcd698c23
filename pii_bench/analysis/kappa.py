"""Agreement of raters beyond chance: Cohen's kappa for two, Fleiss' for any number.

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
    """Return Cohen's kappa of two raters.

    Args:
        cells: number of units by (label of the first rater, label of the second).

    Returns:
        None without units; 1 if both gave one label to everything.
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
    """Return Fleiss' kappa of any number of raters.

    Args:
        units: number of units by the labels that their raters gave. All units have the same
            weight, whatever their number of raters; those with fewer than two are left out.

    Returns:
        None without units; 1 if all gave one label to everything.
    """
    agreeing: list[float] = []
    total_units = 0
    totals: Counter[Label] = Counter()
    for unit, count in units.items():
        raters = len(unit)
        if raters < 2:
            continue
        labels = Counter(unit)
        for label, times in labels.items():
            totals[label] += times * count
        pairs = sum(times * (times - 1) for times in labels.values())
        agreeing.append(count * pairs / (raters * (raters - 1)))
        total_units += count
    if not total_units:
        return None
    expected = sum(count * count for count in totals.values()) / totals.total() ** 2
    return _beyond_chance(fsum(agreeing) / total_units, expected)


def _beyond_chance(observed: float, expected: float) -> float:
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
