from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.systems.detectors.label_map import (
    HUGGING_FACE,
    HUGGING_FACE_SETS,
    PRESIDIO,
    SPACY,
    LabelMap,
    read_label_map,
)
from pii_bench.taxonomy import PiiType, types_of

if TYPE_CHECKING:
    from pathlib import Path

MAP = LabelMap("Somebody", {"PERSON": PiiType.PER, "URL": None})
TYPES = "PER, CODE, LOC, ORG, DEM, DATETIME, QUANTITY"

SETS = {name: types_of(name) for name in HUGGING_FACE_SETS}


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_label_has_a_type_or_is_ignored() -> None:
    assert MAP.type_of("PERSON") is PiiType.PER
    assert MAP.type_of("URL") is None


def test_an_unknown_label_is_refused_and_the_nearest_is_offered() -> None:
    with pytest.raises(UnknownNameError) as caught:
        MAP.type_of("PERSONS")

    assert str(caught.value) == (
        "unknown label of Somebody 'PERSONS'; did you mean 'PERSON'? (allowed: PERSON, URL)"
    )


def test_labels_are_checked_before_any_is_met() -> None:
    assert MAP.check(["URL", "PERSON"]) == {PiiType.PER}
    with pytest.raises(UnknownNameError, match=r"^unknown label of Somebody 'AGE'"):
        MAP.check(["PERSON", "ZIP", "AGE"])


def test_the_hash_is_of_what_a_map_says() -> None:
    again = LabelMap("somebody-else.json", {"URL": None, "PERSON": PiiType.PER})
    other = LabelMap("Somebody", {"PERSON": PiiType.PER, "URL": PiiType.CODE})

    assert again.sha256 == MAP.sha256 != other.sha256


def test_a_map_is_read_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.json", '{"PERSON": "PER", "URL": null}')

    labels = read_label_map(path)

    assert labels.name == "mine.json"
    assert labels.types == {"PERSON": PiiType.PER, "URL": None}
    assert labels.type_of("PERSON") is PiiType.PER


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"PERSON": "PER"', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["PERSON"]', "must be an object of label to type or null"),
        ('{"PERSON": "PER", "PERSON": "ORG"}', "label 'PERSON' comes twice"),
        (
            '{"PERSON": "per"}',
            f"label 'PERSON': unknown type 'per' (allowed: {TYPES})",
        ),
        ('{"PERSON": ["PER"]}', "label 'PERSON': its type must be a string or null"),
        ('{"PERSON": {"PER": null}}', "label 'PERSON': its type must be a string or null"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, what: str) -> None:
    path = written(tmp_path / "mine.json", text)

    with pytest.raises(InputFileError) as caught:
        read_label_map(path)

    assert str(caught.value) == f"{path}: {what}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.json: No such file or directory$"):
        read_label_map(tmp_path / "gone.json")


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
