from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset, open_dataset
from pii_bench.datasets.span_files import (
    SPAN_FORMATS,
    Document,
    Misfits,
    SpanSource,
    joined,
    read_documents,
    span_source,
)
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.taxonomy import taxonomy
from tests.builders import write_lines
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

SHARED: Final = REPOSITORY.parent / "shared" / "datasets"
TEXT: Final = "Hi, I am Ann Lee."
ANN: Final = {"value": "Ann", "start": 9, "end": 12, "label": "FIRSTNAME"}
LEE: Final = {"value": "Lee", "start": 13, "end": 16, "label": "LASTNAME"}
ROW: Final = {"source_text": TEXT, "privacy_mask": [ANN, LEE], "language": "en", "set": "train"}
SPANS: Final = ((9, 12, "FIRSTNAME"), (13, 16, "LASTNAME"))


def read(source: str) -> tuple[list[Document], tuple[str, ...]]:
    misfits = Misfits()
    parsed = span_source(source)
    assert parsed is not None
    return list(read_documents(parsed, misfits)), misfits.messages()


def read_rows(kind: str, folder: Path, *rows: Any) -> tuple[list[Document], tuple[str, ...]]:
    return read(f"{kind}:{write_lines(folder / 'rows.jsonl', rows)}")


@pytest.mark.parametrize(
    "mask",
    [
        [ANN, LEE],
        json.dumps([LEE, ANN]),
        str([ANN, LEE]),
        # NumPy writes lists without commas.
        str([ANN, LEE]).replace("}, {", "}\n {"),
        [{**ANN, "label": "FIRSTNAME_1"}, {**LEE, "label": "lastname"}],
        [ANN, LEE, {"value": "", "start": 0, "end": 0, "label": "CITY"}],
    ],
    ids=["list", "JSON", "Python", "without commas", "running numbers", "an empty value"],
)
def test_ai4privacy_masks_are_read_in_all_notations(tmp_path: Path, mask: object) -> None:
    (document,), _ = read_rows("ai4privacy", tmp_path, {**ROW, "privacy_mask": mask})

    assert document == Document("ai4privacy-000001", TEXT, SPANS)


def test_ai4privacy_span_labels_are_read(tmp_path: Path) -> None:
    labels = json.dumps([[0, 9, "O"], [9, 12, "FIRSTNAME"], [12, 13, "O"], [13, 16, "LASTNAME"]])

    (document,), _ = read_rows("ai4privacy", tmp_path, {"source_text": TEXT, "span_labels": labels})

    assert document.spans == SPANS


SPAN: Final = {"start": 9, "end": 16, "label": "name"}
PRESIDIO_SPAN: Final = {
    "entity_type": "PERSON",
    "entity_value": "Ann Lee",
    "start_position": 9,
    "end_position": 16,
}
SPIA_FACTS: Final = [{"tag": "NAME", "keyword": "Ann Lee"}, {"tag": "AGE", "keyword": ""}]


@pytest.mark.parametrize(
    ("kind", "row", "spans"),
    [
        (
            "nemotron",
            {"text": TEXT, "spans": str([{**SPAN, "text": "Ann Lee"}])},
            ((9, 16, "name"),),
        ),
        (
            "gretel",
            {"generated_text": TEXT, "pii_spans": json.dumps([SPAN])},
            ((9, 16, "name"),),
        ),
        (
            "gretel",
            {"text": "Ann, Anna, Ann", "entities": "[{'entity': 'Ann', 'types': ['first_name']}]"},
            ((0, 3, "first_name"), (11, 14, "first_name")),
        ),
        (
            "presidio-research",
            {"full_text": TEXT, "spans": [PRESIDIO_SPAN]},
            ((9, 16, "PERSON"),),
        ),
        (
            "spia",
            {"text": TEXT, "subjects": [{"PIIs": SPIA_FACTS}]},
            ((9, 16, "NAME"),),
        ),
        (
            "bio",
            {"tokens": ["Ann", "Lee", "of", "Ulm"], "tags": ["B-PER", "I-PER", "O", "S-LOC"]},
            ((0, 7, "PER"), (11, 14, "LOC")),
        ),
    ],
)
def test_rows_of_each_format_are_read(
    tmp_path: Path, kind: str, row: dict[str, Any], spans: tuple[tuple[int, int, str], ...]
) -> None:
    (document,), messages = read_rows(kind, tmp_path, row)

    assert document.spans == spans
    assert messages == ()


def test_bio_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "test.conll"
    path.write_text(
        "-DOCSTART- -X- O\n\nAnn NNP B-PER\nLee NNP I-PER\n\nUlm NNP I-LOC\nBonn NNP I-PER\n\n"
        "alone\n\nBonn\tcity\tB-LOC",
        encoding="utf-8",
    )

    documents, messages = read(f"bio:{path}")

    assert [(document.text, document.spans) for document in documents] == [
        ("Ann Lee", ((0, 7, "PER"),)),
        # An I tag without an open span of its label starts a span.
        ("Ulm Bonn", ((0, 3, "LOC"), (4, 8, "PER"))),
        ("Bonn", ((0, 4, "LOC"),)),
    ]
    assert messages == (
        "1 left out: a sentence with a line that has no token and tag (first at test.conll:9)",
    )


def test_all_file_types_give_the_same_documents(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [ROW, ROW])
    (tmp_path / "a.json").write_text(json.dumps([ROW, ROW], indent=1), encoding="utf-8")
    write_lines(tmp_path / "lines.json", [ROW, ROW])
    with (tmp_path / "a.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, [*ROW])
        writer.writeheader()
        writer.writerows([{**ROW, "privacy_mask": str(ROW["privacy_mask"])}] * 2)
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist([ROW, ROW]), tmp_path / "a.parquet")

    contents = [
        json.dumps([[d.text, d.spans] for d in read(f"ai4privacy:{path}")[0]])
        for path in tmp_path.iterdir()
    ]

    assert len(contents) == 5
    assert len(set(contents)) == 1
    documents, messages = read(f"ai4privacy:{tmp_path}")
    assert [document.id for document in documents] == [f"ai4privacy-{n:06d}" for n in range(1, 11)]
    assert messages == ()


SECRET: Final = "Zebedee"  # noqa: S105 -- a name


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"privacy_mask": [ANN]}, "record: 'source_text' is missing"),
        ({"source_text": SECRET}, "record: 'privacy_mask' is missing"),
        ({"source_text": SECRET, "privacy_mask": [ANN]}, "offsets outside of the text"),
        (
            {"source_text": SECRET * 3, "privacy_mask": [ANN]},
            "offsets that do not hold their value",
        ),
        (
            {"source_text": SECRET, "privacy_mask": f"[{SECRET}"},
            "record: 'privacy_mask' is a string that holds no list",
        ),
        (
            {"source_text": SECRET, "privacy_mask": ["1", SECRET]},
            "record: privacy_mask must be an object, not a string",
        ),
        (
            {"source_text": TEXT, "privacy_mask": [{**ANN, "label": f"{SECRET}, my friend"}]},
            "a label that is no name",
        ),
        (
            {"source_text": TEXT, "privacy_mask": [{**ANN, "start": "9"}]},
            "span: 'start' must be a whole number, not a string",
        ),
        *(
            (
                {"source_text": SECRET, "span_labels": [label]},
                "record: 'span_labels' must hold [start, end, label]",
            )
            for label in (None, 9, [9, 12], {"start": 9})
        ),
    ],
)
def test_misfits_are_counted_by_reason_without_their_text(
    tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    documents, (message,) = read_rows("ai4privacy", tmp_path, ROW, row, row, ROW)

    assert [document.id for document in documents] == ["ai4privacy-000001", "ai4privacy-000004"]
    assert message == f"2 left out: {reason} (first at rows.jsonl:2, rows.jsonl:3)"


def test_messages_name_five_lines_and_start_with_the_most_frequent_reason(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "\n".join([json.dumps(ROW), "[]", *["{broken"] * 3, *["{"] * 4]), encoding="utf-8"
    )

    _, messages = read(f"ai4privacy:{path}")

    places = ", ".join(f"rows.jsonl:{line}" for line in range(3, 8))
    assert messages == (
        f"7 left out: not valid JSON (first at {places})",
        "1 left out: a line must be a JSON object, not a list (first at rows.jsonl:2)",
    )


def test_only_values_that_are_not_in_the_text_are_left_out(tmp_path: Path) -> None:
    entities = [{"entity": "Ann", "types": ["first_name"]}, {"entity": "Bo", "types": ["name"]}]

    (document,), messages = read_rows("gretel", tmp_path, {"text": TEXT, "entities": entities})

    assert document.spans == ((9, 12, "first_name"),)
    assert messages == ("1 left out: a value that is not in the text (first at rows.jsonl:1)",)


def test_a_file_without_fitting_row_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [{"text": SECRET}])

    with pytest.raises(InputFileError) as caught:
        read(f"ai4privacy:{path}")

    assert str(caught.value).startswith(f"{path}: no row fits ai4privacy; 1 left out: ")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("rows.json", '[{"source_text": "Zebedee"}, {"sou', ":1: not valid JSON"),
        ("rows.json", '[{"a": 1},\n{"b": Zebedee}]', ":2: not valid JSON"),
        ("rows.json", '[{"a": "Zeb\\ud8', ":1: not valid JSON"),
        ("rows.csv", 'source_text\n"Zebedee', "not valid CSV"),
        ("rows.xml", "<Zebedee>", "must end in one of .jsonl, .ndjson, .json, .csv, .parquet"),
    ],
)
def test_a_broken_file_is_reported_without_its_text(
    tmp_path: Path, name: str, content: str, what: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError) as caught:
        read(f"ai4privacy:{tmp_path / name}")

    assert what in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_broken_parquet_file_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")

    with pytest.raises(InputFileError, match="not a Parquet file"):
        read(f"ai4privacy:{tmp_path}")


def test_places_in_a_json_list_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(f"[{json.dumps(ROW)}, 12,\n{{}},\n {json.dumps(ROW, indent=1)}\n, 12]")

    documents, messages = read(f"ai4privacy:{path}")

    last = 3 + json.dumps(ROW, indent=1).count("\n") + 1
    assert [document.spans for document in documents] == [SPANS] * 2
    assert messages == (
        f"2 left out: a row must be a JSON object (first at rows.json:1, rows.json:{last})",
        "1 left out: record: 'source_text' is missing (first at rows.json:2)",
    )


ROWS_OF_TWO: Final = [
    {**ROW, "language": "en", "split": "train"},
    {**ROW, "language": "French", "split": "test"},
    {**ROW, "language": "fr-CA", "split": "train"},
    {key: value for key, value in ROW.items() if key not in {"language", "set"}},
]


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ("#language=fr", [2, 3]),
        ("#language=French&split=train", [3]),
        ("#language=EN", [1]),
        # The split of the last row is that of the file name.
        ("#split=test", [2, 4]),
        ("", [1, 2, 3, 4]),
    ],
)
def test_filters_select_rows(tmp_path: Path, filters: str, numbers: list[int]) -> None:
    path = write_lines(tmp_path / "test-00000-of-00001.jsonl", ROWS_OF_TWO)

    documents, messages = read(f"ai4privacy:{path}{filters}")

    assert [int(document.id[-1]) for document in documents] == numbers
    # The last row does not name its language.
    assert len(messages) == ("language" in filters)


def test_unknown_filters_and_those_without_rows_are_errors(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [ROW])

    with pytest.raises(InputFileError, match="no row fits ai4privacy language 'de' split 'dev'"):
        read(f"ai4privacy:{path}#language=de&split=dev")
    with pytest.raises(PiiBenchError, match="only language= and split= are allowed"):
        span_source(f"ai4privacy:{path}#size=3")


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        (TEXT, SPANS, [(9, 16, "FIRSTNAME")]),
        ("Ann, Lee", ((0, 3, "FIRSTNAME"), (5, 8, "LASTNAME")), [(0, 3), (5, 8)]),
        ("Ann Bo", ((0, 3, "FIRSTNAME"), (4, 6, "FIRSTNAME")), [(0, 3), (4, 6)]),
        (
            "12 Elm Ulm",
            ((0, 2, "BUILDINGNUMBER"), (3, 6, "STREET"), (7, 10, "CITY")),
            [(0, 6), (7, 10)],
        ),
        ("Ann Lee", ((0, 7, "LASTNAME"), (4, 7, "FIRSTNAME")), [(0, 7), (4, 7)]),
    ],
)
def test_adjacent_parts_of_one_value_are_joined(
    text: str, spans: tuple[tuple[int, int, str], ...], expected: list[tuple[int, ...]]
) -> None:
    spans_joined = joined(Document("x", text, spans), taxonomy("ai4privacy"))

    assert [span[: len(expected[0])] for span in spans_joined] == expected


def test_a_dataset_of_spans_is_loaded_without_known_subjects(tmp_path: Path) -> None:
    row = {
        **ROW,
        "privacy_mask": [ANN, LEE, {"value": "Hi", "start": 0, "end": 2, "label": "PREFIX"}],
    }
    source = f"ai4privacy:{write_lines(tmp_path / 'rows.jsonl', [row])}"

    dataset, stream = load_dataset(source), open_dataset(source)

    (sample,) = dataset.samples
    assert [(e.text, e.type, e.category, e.spans) for e in sample.entities] == [
        ("Ann Lee", "PER", "Full Name", ((9, 16),))
    ]
    assert (sample.query, sample.related) == (None, ())
    assert not dataset.names_subjects
    assert dataset.faults == ("1 left out: a span, as label PREFIX has none of the seven types",)
    assert (stream.name, stream.sha256, stream.faults) == (
        dataset.name,
        dataset.sha256,
        dataset.faults,
    )
    assert tuple(stream.read()) == dataset.samples
    assert load_dataset(f"{source}#language=en").name.startswith("ai4privacy-rows-en-")


KEYS: Final = (
    *("source_text", "privacy_mask", "span_labels", "full_text", "text", "spans", "entities"),
    *("generated_text", "pii_spans", "subjects", "tokens", "tags"),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(SPAN_FORMATS)),
    values=st.dictionaries(
        st.sampled_from(KEYS),
        st.recursive(
            st.none() | st.integers(-2, 20) | st.text(max_size=8) | st.just("[{}]"),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["start", "end", "label", "value", "types"]), inner
                )
            ),
            max_leaves=8,
        ),
    ),
)
def test_any_row_is_a_document_or_a_misfit(
    tmp_path: Path, kind: str, values: dict[str, Any]
) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [values])
    misfits = Misfits()

    try:
        documents = list(read_documents(SpanSource(kind, path), misfits))
    except InputFileError:
        assert misfits.messages()
    else:
        for document in documents:
            assert all(0 <= start < end <= len(document.text) for start, end, _ in document.spans)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared datasets are not installed")
def test_presidio_research_and_spia_are_read() -> None:
    documents, messages = read(f"presidio-research:{SHARED / 'presidio_research'}")

    assert (len(documents), sum(len(document.spans) for document in documents)) == (1500, 2863)
    assert messages == ()
    assert {label for document in documents for *_, label in document.spans} == {
        *taxonomy("presidio-research")
    }

    documents, messages = read(f"spia:{SHARED / 'spia_tab' / 'spia_tab_144.jsonl'}")

    assert len(documents) == 144
    # Most of the 3,350 facts are inferred.
    (message,) = messages
    assert message.startswith("2188 left out: a value that is not in the text")
