from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets import catalog
from pii_bench.datasets.catalog import DATASETS, Dataset, load_dataset, load_datasets
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return load_dataset("demo")


def test_a_dataset_is_found_by_name(demo: Dataset) -> None:
    assert (demo.name, demo.source, demo.sha256) == ("demo", "demo", DATASETS["demo"].sha256)


def test_all_is_every_dataset_of_ours() -> None:
    assert [dataset.name for dataset in load_datasets("all")] == list(DATASETS)


def test_a_file_of_ours_is_named_by_its_stem_and_hash(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "my set.jsonl", [sample_record()])
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    dataset = load_dataset(str(path))

    assert dataset.name == f"my-set-{sha256[:8]}"
    assert dataset.source == str(path)
    assert dataset.sha256 == sha256
    assert [sample.id for sample in dataset.samples] == ["s1"]


def test_a_foreign_file_is_named_by_its_format_too(tmp_path: Path) -> None:
    line = {"context": "Mo bakes.", "question": "Why?", "piis": {}}
    path = write_lines(tmp_path / "test.jsonl", [line])

    dataset = load_dataset(f"capid:{path}")

    assert dataset.name == f"capid-test-{dataset.sha256[:8]}"
    assert dataset.source == f"capid:{path}"


def test_two_files_of_one_name_have_two_names(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a" / "test.jsonl", [sample_record("s1")])
    second = write_lines(tmp_path / "b" / "test.jsonl", [sample_record("s2")])

    assert load_dataset(str(first)).name != load_dataset(str(second)).name


def test_the_near_match_of_an_unknown_name_is_offered() -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown dataset 'dem'; did you mean 'demo'\?"):
        load_dataset("dem")


def test_all_is_no_single_dataset() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_dataset("all")

    assert "all" not in caught.value.allowed


@pytest.mark.parametrize("source", ["gone.jsonl", "gone/set", "capid:gone.jsonl"])
def test_a_path_that_is_not_there(source: str) -> None:
    with pytest.raises(InputFileError, match=r"No such file or directory$"):
        load_dataset(source)


def test_a_file_of_ours_that_differs_from_its_pin_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "demo.jsonl", [sample_record()])
    monkeypatch.setattr(catalog, "DATA", tmp_path)

    with pytest.raises(InputFileError, match="but dataset 'demo' is pinned to c66c7104"):
        load_dataset("demo")


def test_a_pin_is_checked_against_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(DATASETS["demo"], sha256="0" * 64)
    monkeypatch.setattr(catalog, "DATASETS", {"demo": wrong})

    with pytest.raises(InputFileError, match=r"sha256 is c66c7104\w+, but"):
        load_dataset("demo")


def test_demo_has_the_size_that_its_card_says(demo: Dataset) -> None:
    assert len(demo.samples) == DATASETS["demo"].samples == 12
    assert demo.faults == ()


def test_demo_has_one_to_three_subjects_and_one_to_three_related_entities(demo: Dataset) -> None:
    assert {len(sample.subjects) for sample in demo.samples} == {1, 2, 3}
    assert {len(sample.related) for sample in demo.samples} == {1, 2, 3}


def test_demo_has_every_type_and_category(demo: Dataset) -> None:
    entities = [entity for sample in demo.samples for entity in sample.entities]

    assert {entity.type for entity in entities} == set(PiiType)
    assert {entity.category for entity in entities} == set(TYPE_OF_CATEGORY)
    assert all(entity.category in CATEGORIES[PiiType(entity.type)] for entity in entities)


def test_no_subject_of_demo_has_two_names(demo: Dataset) -> None:
    for sample in demo.samples:
        for subject in sample.subjects:
            names = [entity for entity in subject.entities if entity.type == "PER"]
            assert len(names) <= 1, (sample.id, subject.id)


def test_no_name_in_demo_is_related_to_a_query(demo: Dataset) -> None:
    for sample in demo.samples:
        types = {entity.text: entity.type for entity in sample.entities}
        assert "PER" not in {types[related.text] for related in sample.related}, sample.id


def test_no_query_of_demo_holds_what_it_asks_for(demo: Dataset) -> None:
    for sample in demo.samples:
        query = (sample.query or "").casefold()
        assert not any(related.text.casefold() in query for related in sample.related), sample.id


def test_the_spans_of_demo_are_exact_and_in_order(demo: Dataset) -> None:
    for sample in demo.samples:
        for entity in sample.entities:
            assert entity.spans, sample.id
            assert {sample.description[a:b] for a, b in entity.spans} == {entity.text}, sample.id
            assert all(a[1] <= b[0] for a, b in pairwise(entity.spans)), sample.id
