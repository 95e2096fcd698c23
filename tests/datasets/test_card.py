from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.card import Pin, card_path, pin, read_card, write_card
from pii_bench.errors import InputFileError
from tests.builders import sample_record, write_lines
from tests.datasets.cards import make_card

if TYPE_CHECKING:
    from pathlib import Path

PINS = {"train": Pin(2, 3, 5, "ab"), "dev": Pin(1, 1, 1, "cd")}


def test_a_card_comes_back_as_it_was(tmp_path: Path) -> None:
    card = make_card(name="größe", pins=PINS)
    path = card_path(tmp_path, "toy")

    write_card(path, card)

    assert path == tmp_path / "toy.card.json"
    assert read_card(path) == card


def test_a_card_is_json_that_people_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.card.json"
    write_card(path, make_card(summary="Größe.", pins={"dev": PINS["dev"]}))

    text = path.read_text(encoding="utf-8")

    assert '  "summary": "Größe.",\n' in text
    assert text.endswith("}\n")
    record = json.loads(text)
    assert list(record)[:3] == ["name", "version", "released"]
    assert record["known_limits"] == ["Small.", "Not real."]
    assert record["pins"] == {"dev": {"samples": 1, "subjects": 1, "entities": 1, "sha256": "cd"}}


def test_pins_are_counted_in_the_files(tmp_path: Path) -> None:
    # Two samples of one person with two entities, and one sample about nobody.
    nobody = sample_record("s3", subjects=[], related=[])
    path = write_lines(tmp_path / "set.jsonl", [sample_record("s1"), sample_record("s2"), nobody])

    card = pin(make_card(pins=PINS), [path])

    found = card.pins["set"]
    assert list(card.pins) == ["set"]
    assert (found.samples, found.subjects, found.entities) == (3, 2, 4)
    assert card.known_limits == make_card().known_limits


def test_an_entity_in_two_spans_counts_once(tmp_path: Path) -> None:
    entity = {"text": "32", "type": "DEM", "spans": [[0, 2], [4, 6]]}
    subjects = [{"id": "A", "entities": [entity]}]
    record = sample_record(description="32, 32", subjects=subjects, related=[])

    assert Pin.of(write_lines(tmp_path / "set.jsonl", [record])).entities == 1


def test_a_broken_file_is_not_pinned(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "set.jsonl", [{}])

    with pytest.raises(InputFileError, match=r"set\.jsonl:1: record: 'id' is missing"):
        Pin.of(path)


def test_a_card_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"toy\.card\.json: no card of a dataset: No such"):
        read_card(tmp_path / "toy.card.json")


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
def test_a_card_of_another_format(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    path = tmp_path / "toy.card.json"
    write_card(path, make_card())
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    with pytest.raises(InputFileError) as caught:
        read_card(path)

    assert str(caught.value).startswith(f"{path}: no card of a dataset: ")
    assert str(caught.value).endswith(what)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_card_that_is_no_json_object(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "toy.card.json"
    path.write_bytes(content)

    with pytest.raises(InputFileError, match="no card of a dataset: "):
        read_card(path)
