from __future__ import annotations

import pytest

from pii_bench.taxonomy import SENSITIVITY, TYPE_OF_CATEGORY, PiiType, sensitivity, type_named


def test_every_category_has_a_tier() -> None:
    assert SENSITIVITY.keys() == TYPE_OF_CATEGORY.keys()
    assert set(SENSITIVITY.values()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("category", "tier"),
    [
        ("Full Name", 3),
        ("Passport Number", 3),
        ("Street Address", 3),
        ("Religious Belief", 3),
        ("Monthly Income", 2),
        ("City/Region", 2),
        ("Age", 2),
        ("Duration", 1),
    ],
)
def test_the_tier_of_a_category(category: str, tier: int) -> None:
    assert sensitivity(category, TYPE_OF_CATEGORY[category]) == tier


@pytest.mark.parametrize(
    ("pii_type", "tier"),
    [
        (PiiType.PER, 3),
        (PiiType.CODE, 3),
        (PiiType.LOC, 2),
        (PiiType.ORG, 2),
        (PiiType.DEM, 2),
        (PiiType.DATETIME, 1),
        (PiiType.QUANTITY, 2),
    ],
)
@pytest.mark.parametrize("category", [None, "shoe size"])
def test_without_a_category_of_ours_the_type_decides(
    category: str | None, pii_type: PiiType, tier: int
) -> None:
    assert sensitivity(category, pii_type) == tier


def test_a_name_of_a_category_or_of_a_type_tells_the_type() -> None:
    assert type_named("Age") is PiiType.DEM
    assert type_named("CODE") is PiiType.CODE
    with pytest.raises(KeyError):
        type_named("Plate")
