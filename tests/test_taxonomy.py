from __future__ import annotations

import pytest

from pii_bench.errors import UnknownNameError
from pii_bench.taxonomy import (
    CATEGORIES,
    SENSITIVITY,
    TARGETS,
    TIER_OF,
    TYPE_OF_CATEGORY,
    PiiType,
    any_taxonomy,
    name_in,
    sensitivity,
    taxonomy,
    type_named,
    types_of,
)
from tests.builders import read_csv
from tests.conftest import REPOSITORY

TAXONOMIES = (
    *("paper", "datafog", "spacy", "conll", "presidio", "ai4privacy"),
    *("presidio-research", "gretel", "nemotron", "spia"),
)
SHARED = REPOSITORY.parent / "shared" / "reference" / "datafog_labels.csv"


@pytest.mark.parametrize("name", TAXONOMIES)
def test_categories_have_their_type_and_datafog_labels_exist(name: str) -> None:
    for meaning in taxonomy(name).values():
        if meaning.category is not None:
            assert TYPE_OF_CATEGORY[meaning.category] is meaning.type
        if meaning.datafog is not None:
            assert meaning.datafog in taxonomy("datafog")


def test_the_papers_taxonomy_has_its_types_and_categories() -> None:
    categories = {category for names in CATEGORIES.values() for category in names}

    assert taxonomy("paper").keys() == {*PiiType, *categories}
    assert all(taxonomy("paper")[each].category == each for each in categories)


def test_every_label_of_datafog_means_itself_and_has_one_tier() -> None:
    datafog = taxonomy("datafog")

    assert all(meaning.datafog == label for label, meaning in datafog.items())
    assert datafog.keys() == TIER_OF.keys()
    assert [[*TIER_OF.values()].count(tier) for tier in TARGETS] == [6, 6, 12, 20]


@pytest.mark.skipif(not SHARED.exists(), reason="DataFog's list is not here")
def test_tiers_and_targets_are_those_of_datafogs_list() -> None:
    rows = read_csv(SHARED)

    assert {row["label"]: int(row["tier"]) for row in rows} == TIER_OF
    assert {int(row["tier"]): float(row["target_recall"]) for row in rows} == TARGETS


@pytest.mark.parametrize(
    ("name", "label", "pii_type", "datafog"),
    [
        ("ai4privacy", "FIRSTNAME", PiiType.PER, "PERSON"),
        ("ai4privacy", "PREFIX", None, None),
        ("spacy", "GPE", PiiType.LOC, "LOCATION"),
        ("spacy", "MONEY", PiiType.QUANTITY, None),
        ("presidio", "US_SSN", PiiType.CODE, "SSN"),
        ("presidio-research", "DOMAIN_NAME", None, "URL"),
        ("nemotron", "blood_type", PiiType.DEM, "HEALTH_CONDITION"),
        ("paper", "Debt Ratio", PiiType.QUANTITY, None),
    ],
)
def test_labels_have_their_type_and_datafog_label(
    name: str, label: str, pii_type: PiiType | None, datafog: str | None
) -> None:
    meaning = taxonomy(name)[label]

    assert (meaning.type, meaning.datafog) == (pii_type, datafog)


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("FIRSTNAME", "FIRSTNAME"),
        ("FIRSTNAME_12", "FIRSTNAME"),
        ("firstname", "FIRSTNAME"),
        ("LASTNAME2", "LASTNAME2"),  # a label of its own
        ("SHOESIZE", None),
    ],
)
def test_labels_are_recognised_in_other_spellings(label: str, written: str | None) -> None:
    assert name_in(taxonomy("ai4privacy"), label) == written


def test_all_taxonomies_can_be_joined() -> None:
    assert any_taxonomy().keys() == {label for name in TAXONOMIES for label in types_of(name)}
    # Ours comes first: to OntoNotes it is a measure.
    assert any_taxonomy()["QUANTITY"].type is PiiType.QUANTITY


def test_an_unknown_taxonomy_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'spacy'"):
        taxonomy("spacey")


def test_every_category_has_a_tier() -> None:
    assert SENSITIVITY.keys() == TYPE_OF_CATEGORY.keys()
    assert set(SENSITIVITY.values()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("category", "pii_type", "tier"),
    [
        ("Full Name", "PER", 3),
        ("Passport Number", "CODE", 3),
        ("Street Address", "LOC", 3),
        ("Religious Belief", "DEM", 3),
        ("Monthly Income", "QUANTITY", 2),
        ("City/Region", "LOC", 2),
        ("Age", "DEM", 2),
        ("Duration", "DATETIME", 1),
        # Without a known category, the type gives the tier.
        ("shoe size", "DEM", 2),
        (None, "PER", 3),
        (None, "CODE", 3),
        (None, "LOC", 2),
        (None, "ORG", 2),
        (None, "DEM", 2),
        (None, "DATETIME", 1),
        (None, "QUANTITY", 2),
    ],
)
def test_the_tier_of_an_entity(category: str | None, pii_type: str, tier: int) -> None:
    assert sensitivity(category, pii_type) == tier


def test_a_category_or_type_name_gives_the_type() -> None:
    assert type_named("Age") is PiiType.DEM
    assert type_named("CODE") is PiiType.CODE
    with pytest.raises(KeyError):
        type_named("Plate")
