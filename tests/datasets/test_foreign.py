from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.foreign import CAPID_TYPES, TAB_TYPES, as_written, read_capid, read_tab
from pii_bench.errors import InputFileError
from pii_bench.taxonomy import PiiType
from tests.builders import write_lines
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

LINE: dict[str, Any] = {
    "context": "Mo, 41, bakes. Mo has asthma.",
    "question": "Is flour bad for me?",
    "piis": {
        "Mo": {"type": "name", "relevance": "0"},
        "41": {"type": "age", "relevance": "0"},
        "asthma": {"type": "health", "relevance": "1"},
    },
}


def test_a_capid_line_is_read_as_a_sample_with_one_subject(tmp_path: Path) -> None:
    (sample,), faults = read_capid(write_lines(tmp_path / "test.jsonl", [LINE]))

    assert (sample.id, sample.description, sample.query) == (
        "capid-0001",
        "Mo, 41, bakes. Mo has asthma.",
        "Is flour bad for me?",
    )
    assert [subject.id for subject in sample.subjects] == ["A"]
    assert [(e.text, e.type, e.spans) for e in sample.entities] == [
        ("Mo", "PER", ((0, 2), (15, 17))),
        ("41", "DEM", ((4, 6),)),
        ("asthma", "DEM", ((22, 28),)),
    ]
    assert [(r.subject, r.text) for r in sample.related] == [("A", "asthma")]
    assert faults == ()


def test_low_and_high_are_read_and_phrases_are_written_as_in_the_context(tmp_path: Path) -> None:
    line = {
        "context": "Mo’s sister “Jo” – a vet – is 41.",
        "question": "Is she old?",
        "piis": {
            "Mo's sister": {"type": "relationship", "relevance": "high"},
            '"Jo" - a vet': {"type": "name", "relevance": "low"},
        },
    }
    (sample,), faults = read_capid(write_lines(tmp_path / "test.jsonl", [line]))

    assert [(e.text, e.spans) for e in sample.entities] == [
        ("Mo’s sister", ((0, 11),)),
        ("“Jo” – a vet", ((12, 24),)),
    ]
    assert [related.text for related in sample.related] == ["Mo’s sister"]
    assert faults == ()


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        ("Mo's", "Mo’s"),
        ("Mo’s", "Mo’s"),
        ("mo's", "mo's"),  # case counts
        ("it's", "it's"),  # occurs exactly
        ("Jo's", "Jo's"),  # does not occur
        (" ", " "),
    ],
)
def test_a_phrase_is_written_as_in_the_context(phrase: str, written: str) -> None:
    assert as_written(phrase, "Mo’s car: it’s red, it's old.") == written


def test_a_phrase_that_does_not_occur_is_a_fault(tmp_path: Path) -> None:
    phrases = LINE["piis"] | {
        "gout": {"type": "health", "relevance": "1"},
        " ": {"type": "health", "relevance": "1"},
    }
    path = write_lines(tmp_path / "test.jsonl", [LINE, LINE | {"piis": phrases}])

    (_, sample), faults = read_capid(path)

    assert faults == (
        "capid-0002: phrase 4 of 'piis' is not in it",
        "capid-0002: phrase 5 of 'piis' is not in it",
    )
    assert [entity.text for entity in sample.entities] == ["Mo", "41", "asthma"]
    assert [related.text for related in sample.related] == ["asthma"]


def test_lines_without_question_or_phrases_are_read(tmp_path: Path) -> None:
    lines = [LINE | {"question": None}, LINE | {"piis": {}}]
    (sample, other), _ = read_capid(write_lines(tmp_path / "test.jsonl", lines))

    assert other.subjects == ()
    assert sample.query is None
    assert sample.related == ()
    assert len(sample.entities) == 3


def test_the_types_of_capid_and_tab_map_to_all_of_ours() -> None:
    assert len(CAPID_TYPES) == 15
    assert set(CAPID_TYPES.values()) == set(PiiType)
    assert set(TAB_TYPES.values()) == {*PiiType, None}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"context": None}, "record: 'context' must be a string, not null"),
        ({"question": ["Am I?"]}, "record: 'question' must be a string, not a list"),
        ({"piis": ["Mo"]}, "record: 'piis' must be an object, not a list"),
        (
            {"piis": {"Mo": {"type": "nam", "relevance": "0"}}},
            (
                "phrase 1 of 'piis': unknown CAPID type 'nam'; did you mean 'name'? "
                f"(allowed: {', '.join(CAPID_TYPES)})"
            ),
        ),
        *(
            (
                {"piis": {"Mo": label}},
                "phrase 1 of 'piis' must have a 'type' and a 'relevance' (one of 0, 1, low, high)",
            )
            for label in ({"type": "name", "relevance": 1}, {"type": "name", "relevance": "2"}, "a")
        ),
    ],
)
def test_a_broken_line_is_reported_without_its_text(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    path = write_lines(tmp_path / "test.jsonl", [LINE, LINE | change])

    with pytest.raises(InputFileError) as caught:
        read_capid(path)

    assert str(caught.value) == f"{path}:2: {what}"


def test_an_empty_capid_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"no samples in it$"):
        read_capid(write_lines(tmp_path / "test.jsonl", []))


@pytest.mark.parametrize(
    ("name", "samples", "faults", "without_question"),
    [("test.jsonl", 200, 2, 0), ("train.jsonl", 2107, 19, 1)],
)
def test_the_released_files_of_capid(
    capid_folder: Path, name: str, samples: int, faults: int, without_question: int
) -> None:
    read, messages = read_capid(capid_folder / name)

    assert len(read) == len({sample.id for sample in read}) == samples
    assert len(messages) == faults
    assert sum(sample.query is None for sample in read) == without_question
    for sample in read:
        for entity in sample.entities:
            assert entity.spans
            assert {sample.description[a:b] for a, b in entity.spans} == {entity.text}


TAB_FILE = REPOSITORY.parent / "shared" / "datasets" / "spia_tab" / "tab_144_native_layout.json"
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


def write(path: Path, *documents: object) -> Path:
    path.write_text(json.dumps(documents), encoding="utf-8")
    return path


MO = mention(0, 5, "PERSON", identifier_type="DIRECT")
ULM = [mention(9, 12, "LOC"), mention(18, 21, "LOC"), mention(18, 21, "ORG")]
COURT = mention(29, 50, "ORG", identifier_type="NO_MASK")


def test_a_tab_document_is_read_as_a_sample_without_query(tmp_path: Path) -> None:
    (sample,), faults = read_tab(write(tmp_path / "tab.json", document(annotator1=[MO, *ULM])))

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


@pytest.mark.parametrize(
    ("annotators", "gold"),
    [
        # Mentions that are not masked or have no type.
        ({"annotator1": [MO, COURT, mention(13, 17, "MISC")]}, {"Mr Mo": ((0, 5),)}),
        # An entity that is masked in part.
        ({"annotator1": [ULM[0], ULM[1] | {"identifier_type": "NO_MASK"}]}, {"Ulm": ((9, 12),)}),
        # The first annotator of the file is used.
        ({"annotator7": [MO], "annotator1": ULM}, {"Mr Mo": ((0, 5),)}),
        ({"annotator1": [COURT]}, {}),
    ],
)
def test_masked_mentions_are_gold(
    tmp_path: Path, annotators: dict[str, Any], gold: dict[str, tuple[tuple[int, int], ...]]
) -> None:
    dataset = load_dataset(f"tab:{write(tmp_path / 'tab.json', document(**annotators))}")

    (sample,) = dataset.samples
    assert {entity.text: entity.spans for entity in sample.entities} == gold
    assert [subject.id for subject in sample.subjects] == (["A"] if gold else [])
    assert dataset.faults == ()


@pytest.mark.parametrize(
    "change",
    [{"end_offset": 4}, {"start_offset": -51}, {"end_offset": 900}, {"span_text": ""}],
    ids=["other text", "negative", "behind the end", "empty"],
)
def test_a_mention_that_is_not_at_its_offsets_is_a_fault(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = write(tmp_path / "tab.json", document(annotator1=[ULM[0], MO | change]))

    (sample,), faults = read_tab(path)

    assert [entity.text for entity in sample.entities] == ["Ulm"]
    assert faults == ("001-1: mention 2 is not at its offsets",)


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ({"doc_id": 1}, "record: 'doc_id' must be a string, not a whole number"),
        ({"doc_id": "001-1"}, "'doc_id' '001-1' comes twice"),
        ({"text": None}, "record: 'text' must be a string, not null"),
        ({"annotations": {}}, "record: 'annotations' has no annotator"),
        ({"annotations": {"a1": {}}}, "a1: 'entity_mentions' is missing"),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"entity_type": "PERSONS"}]}}},
            (
                "mention 1: unknown TAB entity_type 'PERSONS'; did you mean 'PERSON'? "
                f"(allowed: {', '.join(TAB_TYPES)})"
            ),
        ),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"identifier_type": "mask"}]}}},
            "mention 1: unknown TAB identifier_type 'mask' (allowed: DIRECT, QUASI, NO_MASK)",
        ),
        (
            {"annotations": {"a1": {"entity_mentions": [MO | {"start_offset": "0"}]}}},
            "mention 1: 'start_offset' must be a whole number, not a string",
        ),
    ],
)
def test_a_broken_document_is_reported_without_its_text(
    tmp_path: Path, broken: dict[str, Any], what: str
) -> None:
    second = document("001-2", annotator1=[MO]) | broken
    path = write(tmp_path / "tab.json", document("001-1", annotator1=[MO]), second)

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
def test_a_file_that_is_not_tab_is_an_error(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "tab.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        read_tab(path)

    assert str(caught.value) == f"{path}: {what}"


def test_the_released_file_of_tab() -> None:
    if not TAB_FILE.is_file():
        pytest.skip(f"TAB is not at {TAB_FILE}")

    samples, faults = read_tab(TAB_FILE)

    assert len(samples) == 144
    assert faults == ()
    # 6,613 mentions less 2,202 NO_MASK and 149 others of MISC.
    entities = [entity for sample in samples for entity in sample.entities]
    assert sum(len(entity.spans) for entity in entities) == 4_262
    assert {entity.type for entity in entities} == set(PiiType)
