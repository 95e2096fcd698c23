from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pii_bench
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError
from pii_bench.runs.manifest import DatasetRef, Manifest, read_manifest, write_manifest
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = Manifest(
    SystemCard(
        model="openai/gpt-4o",
        prompt="naive",
        prompt_sha256="p" * 64,
        task=Task.QUERY_RELATED,
        oracle=False,
        settings={"endpoint": "https://api.openai.com/v1", "temperature": 0.0, "max_tokens": 2048},
    ),
    DatasetRef("demo", "demo", "d" * 64, 12),
)


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "openai--gpt-4o" / "naive" / "demo.run.json"
    write_manifest(path, MANIFEST)

    assert read_manifest(path) == MANIFEST
    assert MANIFEST.version == pii_bench.__version__


@pytest.mark.parametrize("names_subjects", [True, False])
def test_whether_subjects_are_named_comes_back(tmp_path: Path, *, names_subjects: bool) -> None:
    card = replace(MANIFEST.system, names_subjects=names_subjects)
    write_manifest(tmp_path / "demo.run.json", replace(MANIFEST, system=card))

    assert read_manifest(tmp_path / "demo.run.json").system.names_subjects is names_subjects


def test_a_manifest_of_before_is_of_a_system_that_names_subjects(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    record = json.loads(path.read_text())
    del record["system"]["names_subjects"]
    path.write_text(json.dumps(record))

    assert read_manifest(path) == MANIFEST


def test_the_form_of_the_responses_comes_back(tmp_path: Path) -> None:
    card = replace(MANIFEST.system, output="schema")
    write_manifest(tmp_path / "demo.run.json", replace(MANIFEST, system=card))

    assert read_manifest(tmp_path / "demo.run.json").system.output == "schema"


def test_a_manifest_of_before_is_of_text(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    record = json.loads(path.read_text())
    del record["system"]["output"]
    path.write_text(json.dumps(record))

    assert read_manifest(path) == MANIFEST


def test_a_form_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    path.write_text(path.read_text().replace('"output": "text"', '"output": "xml"'))

    with pytest.raises(InputFileError, match=r"system: 'output' is 'xml' \(allowed: text, schema"):
        read_manifest(path)


def test_the_taxonomy_of_the_labels_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    card = replace(MANIFEST.system, taxonomy="spacy")
    write_manifest(path, replace(MANIFEST, system=card))

    assert read_manifest(path).system.taxonomy == "spacy"
    path.write_text(path.read_text().replace('"spacy"', '"spcy"'))
    with pytest.raises(InputFileError, match="unknown taxonomy 'spcy'; did you mean 'spacy'"):
        read_manifest(path)


def test_a_manifest_of_before_is_of_our_types(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    record = json.loads(path.read_text())
    del record["system"]["taxonomy"]
    path.write_text(json.dumps(record))

    assert read_manifest(path) == MANIFEST


def test_it_refers_to_a_dataset() -> None:
    demo = load_dataset("demo")

    assert DatasetRef.of(demo) == DatasetRef("demo", "demo", demo.sha256, 12)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"system": None}, "record: 'system' must be an object, not null"),
        ({"system": {"model": "m"}}, "system: 'prompt' is missing"),
        ({"dataset": {"name": 1}}, "dataset: 'name' must be a string, not a whole number"),
        ({"version": 1}, "record: 'version' must be a string, not a whole number"),
    ],
)
def test_a_broken_one_is_named(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    with pytest.raises(InputFileError) as caught:
        read_manifest(path)

    assert str(caught.value) == f"{path}: no manifest of a run: {what}"


@pytest.mark.parametrize("content", ["", "[]", "{", "\ufeff{}"])
def test_a_file_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "demo.run.json").write_text(content, encoding="utf-8")

    with pytest.raises(InputFileError, match=r"demo\.run\.json: no manifest of a run: "):
        read_manifest(tmp_path / "demo.run.json")


def test_a_task_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demo.run.json"
    write_manifest(path, MANIFEST)
    path.write_text(path.read_text().replace('"query-related"', '"guessing"'))

    with pytest.raises(InputFileError, match="'guessing' is not a valid Task"):
        read_manifest(path)


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        read_manifest(tmp_path / "demo.run.json")
