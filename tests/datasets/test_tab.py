from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.tab import MASKED, TYPES, read_tab
from pii_bench.errors import InputFileError
from pii_bench.taxonomy import PiiType
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SHARED = REPOSITORY.parent / "shared" / "datasets" / "spia_tab" / "tab_144_native_layout.json"
TEXT = "Mr Mo of Ulm sued Ulm in the District Court of Ulm."


def mention(start: int, end: int, entity_type: str, **changes: Any) -> dict[str, Any]:
    return {
        "entity_type": entity_type,
        "entity_mention_id": f"{start}-{end}",
        "start_offset": start,
        "end_offset": end,
        "span_text": TEXT[start:end],
        "identifier_type": "QUASI",
        "entity_id": "e1",
    } | changes


def document(doc_id: str = "001-1", **annotators: list[dict[str, Any]]) -> dict[str, Any]:
    annotations = {name: {"entity_mentions": mentions} for name, mentions in annotators.items()}
    return {"doc_id": doc_id, "text": TEXT, "annotations": annotations}


def written(path: Path, *documents: object) -> Path:
    path.write_text(json.dumps(documents), encoding="utf-8")
    return path


MO = mention(0, 5, "PERSON", identifier_type="DIRECT")
ULM = [mention(9, 12, "LOC"), mention(18, 21, "LOC"), mention(18, 21, "ORG")]
COURT = mention(29, 50, "ORG", identifier_type="NO_MASK")


def test_a_document_becomes_a_sample_without_query(tmp_path: Path) -> None:
    (sample,), faults = read_tab(written(tmp_path / "tab.json", document(annotator1=[MO, *ULM])))

    assert (sample.id, sample.description, sample.query, sample.related) == (
        "001-1",
        TEXT,
        None,
        (),
    )
    assert [subject.id for subject in sample.subjects] == ["A"]
    assert [(e.text, e.type, e.spans) for e in sample.entities] == [
        ("Mr Mo", "PER", ((0, 5),)),
        ("Ulm", "LOC", ((9, 12), (18, 21))),
        ("Ulm", "ORG", ((18, 21),)),
    ]
    assert faults == ()


def test_what_tells_nothing_about_the_applicant_is_not_gold(tmp_path: Path) -> None:
    path = written(tmp_path / "tab.json", document(annotator1=[MO, COURT]))

    (sample,), faults = read_tab(path)

    assert [entity.text for entity in sample.entities] == ["Mr Mo"]
    assert faults == ()


def test_of_an_entity_masked_in_part_only_those_places_count(tmp_path: Path) -> None:
    mentions = [ULM[0], ULM[1] | {"identifier_type": "NO_MASK"}]

    (sample,), _ = read_tab(written(tmp_path / "tab.json", document(annotator1=mentions)))

    assert [entity.spans for entity in sample.entities] == [((9, 12),)]


def test_misc_has_no_type_and_is_not_gold(tmp_path: Path) -> None:
    path = written(tmp_path / "tab.json", document(annotator1=[mention(13, 17, "MISC"), MO]))

    (sample,), faults = read_tab(path)

    assert [entity.text for entity in sample.entities] == ["Mr Mo"]
    assert faults == ()


def test_the_first_annotator_of_the_file_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "tab.json", document(annotator7=[MO], annotator1=ULM))

    (sample,), _ = read_tab(path)

    assert [entity.text for entity in sample.entities] == ["Mr Mo"]


def test_a_document_without_masked_mentions_has_no_subject(tmp_path: Path) -> None:
    (sample,), _ = read_tab(written(tmp_path / "tab.json", document(annotator1=[COURT])))

    assert sample.subjects == ()


@pytest.mark.parametrize(
    "change",
    [{"end_offset": 4}, {"start_offset": -51}, {"end_offset": 900}, {"span_text": ""}],
    ids=["other text", "negative", "behind the end", "empty"],
)
def test_a_mention_that_is_not_at_its_offsets_is_a_fault(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = written(tmp_path / "tab.json", document(annotator1=[ULM[0], MO | change]))

    (sample,), faults = read_tab(path)

    assert [entity.text for entity in sample.entities] == ["Ulm"]
    assert faults == ("001-1: mention 2 does not stand at its offsets",)


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ({"doc_id": 1}, "record: 'doc_id' must be a string, not a whole number"),
        ({"doc_id": "001-1"}, "'doc_id' '001-1' comes twice"),
        ({"text": None}, "record: 'text' must be a string, not null"),
        ({"annotations": {}}, "record: 'annotations' has no annotator"),
        (
            {"annotations": {"a1": {}}},
            "a1: 'entity_mentions' is missing",
        ),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"entity_type": "PERSONS"}]}}},
            (
                "mention 1: unknown TAB entity_type 'PERSONS'; did you mean 'PERSON'? "
                f"(allowed: {', '.join(TYPES)})"
            ),
        ),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"identifier_type": "mask"}]}}},
            (f"mention 1: unknown TAB identifier_type 'mask' (allowed: {', '.join(MASKED)})"),
        ),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"start_offset": "0"}]}}},
            "mention 1: 'start_offset' must be a whole number, not a string",
        ),
    ],
)
def test_a_broken_document_is_named_and_its_text_is_not_told(
    tmp_path: Path, broken: dict[str, Any], what: str
) -> None:
    second = document("001-2", annotator1=[MO]) | broken
    path = written(tmp_path / "tab.json", document("001-1", annotator1=[MO]), second)

    with pytest.raises(InputFileError) as caught:
        read_tab(path)

    assert str(caught.value) == f"{path}: document 2: {what}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[", "not valid JSON"),
        ('{"doc_id": "001-1"}', "file: 'documents' must be a list, not an object"),
        ("[1]", "file: documents[0] must be an object, not a whole number"),
        ("[]", "no samples in it"),
    ],
)
def test_a_file_that_is_none_of_tab(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "tab.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        read_tab(path)

    assert str(caught.value) == f"{path}: {what}"


def test_it_is_a_format_of_the_command_line(tmp_path: Path) -> None:
    path = written(tmp_path / "tab.json", document(annotator1=[MO]))

    dataset = load_dataset(f"tab:{path}")

    assert dataset.name == f"tab-tab-{dataset.sha256[:8]}"
    assert [sample.id for sample in dataset.samples] == ["001-1"]


def test_every_type_of_ours_is_one_of_tabs() -> None:
    assert set(TYPES.values()) == {*PiiType, None}


def test_the_released_file() -> None:
    if not SHARED.is_file():
        pytest.skip(f"TAB is not at {SHARED}")

    samples, faults = read_tab(SHARED)

    assert len(samples) == 144
    assert faults == ()
    # 6,613 mentions less 2,202 NO_MASK and 149 others of MISC.
    entities = [entity for sample in samples for entity in sample.entities]
    assert sum(len(entity.spans) for entity in entities) == 4_262
    assert {entity.type for entity in entities} == set(PiiType)
