from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.card import pin, read_card, write_card
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.checksums import sha256_of
from pii_bench.datasets.publish import croissant, publish, write_croissant
from pii_bench.errors import InputFileError
from tests.builders import read_folder, sample_record, write_lines
from tests.datasets.cards import make_card

if TYPE_CHECKING:
    from pathlib import Path


TRAIN_DEV = {
    *("train-single", "train-multi", "train-twins", "train-other"),
    *("dev-single", "dev-multi"),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Cards with prose and without pins, and a sample in every set."""
    for entry in DATASETS.values():
        write_card(tmp_path / f"{entry.card}.card.json", make_card(name=entry.card))
        write_lines(entry.path_in(tmp_path), [sample_record(f"{entry.name}-0001")])
    return tmp_path


def test_every_set_is_pinned_and_the_prose_stays(data: Path) -> None:
    publish(data)

    cards = {path.name: read_card(path) for path in data.glob("*.card.json")}
    pins = {name: pin for card in cards.values() for name, pin in card.pins.items()}
    assert {name: pin.sha256 for name, pin in pins.items()} == {
        name: sha256_of(entry.path_in(data)) for name, entry in DATASETS.items()
    }
    assert cards["train-dev.card.json"].pins.keys() == TRAIN_DEV
    assert {card.construction for card in cards.values()} == {make_card().construction}


def test_metadata_and_checksums_are_of_every_set(data: Path) -> None:
    publish(data)

    metadata = json.loads((data / "croissant.json").read_text(encoding="utf-8"))
    assert {record_set["name"] for record_set in metadata["recordSet"]} == set(DATASETS)
    lines = (data / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {
        *(f"{name}.jsonl" for name in DATASETS),
        *(f"{entry.card}.card.json" for entry in DATASETS.values()),
        "croissant.json",
    }


def test_publishing_again_changes_nothing(data: Path) -> None:
    publish(data)
    first = read_folder(data)

    publish(data)

    assert read_folder(data) == first


def test_a_set_that_is_not_there(data: Path) -> None:
    (data / "dev-single.jsonl").unlink()

    with pytest.raises(InputFileError, match=r"dev-single\.jsonl: No such file or directory$"):
        publish(data)


@pytest.fixture
def metadata(tmp_path: Path) -> dict[str, Any]:
    """Of two sets, written beside them and read back."""
    cards = [
        pin(
            make_card(name=name, version=version, released=released),
            [write_lines(tmp_path / f"{name}.jsonl", [sample_record()])],
        )
        for name, version, released in (
            ("one", "1.10.0", "2026-12-01"),
            ("two", "1.9.0", "2026-11-20"),
        )
    ]
    path = write_croissant(tmp_path, cards)
    assert path == tmp_path / "croissant.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def test_every_file_has_its_hash(metadata: dict[str, Any]) -> None:
    files = metadata["distribution"]

    assert [file["contentUrl"] for file in files] == ["one.jsonl", "two.jsonl"]
    assert {len(file["sha256"]) for file in files} == {64}


def test_the_newest_card_dates_the_whole(metadata: dict[str, Any]) -> None:
    assert (metadata["version"], metadata["datePublished"]) == ("1.10.0", "2026-12-01")


def test_a_licence_of_several_cards_stands_once(metadata: dict[str, Any]) -> None:
    assert metadata["license"] == ["https://spdx.org/licenses/CC-BY-4.0"]


def test_every_limit_names_its_set(metadata: dict[str, Any]) -> None:
    assert metadata["rai:dataLimitations"] == [
        "one: Small.",
        "one: Not real.",
        "two: Small.",
        "two: Not real.",
    ]


def test_every_set_has_the_fields_of_a_line(metadata: dict[str, Any]) -> None:
    for record_set in metadata["recordSet"]:
        fields = {field["name"] for field in record_set["field"]}
        assert fields | {"meta"} == set(sample_record())


def test_ids_are_unique_and_references_find_them(metadata: dict[str, Any]) -> None:
    def walk(node: object) -> None:
        if isinstance(node, dict):
            if "@id" in node:
                (defined if "@type" in node else used).append(node["@id"])
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    defined: list[str] = []
    used: list[str] = []
    walk({key: value for key, value in metadata.items() if key != "@context"})

    assert len(defined) == len(set(defined))
    assert {"one.jsonl", "two/id"} <= set(used) <= set(defined)


def test_the_metadata_is_the_same_every_time() -> None:
    assert json.dumps(croissant([make_card()])) == json.dumps(croissant([make_card()]))


@pytest.mark.slow
@pytest.mark.usefixtures("metadata")
@pytest.mark.filterwarnings("default")
def test_mlcroissant_accepts_it_and_loads_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", exc_type=ImportError)
    # Files are found relative to the metadata's folder.
    monkeypatch.chdir(tmp_path)

    dataset = mlcroissant.Dataset(str(tmp_path / "croissant.json"))

    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    (record,) = dataset.records(record_set="one")
    assert record["one/description"] == b"Ann Lee is 32."
    assert record["one/subjects"] == [{"one/subjects/id": b"A", "one/subjects/entities": None}]
    assert record["one/related"] == [{"one/related/subject": b"A", "one/related/text": b"32"}]
