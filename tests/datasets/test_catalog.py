from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets import catalog
from pii_bench.datasets.catalog import (
    DATASETS,
    Dataset,
    Entry,
    Pin,
    load_dataset,
    load_datasets,
    open_dataset,
    open_documents,
    read_card,
)
from pii_bench.datasets.sample import sample_to_record
from pii_bench.datasets.span_files import Misfits
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import sha256_of, write_json
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY, PiiType
from tests.builders import make_sample, sample_record, unlisted, write_lines
from tests.conftest import REPOSITORY
from tests.datasets.cards import make_card

if TYPE_CHECKING:
    from pathlib import Path


def test_a_written_card_is_read_back(tmp_path: Path) -> None:
    pins = {"train": Pin(2, 3, 5, "ab"), "dev": Pin(1, 1, 1, "cd")}
    card = make_card(name="größe", pins=pins)
    path = tmp_path / "toy.card.json"

    write_json(path, card)

    assert read_card(path) == card
    with pytest.raises(InputFileError, match=r"gone\.card\.json: no card of a dataset: No such"):
        read_card(tmp_path / "gone.card.json")


def test_a_pin_counts_samples_subjects_and_entities(tmp_path: Path) -> None:
    empty = sample_record("s3", subjects=[], related=[])
    entity = {"text": "32", "type": "DEM", "spans": [[0, 2], [4, 6]]}
    twice = sample_record(
        "s4", description="32, 32", subjects=[{"id": "A", "entities": [entity]}], related=[]
    )
    records = [sample_record("s1"), sample_record("s2"), empty, twice]

    pin = Pin.of(write_lines(tmp_path / "set.jsonl", records))

    assert (pin.samples, pin.subjects, pin.entities) == (4, 3, 5)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"version": 1}, "'version' must be a string, not a whole number"),
        ({"benchmark": 1}, "'benchmark' must be a boolean, not a whole number"),
        ({"known_limits": "none"}, "'known_limits' must be a list, not a string"),
        ({"known_limits": [1]}, "'known_limits' must be a list of strings"),
        ({"pins": []}, "'pins' must be an object, not a list"),
        ({"pins": {"dev": 3}}, "pins: 'dev' must be an object, not a whole number"),
        ({"pins": {"dev": {"samples": 3}}}, "pins.dev: 'subjects' is missing"),
    ],
)
def test_a_broken_card_is_an_error(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    path = tmp_path / "toy.card.json"
    write_json(path, make_card())
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    with pytest.raises(InputFileError) as caught:
        read_card(path)

    assert str(caught.value).startswith(f"{path}: no card of a dataset: ")
    assert str(caught.value).endswith(what)


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return load_dataset("demo")


@pytest.mark.parametrize(
    ("prefix", "line", "stem"),
    [
        ("", sample_record(), "my-set"),
        ("capid:", {"context": "Mo bakes.", "piis": {}}, "capid-my-set"),
    ],
)
def test_a_file_is_named_by_its_format_stem_and_hash(
    tmp_path: Path, prefix: str, line: dict[str, Any], stem: str
) -> None:
    path = write_lines(tmp_path / "my set.jsonl", [line])
    source = f"{prefix}{path}"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    loaded, opened = load_dataset(source), open_dataset(source)

    for dataset in (loaded, opened):
        assert (dataset.name, dataset.source) == (f"{stem}-{sha256[:8]}", source)
        assert (dataset.sha256, dataset.faults) == (sha256, ())
    assert len(loaded.samples) == 1
    # A stream can be read again.
    assert tuple(opened.read()) == tuple(opened.read()) == loaded.samples


@pytest.mark.parametrize("name", ["a\0b.jsonl", "\ud800.jsonl", "x" * 300 + ".jsonl"])
def test_an_impossible_file_name_is_an_error(name: str) -> None:
    with pytest.raises(InputFileError, match=r"not a valid file name$|File name too long$"):
        load_dataset(name)
    with pytest.raises(UnknownNameError, match="unknown dataset"):
        load_dataset(name.removesuffix(".jsonl"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder in which two benchmark sets and one other are built."""
    monkeypatch.setattr(catalog, "DATA", tmp_path)
    for entry in DATASETS.values():
        benchmark = entry.name in {"single", "multi", "hard"}
        write_json(entry.card_path, make_card(name=entry.card, benchmark=benchmark))
    for name in ("single", "hard", "twins"):
        build(name)
    return tmp_path


def build(name: str) -> None:
    entry = DATASETS[name]
    path = write_lines(entry.path, [sample_record()])
    card = read_card(entry.card_path)
    write_json(entry.card_path, replace(card, pins={name: Pin.of(path)}))


@pytest.mark.usefixtures("data")
def test_all_is_every_built_set_of_the_benchmark() -> None:
    assert [dataset.name for dataset in load_datasets("all")] == ["single", "hard"]


def test_all_is_demo_if_no_benchmark_set_is_built(data: Path, demo: Dataset) -> None:
    for name in ("single", "hard"):
        entry = DATASETS[name]
        write_json(entry.card_path, replace(read_card(entry.card_path), pins={}))
    for path in (REPOSITORY / "data").glob("demo.*"):
        (data / path.name).write_bytes(path.read_bytes())

    assert load_datasets("all") == (demo,)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "path", "remedy"),
    [
        ("multi", "multi.jsonl", "run `pii-bench data build`"),
        ("all", "hard.jsonl", "run `pii-bench data build`"),
        ("dev-multi", "dev-multi.jsonl", "run `pii-bench data build`"),
        ("demo", "demo.jsonl", "restore it from the repository"),
    ],
)
def test_a_missing_set_is_an_error_with_its_remedy(
    data: Path, name: str, path: str, remedy: str
) -> None:
    (data / "hard.jsonl").unlink()

    with pytest.raises(InputFileError) as caught:
        load_datasets(name)

    assert str(caught.value) == f"{data / path}: the file is missing: {remedy}"


def test_a_set_without_pin_is_an_error(data: Path) -> None:
    write_lines(data / "multi.jsonl", [sample_record()])

    with pytest.raises(InputFileError, match=r"multi\.card\.json: has no pin of 'multi': run"):
        load_dataset("multi")


def test_sets_with_one_card_are_pinned_by_it(data: Path) -> None:
    entry = DATASETS["train-multi"]
    build("train-multi")

    assert entry.path == data / "train-multi.jsonl"
    assert entry.card_path == data / "train-dev.card.json"
    assert len(load_dataset("train-multi").samples) == 1


@pytest.mark.parametrize(
    ("lines", "is_hinted"),
    [
        ([{"context": "x"}], True),
        ([{"context": "x"}, {"context": "y"}], True),
        ([sample_record(), {"context": "x"}, {"context": "y"}], False),
        ([], False),
    ],
)
def test_a_file_without_any_line_in_our_format_may_be_in_another(
    tmp_path: Path, lines: list[dict[str, Any]], is_hinted: bool
) -> None:
    path = write_lines(tmp_path / "capid.jsonl", lines)

    with pytest.raises(InputFileError) as caught:
        load_dataset(str(path))

    hint = "if the file is in another format, give FORMAT:PATH (capid, tab, ai4privacy, "
    assert (hint in str(caught.value)) == is_hinted


def test_documents_have_the_spans_of_entities_that_list_none(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "mine.jsonl", [sample_to_record(unlisted(make_sample()))])

    (document,) = open_documents(str(path)).read(Misfits())

    assert document.spans == ((0, 7, "Full Name"), (11, 13, "Age"))


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown dataset 'dem'; did you mean 'demo'\?"):
        load_dataset("dem")
    # A list of datasets is not one.
    with pytest.raises(UnknownNameError):
        load_dataset("all")


@pytest.mark.parametrize("source", ["gone.jsonl", "gone/set", "capid:gone.jsonl"])
def test_a_missing_file_is_an_error(source: str) -> None:
    with pytest.raises(InputFileError, match=r"No such file or directory$"):
        load_dataset(source)


def test_a_set_that_differs_from_its_pin_is_refused(data: Path) -> None:
    pinned = sha256_of(data / "single.jsonl")
    path = write_lines(data / "single.jsonl", [sample_record("s1"), sample_record("s2")])
    with path.open("ab") as file:
        file.write(b"\n")

    with pytest.raises(InputFileError) as caught:
        load_dataset("single")

    assert str(caught.value) == (
        f"{path}: sha256 is {sha256_of(path)} (2 samples), but dataset 'single' is pinned to "
        f"{pinned} (1 samples): run `pii-bench data build`"
    )


def test_demo_matches_its_card(demo: Dataset) -> None:
    assert read_card(DATASETS["demo"].card_path).pins == {"demo": Pin.of(DATASETS["demo"].path)}
    assert len(demo.samples) == 12
    assert demo.faults == ()


@pytest.mark.parametrize("entry", DATASETS.values(), ids=DATASETS)
def test_every_card_of_ours_is_complete(entry: Entry) -> None:
    card = read_card(entry.card_path)

    assert card.name == entry.card
    assert card.benchmark == (entry.name in {"single", "multi", "hard", "distract"})
    assert card.licence == "CC-BY-4.0"
    assert dt.date.fromisoformat(card.released).isoformat() == card.released
    assert all([card.summary, card.construction, card.known_limits])


def test_demo_has_every_type_category_and_size(demo: Dataset) -> None:
    assert {len(sample.subjects) for sample in demo.samples} == {1, 2, 3}
    assert {len(sample.related) for sample in demo.samples} == {1, 2, 3}

    entities = [entity for sample in demo.samples for entity in sample.entities]

    assert {entity.type for entity in entities} == set(PiiType)
    assert {entity.category for entity in entities} == set(TYPE_OF_CATEGORY)
    assert all(entity.category in CATEGORIES[PiiType(entity.type)] for entity in entities)
