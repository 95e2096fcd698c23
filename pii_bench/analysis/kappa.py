"""Agreement of raters beyond chance: Cohen's kappa of two, Fleiss' of any number.

Sources: J. Cohen, "A coefficient of agreement for nominal scales", 1960; J. L. Fleiss, "Measuring
nominal scale agreement among many raters", 1971.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

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


def fleiss_kappa(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Fleiss' kappa.

    Args:
        units: of each unit the labels that its raters gave. Where units have different numbers
            of raters, each has the same weight; those with fewer than two are left out.

    Returns:
        None without a unit; 1 where all gave one label to everything.
    """
    agreeing: list[float] = []
    labels: Counter[Hashable] = Counter()
    for unit in units:
        raters = len(unit)
        if raters < 2:
            continue
        counts = Counter(unit)
        labels.update(counts)
        pairs = sum(count * (count - 1) for count in counts.values())
        agreeing.append(pairs / (raters * (raters - 1)))
    if not agreeing:
        return None
    total = labels.total()
    expected = sum(count * count for count in labels.values()) / total**2
    return _beyond_chance(sum(agreeing) / len(agreeing), expected)


def _beyond_chance(observed: float, expected: float) -> float:
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
