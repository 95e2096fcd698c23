from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.sample import Entity, read_native, sample_from_record, sample_to_record
from pii_bench.errors import InputFileError
from pii_bench.taxonomy import CATEGORIES, PiiType
from tests.builders import make_sample, sample_record, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRETS = ("Ann", "Lee", "is 32", "Am I")
"""Texts of the sample that `sample_record` builds."""


def test_a_sample_is_read() -> None:
    sample = make_sample()

    assert sample.description == "Ann Lee is 32."
    assert sample.query == "Am I old?"
    assert [(e.text, e.type, e.category, e.spans) for e in sample.entities] == [
        ("Ann Lee", "PER", "Full Name", ((0, 7),)),
        ("32", "DEM", "Age", ((11, 13),)),
    ]
    assert [(r.subject, r.text) for r in sample.related] == [("A", "32")]
    assert sample.gold_subjects == [[("Ann Lee", "PER"), ("32", "DEM")]]


def test_category_spans_and_meta_are_optional() -> None:
    record = sample_record(subjects=[{"id": "A", "entities": [{"text": "32", "type": "DEM"}]}])
    del record["meta"]

    sample = sample_from_record(record)

    assert sample.entities[0].category is None
    assert sample.meta == {}
    assert sample_from_record(record | {"meta": None}) == sample


@pytest.mark.parametrize(
    ("text", "spans"), [("32", ((11, 13),)), ("ANN LEE", ((0, 7),)), ("Bo", ())]
)
@pytest.mark.parametrize("absent", [{}, {"spans": None}, {"spans": []}])
def test_entities_without_spans_get_those_where_they_can_be_read(
    text: str, spans: tuple[tuple[int, int], ...], absent: dict[str, Any]
) -> None:
    record = {"text": text, "type": "DEM"}
    subjects = [{"id": "A", "entities": [record | absent]}]
    sample = make_sample(subjects=subjects, related=[])

    assert sample.entities == (Entity(text, "DEM", spans=spans, listed=False),)
    # As the file had it.
    assert sample_to_record(sample)["subjects"] == [{"id": "A", "entities": [record]}]


@pytest.mark.parametrize(
    ("description", "text", "span"),
    [
        ("我叫王小明，住在北京。", "王小明", [2, 5]),
        ("👩‍👩‍👧 Ann", "Ann", [6, 9]),  # one emoji of five code points, then a space
        ("🇨🇭 Ann", "Ann", [3, 6]),
        ("Jose\u0301 here", "Jose\u0301", [0, 5]),
        ("𝒜nn", "𝒜nn", [0, 3]),  # outside the basic plane, one code point
    ],
)
def test_spans_count_code_points(description: str, text: str, span: list[int]) -> None:
    entity = {"text": text, "type": "PER", "spans": [span]}
    record = sample_record(
        description=description, subjects=[{"id": "A", "entities": [entity]}], related=[]
    )

    assert sample_from_record(record).entities[0].spans == (tuple(span),)


def changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: record.update(changes)


def entity_changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: record["subjects"][0]["entities"][0].update(changes)


ENTITY = "sample 's1', subjects[0].entities[0]"
TYPES = ", ".join(PiiType)
NO_SPAN = "must be [start, end] in code points"


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (lambda record: record.pop("id"), "record: 'id' is missing"),
        (changed(id=7), "record: 'id' must be a string, not a whole number"),
        (
            changed(description=["Ann Lee"]),
            "sample 's1': 'description' must be a string, not a list",
        ),
        (changed(query=3), "sample 's1': 'query' must be a string, not a whole number"),
        (changed(query=None), "sample 's1': 'related' must be empty where 'query' is null"),
        (
            changed(subjects={"A": ["Ann Lee"]}),
            "sample 's1': 'subjects' must be a list, not an object",
        ),
        (
            changed(subjects=[{"entities": []}], related=[]),
            "sample 's1', subjects[0]: 'id' is missing",
        ),
        (
            changed(subjects=[{"id": "A", "entities": []}] * 2, related=[]),
            "sample 's1': subject 'A' comes twice",
        ),
        (
            changed(subjects=[{"id": "A", "entities": ["Ann Lee"]}]),
            "sample 's1', subjects[0]: entities[0] must be an object, not a string",
        ),
        (entity_changed(text=32), f"{ENTITY}: 'text' must be a string, not a whole number"),
        (entity_changed(text="  "), f"{ENTITY}: 'text' is empty"),
        (
            entity_changed(type="PERS"),
            f"{ENTITY}: unknown type 'PERS'; did you mean 'PER'? (allowed: {TYPES})",
        ),
        (entity_changed(type="per"), f"{ENTITY}: unknown type 'per' (allowed: {TYPES})"),
        (entity_changed(category=1), f"{ENTITY}: 'category' must be a string, not a whole number"),
        (entity_changed(spans="0-7"), f"{ENTITY}: 'spans' must be a list, not a string"),
        (entity_changed(spans=[0, 7]), f"{ENTITY}: spans[0] {NO_SPAN}"),
        # Of several faults the span comes before the category.
        (entity_changed(category=1, spans=[0, 7]), f"{ENTITY}: spans[0] {NO_SPAN}"),
        (entity_changed(spans=[[0, 7], [0]]), f"{ENTITY}: spans[1] {NO_SPAN}"),
        (entity_changed(spans=[[0, 7, 9]]), f"{ENTITY}: spans[0] {NO_SPAN}"),
        (entity_changed(spans=[["0", "7"]]), f"{ENTITY}: spans[0] {NO_SPAN}"),
        (entity_changed(spans=[[False, 7]]), f"{ENTITY}: spans[0] {NO_SPAN}"),
        *(
            (
                entity_changed(spans=[[0, 7], span]),
                f"{ENTITY}: spans[1] = {span} does not hold the entity's text",
            )
            for span in ([0, 6], [1, 8], [7, 0], [-14, -7], [-3, 7], [900, 907])
        ),
        # A span beyond the text, of which a slice is the text.
        (
            entity_changed(text="32.", spans=[[11, 99]]),
            f"{ENTITY}: spans[0] = [11, 99] does not hold the entity's text",
        ),
        (
            changed(related=["32"]),
            "sample 's1': related[0] must be an object, not a string",
        ),
        (
            changed(related=[{"subject": "B", "text": "32"}]),
            "sample 's1', related[0]: unknown subject 'B' (allowed: A)",
        ),
        (
            changed(related=[{"subject": "A", "text": "old"}]),
            "sample 's1', related[0]: its text is not an entity of subject 'A'",
        ),
        (changed(meta=["Ann"]), "sample 's1': 'meta' must be an object, not a list"),
    ],
)
def test_a_broken_line_is_reported_without_its_text(
    tmp_path: Path, break_it: Callable[[dict[str, Any]], None], what: str
) -> None:
    broken = sample_record()
    break_it(broken)
    path = write_lines(tmp_path / "set.jsonl", [sample_record("s0"), broken])

    with pytest.raises(InputFileError) as caught:
        read_native(path)

    assert str(caught.value) == f"{path}:2: {what}"
    assert not any(secret in caught.value.what for secret in SECRETS)


def test_a_repeated_id_is_reported_with_both_lines(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "set.jsonl", map(sample_record, ["s1", "s2", "s1"]))

    with pytest.raises(InputFileError) as caught:
        read_native(path)

    assert str(caught.value) == f"{path}:3: id 's1' is already on line 1"


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(content)

    with pytest.raises(InputFileError, match=r"no samples in it$"):
        read_native(path)


def test_every_line_of_demo_is_written_back_unchanged() -> None:
    for line in DATASETS["demo"].path.read_text(encoding="utf-8").splitlines():
        sample = sample_from_record(json.loads(line))

        assert json.dumps(sample_to_record(sample), ensure_ascii=False) == line


json_values = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=2)
KNOWN = {"id", "description", "query", "subjects", "related", "meta"} | {
    *("entities", "text", "type", "category", "spans", "subject")
}
unknown_keys = st.dictionaries(
    st.text(max_size=8).filter(lambda key: key not in KNOWN), json_values, max_size=2
)
categories = st.sampled_from([(t, c) for t, names in CATEGORIES.items() for c in names])


@st.composite
def sample_records(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid line: words joined by spaces, each with at most one entity."""
    words = draw(st.lists(st.text(min_size=1, max_size=4).filter(str.strip), max_size=6))
    description = " ".join(words)
    owners = [draw(st.sampled_from(["A", "B", None])) for _ in words]
    subjects: dict[str, list[dict[str, Any]]] = {"A": [], "B": []}
    start = 0
    for word, owner in zip(words, owners, strict=True):
        if owner is not None:
            pii_type, category = draw(categories)
            entity = {"text": word, "type": str(pii_type)}
            optional: dict[str, Any] = {"category": category, "spans": [[start, start + len(word)]]}
            kept = draw(st.sets(st.sampled_from(sorted(optional))))
            entity |= {key: value for key, value in optional.items() if key in kept}
            subjects[owner].append(entity | draw(unknown_keys))
        start += len(word) + 1
    query = draw(st.none() | st.text(max_size=8))
    choices = [(s, e["text"]) for s, entities in subjects.items() for e in entities]
    related = draw(st.lists(st.sampled_from(choices), max_size=3)) if query and choices else []
    return {
        "id": draw(st.text(max_size=8)),
        "description": description,
        "query": query,
        "subjects": [
            {"id": name, "entities": entities, **draw(unknown_keys)}
            for name, entities in subjects.items()
        ],
        "related": [
            {"subject": name, "text": text, **draw(unknown_keys)} for name, text in related
        ],
        "meta": draw(unknown_keys),
        **draw(unknown_keys),
    }


@given(sample_records())
def test_every_valid_line_is_written_back_with_its_unknown_keys(record: dict[str, Any]) -> None:
    assert sample_to_record(sample_from_record(record)) == record
