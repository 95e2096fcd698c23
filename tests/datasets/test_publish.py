from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.card import read_card, write_card
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.checksums import sha256_of
from pii_bench.datasets.publish import publish
from pii_bench.errors import InputFileError
from tests.builders import read_folder, sample_record, write_lines
from tests.datasets.cards import make_card

if TYPE_CHECKING:
    from pathlib import Path

TRAIN_DEV = {"train-single", "train-multi", "train-twins", "dev-single", "dev-multi"}


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
