from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, MissingExtraError, PiiBenchError, UnknownNameError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors import (
    HUGGING_FACE,
    HUGGING_FACE_SETS,
    PRESIDIO,
    SPACY,
    LabelMap,
    build_detector,
    import_part,
    read_label_map,
    tidy,
)
from pii_bench.taxonomy import PiiType, types_of

if TYPE_CHECKING:
    from pathlib import Path

PER, LOC, ORG = PiiType.PER, PiiType.LOC, PiiType.ORG
TEXT = "Ann Lee of Leeds"


@pytest.mark.parametrize(
    ("text", "found", "kept"),
    [
        # The longest of two that overlap.
        (TEXT, [(0, 3, PER), (0, 7, PER)], [(0, 7, PER)]),
        # The earlier of one length, and at one place the first given.
        (TEXT, [(4, 11, ORG), (0, 7, PER)], [(0, 7, PER)]),
        (TEXT, [(0, 7, LOC), (0, 7, PER)], [(0, 7, LOC)]),
        # The second and third are of one length: the second stays and alone meets both others.
        (TEXT, [(0, 3, PER), (2, 10, ORG), (8, 16, LOC)], [(2, 10, ORG)]),
        ("AnneLee", [(0, 4, PER), (4, 7, ORG)], [(0, 4, PER), (4, 7, ORG)]),
        # White space at the ends is no part of a span.
        (TEXT, [(3, 8, PER), (10, 11, LOC)], [(4, 7, PER)]),
        (" \n ", [(0, 3, PER)], []),
    ],
)
def test_spans_are_tidied(
    text: str, found: list[tuple[int, int, PiiType]], kept: list[tuple[int, int, PiiType]]
) -> None:
    spans = [DetectedSpan(*each) for each in found]

    assert tidy(text, spans) == [DetectedSpan(*each) for each in kept]


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
def test_tidied_spans_are_ordered_do_not_overlap_and_are_the_longest(
    case: tuple[str, list[DetectedSpan]],
) -> None:
    text, spans = case

    tidied = tidy(text, spans)

    assert all(one.end <= other.start for one, other in pairwise(tidied))
    for span in tidied:
        piece = text[span.start : span.end]
        assert piece == piece.strip() != ""
        assert any(each.start <= span.start and span.end <= each.end for each in spans)
    assert tidy(text, tidied) == tidied
    # Each that was found is covered in part by one at least as long.
    for span in (span for each in spans for span in tidy(text, [each])):
        assert any(
            kept.start < span.end
            and span.start < kept.end
            and kept.end - kept.start >= span.end - span.start
            for kept in tidied
        )


def test_a_missing_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import its_runtime\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingExtraError, match=r"^its_runtime is not installed"):
        import_part("half_installed", "make detectors")


MAP = LabelMap("Somebody", {"PERSON": PiiType.PER, "URL": None})
TYPES = "PER, CODE, LOC, ORG, DEM, DATETIME, QUANTITY"


def test_an_unknown_label_is_refused_and_the_nearest_is_offered() -> None:
    with pytest.raises(UnknownNameError) as caught:
        MAP.type_of("PERSONS")

    assert str(caught.value) == (
        "unknown label of Somebody 'PERSONS'; did you mean 'PERSON'? (allowed: PERSON, URL)"
    )


def test_all_labels_of_a_detector_are_checked_at_once() -> None:
    assert MAP.check(["URL", "PERSON"]) == {PiiType.PER}
    with pytest.raises(UnknownNameError, match=r"^unknown label of Somebody 'AGE'"):
        MAP.check(["PERSON", "ZIP", "AGE"])


def test_the_hash_depends_only_on_labels_and_types() -> None:
    again = LabelMap("somebody-else.json", {"URL": None, "PERSON": PiiType.PER})
    other = LabelMap("Somebody", {"PERSON": PiiType.PER, "URL": PiiType.CODE})

    assert again.sha256 == MAP.sha256 != other.sha256


def test_a_map_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"PERSON": "PER", "URL": null}', encoding="utf-8")

    assert read_label_map(path) == LabelMap("mine.json", {"PERSON": PiiType.PER, "URL": None})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "No such file or directory"),
        ('{"PERSON": "PER"', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["PERSON"]', "must be an object of label to type or null"),
        ('{"PERSON": "PER", "PERSON": "ORG"}', "label 'PERSON' is repeated"),
        ('{"PERSON": "per"}', f"label 'PERSON': unknown type 'per' (allowed: {TYPES})"),
        ('{"PERSON": ["PER"]}', "label 'PERSON': its type must be a string or null"),
    ],
)
def test_an_error_names_the_broken_file(tmp_path: Path, text: str | None, what: str) -> None:
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        build_detector("hf:gone/folder", path)

    assert str(caught.value) == f"{path}: {what}"


def test_the_hugging_face_map_contains_all_sets_without_contradiction() -> None:
    for labels in map(types_of, HUGGING_FACE_SETS):
        assert HUGGING_FACE.types.items() >= labels.items()


@pytest.mark.parametrize(
    ("labels", "label", "pii_type"),
    [
        (PRESIDIO, "UK_POSTCODE", PiiType.LOC),
        (PRESIDIO, "NRP", PiiType.DEM),
        (PRESIDIO, "URL", None),
        (SPACY, "FAC", PiiType.LOC),
        (SPACY, "QUANTITY", PiiType.DEM),  # heights and weights
        (SPACY, "CARDINAL", None),
        (HUGGING_FACE, "MISC", None),
        (HUGGING_FACE, "GIVENNAME", PiiType.PER),
        (HUGGING_FACE, "HEALTH_CONDITION", PiiType.DEM),
        (HUGGING_FACE, "SALARY", PiiType.QUANTITY),
    ],
    ids=lambda each: each.name if isinstance(each, LabelMap) else str(each),
)
def test_a_label_has_its_type(labels: LabelMap, label: str, pii_type: PiiType | None) -> None:
    assert labels.type_of(label) is pii_type


def test_a_label_map_for_a_detector_with_our_types_is_an_error(tmp_path: Path) -> None:
    what = r"^detector 'bilstm-crf' already has our types and takes no label map"
    with pytest.raises(PiiBenchError, match=what):
        build_detector("bilstm-crf", tmp_path / "mine.json")


@pytest.mark.parametrize("name", ["presidi", "presidio:some/folder", "hf:"])
def test_an_unknown_detector_is_an_error(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        build_detector(name)

    allowed = ("bilstm-crf", "bilstm-crf-words", "presidio", "spacy", "hf:PATH")
    assert caught.value.allowed == allowed


def test_a_path_may_contain_colons() -> None:
    with pytest.raises(InputFileError, match=r"^gone/folder:1: no such folder"):
        build_detector("hf:gone/folder:1")
