from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import DATASETS, TRAIN_DEV, Pin, read_card
from pii_bench.datasets.check.sets import CANARY
from pii_bench.datasets.publish import README, croissant, publish, replace_block
from pii_bench.errors import InputFileError
from pii_bench.files import sha256_of, sha256_of_folder, write_json
from tests.builders import read_folder, sample_record, write_lines
from tests.datasets.cards import make_card

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = "<!-- one:begin -->\nold\n<!-- one:end -->"


def test_only_the_block_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"# Größe\n{BLOCK}\n<!-- two:begin -->\nkept\n<!-- two:end -->\n")

    for _ in range(2):
        replace_block("one", "new\n", path)

    assert path.read_text() == (
        "# Größe\n<!-- one:begin -->\nnew\n<!-- one:end -->\n"
        "<!-- two:begin -->\nkept\n<!-- two:end -->\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- one:begin -->",
        "<!-- one:end --> <!-- one:begin -->",
        f"{BLOCK}\n{BLOCK}",
        f"{BLOCK} <!-- one:end -->",
    ],
)
def test_missing_repeated_or_swapped_marks_are_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)

    with pytest.raises(InputFileError, match="must have <!-- one:begin --> and after it <!-- one"):
        replace_block("one", "new", path)
    with pytest.raises(InputFileError, match=r"GONE\.md: cannot be read as text$"):
        replace_block("one", "new", tmp_path / "GONE.md")

    assert path.read_text() == text


def test_our_readme_has_the_blocks_and_the_canary() -> None:
    text = README.read_text(encoding="utf-8")

    for name in ("statistics", "quality"):
        assert text.count(f"<!-- {name}:begin -->\n") == text.count(f"<!-- {name}:end -->\n") == 1
    assert f"    {CANARY}\n" in text


def test_our_readme_offers_every_dataset() -> None:
    text = README.read_text(encoding="utf-8")
    names = list(DATASETS)

    assert re.findall(r"^- config_name: (.+)$", text, re.MULTILINE) == names
    assert re.findall(r"^    path: (.+)$", text, re.MULTILINE) == [f"{n}.jsonl" for n in names]


def test_the_hash_of_a_folder_is_the_hash_of_its_checksums(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "weights").write_bytes(b"1")
    (tmp_path / "a.json").write_bytes(b"2")
    # Hidden files do not count.
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "lock").touch()
    checksums = (
        "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35  a.json\n"
        "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  b/weights\n"
    )

    assert sha256_of_folder(tmp_path) == hashlib.sha256(checksums.encode()).hexdigest()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder with cards without pins and one sample in every set."""
    for entry in DATASETS.values():
        write_json(tmp_path / f"{entry.card}.card.json", make_card(name=entry.card))
        write_lines(entry.path_in(tmp_path), [sample_record(f"{entry.name}-0001")])
    return tmp_path


def test_publishing_updates_pins_metadata_and_checksums_and_keeps_the_prose(data: Path) -> None:
    publish(data)

    cards = {path.name: read_card(path) for path in data.glob("*.card.json")}
    pins = {name: pin for card in cards.values() for name, pin in card.pins.items()}
    assert {name: pin.sha256 for name, pin in pins.items()} == {
        name: sha256_of(entry.path_in(data)) for name, entry in DATASETS.items()
    }
    assert cards["train-dev.card.json"].pins.keys() == set(TRAIN_DEV)
    assert {card.construction for card in cards.values()} == {make_card().construction}
    metadata = json.loads((data / "croissant.json").read_text(encoding="utf-8"))
    assert {record_set["name"] for record_set in metadata["recordSet"]} == set(DATASETS)
    files = {
        *(f"{name}.jsonl" for name in DATASETS),
        *(f"{entry.card}.card.json" for entry in DATASETS.values()),
        "croissant.json",
    }
    sums = "".join(f"{sha256_of(data / name)}  {name}\n" for name in sorted(files))
    assert (data / "SHA256SUMS").read_text() == sums
    first = read_folder(data)
    # Publishing again changes nothing.
    publish(data)
    assert read_folder(data) == first


def test_publishing_without_a_set_is_an_error(data: Path) -> None:
    (data / "dev-single.jsonl").unlink()

    with pytest.raises(InputFileError, match=r"dev-single\.jsonl: No such file or directory$"):
        publish(data)


@pytest.fixture
def metadata(tmp_path: Path) -> dict[str, Any]:
    """Return the metadata of two sets, which are also written to the folder."""
    pins = {
        name: {name: Pin.of(write_lines(tmp_path / f"{name}.jsonl", [sample_record()]))}
        for name in ("one", "two")
    }
    cards = [
        make_card(name="one", version="1.10.0", released="2026-12-01", pins=pins["one"]),
        make_card(name="two", version="1.9.0", released="2026-11-20", pins=pins["two"]),
    ]
    (tmp_path / "croissant.json").write_text(json.dumps(croissant(cards)), encoding="utf-8")
    return croissant(cards)


def test_metadata_describe_the_sets(metadata: dict[str, Any]) -> None:
    files = metadata["distribution"]

    assert [file["contentUrl"] for file in files] == ["one.jsonl", "two.jsonl"]
    assert {len(file["sha256"]) for file in files} == {64}
    # Version and date of the newest card.
    assert (metadata["version"], metadata["datePublished"]) == ("1.10.0", "2026-12-01")
    assert metadata["license"] == ["https://spdx.org/licenses/CC-BY-4.0"]
    assert metadata["rai:dataLimitations"] == [
        *("one: Small.", "one: Not real."),
        *("two: Small.", "two: Not real."),
    ]
    for record_set in metadata["recordSet"]:
        fields = {field["name"] for field in record_set["field"]}
        assert fields | {"meta"} == set(sample_record())


def test_ids_are_unique_and_references_resolve(metadata: dict[str, Any]) -> None:
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


@pytest.mark.slow
@pytest.mark.usefixtures("metadata")
@pytest.mark.filterwarnings("default")
def test_mlcroissant_accepts_the_metadata_and_loads_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", exc_type=ImportError)
    # Files are located relative to the working folder.
    monkeypatch.chdir(tmp_path)

    dataset = mlcroissant.Dataset(str(tmp_path / "croissant.json"))

    issues = dataset.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    (record,) = dataset.records(record_set="one")
    assert record["one/description"] == b"Ann Lee is 32."
    assert record["one/subjects"] == [{"one/subjects/id": b"A", "one/subjects/entities": None}]
    assert record["one/related"] == [{"one/related/subject": b"A", "one/related/text": b"32"}]
