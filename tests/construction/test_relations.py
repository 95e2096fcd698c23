from __future__ import annotations

import pytest

from pii_bench.construction.relations import RELATIONS, Kind, Relation
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

EACH = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


@EACH
def test_a_relation_stands_under_its_name(relation: Relation) -> None:
    assert RELATIONS[relation.name] is relation


@EACH
def test_what_kind_a_relation_is_says_what_it_does(relation: Relation) -> None:
    match relation.kind:
        case Kind.HIERARCHICAL:  # ordered by age
            assert relation.least_gap > 0
        case Kind.INTERSECTION:  # shares attributes
            assert relation.shared
        case Kind.INDEPENDENT:
            assert not relation.kin
            assert not relation.senior


@EACH
def test_ages_leave_room(relation: Relation) -> None:
    assert relation.least_gap < relation.greatest_gap
    # Adults of 18 to 83 years.
    assert relation.least_gap <= 83 - 18


@EACH
def test_names_are_never_shared(relation: Relation) -> None:
    for category, _ in relation.shared:
        assert TYPE_OF_CATEGORY[category] is not PiiType.PER


def test_the_paper_s_examples() -> None:
    assert RELATIONS["parent-child"].least_gap == 18
    assert RELATIONS["colleagues"].shared == (("Company Name", "employer"),)
    assert RELATIONS["classmates"].shared == (("Educational Institution", "current"),)
    assert RELATIONS["supervisor-report"].senior
    assert RELATIONS["friends"].kind is Kind.INDEPENDENT
    assert {relation.kind for relation in RELATIONS.values()} == set(Kind)
