from __future__ import annotations

import hashlib
import sys
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.base import (
    HUGGING_FACE,
    HUGGING_FACE_SETS,
    PRESIDIO,
    SPACY,
    LabelMap,
    encodable,
    import_part,
    read_label_map,
    tidy,
    version_of,
)
from pii_bench.taxonomy import PiiType, types_of

if TYPE_CHECKING:
    from pathlib import Path

PER, LOC, ORG = PiiType.PER, PiiType.LOC, PiiType.ORG
TEXT = "Ann Lee of Leeds"


def test_the_longest_of_two_that_overlap_stays() -> None:
    name, whole = DetectedSpan(0, 3, PER), DetectedSpan(0, 7, PER)

    assert tidy(TEXT, [name, whole]) == tidy(TEXT, [whole, name]) == [whole]


def test_the_earlier_of_one_length_stays() -> None:
    first, second = DetectedSpan(0, 7, PER), DetectedSpan(4, 11, ORG)

    assert tidy(TEXT, [second, first]) == [first]


def test_at_one_place_the_first_given_stays() -> None:
    person, place = DetectedSpan(0, 7, PER), DetectedSpan(0, 7, LOC)

    assert tidy(TEXT, [place, person]) == [place]


def test_what_the_dropped_one_covered_is_free_again() -> None:
    spans = [DetectedSpan(0, 3, PER), DetectedSpan(2, 10, ORG), DetectedSpan(8, 16, LOC)]

    # The second and third are of one length: the second stays and alone meets both others.
    assert tidy(TEXT, spans) == [spans[1]]
    # Without it, the others have nothing in common.
    assert tidy(TEXT, [spans[2], spans[0]]) == [spans[0], spans[2]]


def test_spans_that_touch_both_stay() -> None:
    spans = [DetectedSpan(0, 4, PER), DetectedSpan(4, 7, ORG)]

    assert tidy("AnneLee", spans) == spans


def test_white_space_at_the_ends_is_no_part_of_a_span() -> None:
    spans = [DetectedSpan(3, 8, PER), DetectedSpan(10, 11, LOC)]

    assert tidy(TEXT, spans) == [DetectedSpan(4, 7, PER)]
    assert tidy(" \n ", [DetectedSpan(0, 3, PER)]) == []


def test_a_lone_surrogate_is_replaced_in_its_place() -> None:
    assert encodable("a\ud800b😀c") == "a�b😀c"


@st.composite
def found(draw: st.DrawFn) -> tuple[str, list[DetectedSpan]]:
    text = draw(st.text("ab \n", max_size=12))
    place = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = st.builds(
        lambda ends, pii_type: DetectedSpan(min(ends), max(ends), pii_type),
        place,
        st.sampled_from(PiiType),
    )
    return text, draw(st.lists(spans, max_size=8))


@given(found())
def test_the_result_is_in_order_and_free_of_overlaps(case: tuple[str, list[DetectedSpan]]) -> None:
    text, spans = case

    tidied = tidy(text, spans)

    assert all(one.end <= other.start for one, other in pairwise(tidied))
    assert all(span.start < span.end for span in tidied)
    assert all(
        text[span.start : span.end].strip() == text[span.start : span.end] for span in tidied
    )
    assert tidy(text, tidied) == tidied


@given(found())
def test_every_span_is_covered_in_part_by_one_at_least_as_long(
    case: tuple[str, list[DetectedSpan]],
) -> None:
    text, spans = case

    for span in tidy(text, spans):
        assert any(each.start <= span.start and span.end <= each.end for each in spans)
    for alone in (tidy(text, [span]) for span in spans):
        for span in alone:
            assert any(
                kept.start < span.end
                and span.start < kept.end
                and kept.end - kept.start >= span.end - span.start
                for kept in tidy(text, spans)
            )


def test_a_module_that_is_installed_is_imported() -> None:
    assert import_part("hashlib", "make it") is hashlib


def test_a_module_that_is_not_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "somebodys_ner", None)

    with pytest.raises(MissingExtraError) as caught:
        import_part("somebodys_ner", "make detectors")

    assert str(caught.value) == "somebodys_ner is not installed: run `make detectors`"


def test_what_a_module_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import its_runtime\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingExtraError, match=r"^its_runtime is not installed"):
        import_part("half_installed", "make detectors")


def test_a_version_is_told_with_its_name() -> None:
    assert version_of("pytest") == f"pytest {pytest.__version__}"


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
    ("labels", "label", "pii_type"),
    [
        (PRESIDIO, "PERSON", PiiType.PER),
        (PRESIDIO, "US_SSN", PiiType.CODE),
        (PRESIDIO, "UK_POSTCODE", PiiType.LOC),
        (PRESIDIO, "ORGANIZATION", PiiType.ORG),
        (PRESIDIO, "NRP", PiiType.DEM),
        (PRESIDIO, "DATE_TIME", PiiType.DATETIME),
        (PRESIDIO, "URL", None),
        (SPACY, "PERSON", PiiType.PER),
        (SPACY, "FAC", PiiType.LOC),
        (SPACY, "NORP", PiiType.DEM),
        (SPACY, "QUANTITY", PiiType.DEM),  # heights and weights
        (SPACY, "MONEY", PiiType.QUANTITY),
        (SPACY, "CARDINAL", None),
        (HUGGING_FACE, "PER", PiiType.PER),
        (HUGGING_FACE, "MISC", None),
        (HUGGING_FACE, "GIVENNAME", PiiType.PER),
        (HUGGING_FACE, "BUILDINGNUM", PiiType.LOC),
        (HUGGING_FACE, "HEALTH_CONDITION", PiiType.DEM),
        (HUGGING_FACE, "SALARY", PiiType.QUANTITY),
    ],
    ids=lambda each: each.name if isinstance(each, LabelMap) else str(each),
)
def test_a_label_has_its_type(labels: LabelMap, label: str, pii_type: PiiType | None) -> None:
    assert labels.type_of(label) is pii_type


@pytest.mark.parametrize("labels", [PRESIDIO, SPACY, HUGGING_FACE], ids=lambda each: each.name)
@pytest.mark.parametrize("label", ["", "LABEL_0", "B-PER", "person"])
def test_what_no_set_has_is_refused(labels: LabelMap, label: str) -> None:
    with pytest.raises(UnknownNameError):
        labels.type_of(label)
