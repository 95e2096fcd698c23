from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import UnknownNameError
from pii_bench.labels import types_of
from pii_bench.systems.detectors.known_labels import (
    HUGGING_FACE,
    HUGGING_FACE_SETS,
    PRESIDIO,
    SPACY,
)
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from pii_bench.systems.detectors.label_map import LabelMap

SETS = {name: types_of(name) for name in HUGGING_FACE_SETS}


@pytest.mark.parametrize("pair", list(combinations(SETS, 2)), ids="-".join)
def test_label_sets_agree_where_they_share_a_label(pair: tuple[str, str]) -> None:
    one, other = SETS[pair[0]], SETS[pair[1]]

    assert {label: one[label] for label in one.keys() & other.keys()} == {
        label: other[label] for label in one.keys() & other.keys()
    }


def test_hugging_face_has_them_all() -> None:
    assert HUGGING_FACE.types.keys() == {label for each in SETS.values() for label in each}


def test_the_sizes_are_those_of_their_sources() -> None:
    assert [len(SETS[name]) for name in ("conll", "spacy", "datafog")] == [4, 18, 44]


@pytest.mark.parametrize(
    ("label", "pii_type"),
    [
        ("PERSON", PiiType.PER),
        ("US_SSN", PiiType.CODE),
        ("UK_POSTCODE", PiiType.LOC),
        ("ORGANIZATION", PiiType.ORG),
        ("NRP", PiiType.DEM),
        ("DATE_TIME", PiiType.DATETIME),
        ("URL", None),
    ],
)
def test_presidio(label: str, pii_type: PiiType | None) -> None:
    assert PRESIDIO.type_of(label) is pii_type


@pytest.mark.parametrize(
    ("label", "pii_type"),
    [
        ("PERSON", PiiType.PER),
        ("FAC", PiiType.LOC),
        ("NORP", PiiType.DEM),
        ("QUANTITY", PiiType.DEM),  # heights and weights
        ("MONEY", PiiType.QUANTITY),
        ("CARDINAL", None),
    ],
)
def test_spacy(label: str, pii_type: PiiType | None) -> None:
    assert SPACY.type_of(label) is pii_type


@pytest.mark.parametrize(
    ("label", "pii_type"),
    [
        ("PER", PiiType.PER),
        ("MISC", None),
        ("GIVENNAME", PiiType.PER),
        ("BUILDINGNUM", PiiType.LOC),
        ("HEALTH_CONDITION", PiiType.DEM),
        ("SALARY", PiiType.QUANTITY),
    ],
)
def test_hugging_face(label: str, pii_type: PiiType | None) -> None:
    assert HUGGING_FACE.type_of(label) is pii_type


@pytest.mark.parametrize("labels", [PRESIDIO, SPACY, HUGGING_FACE], ids=lambda each: each.name)
@pytest.mark.parametrize("label", ["", "LABEL_0", "B-PER", "person"])
def test_what_no_set_has_is_refused(labels: LabelMap, label: str) -> None:
    with pytest.raises(UnknownNameError):
        labels.type_of(label)
