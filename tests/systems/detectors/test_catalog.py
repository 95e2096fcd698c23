from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.systems.detectors import catalog
from pii_bench.systems.detectors.catalog import DETECTORS, Entry, build_detector, detector_names
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What builders were called with; every entry's builder only takes note."""
    calls: list[tuple[str, Any]] = []

    def build(path: str, labels: object) -> Any:
        calls.append((path, labels))

    entries = {
        "plain": Entry(build),
        "at": Entry(build, path=True),
        "ours": Entry(build, mapped=False),
    }
    monkeypatch.setattr(catalog, "DETECTORS", MappingProxyType(entries))
    return calls


def test_the_names_are_written_as_a_user_gives_them() -> None:
    assert {"presidio", "spacy", "hf:PATH"} <= set(detector_names())
    assert len(detector_names()) == len(DETECTORS)


def test_a_detector_is_built_by_name(built: list[tuple[str, Any]]) -> None:
    build_detector("plain")
    build_detector("at:some/folder:1")

    assert built == [("", None), ("some/folder:1", None)]


def test_a_map_of_the_users_own_is_read(built: list[tuple[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"NAME": "PER"}', encoding="utf-8")

    build_detector("plain", path)

    ((_, labels),) = built
    assert labels.types == {"NAME": PiiType.PER}


@pytest.mark.usefixtures("built")
def test_a_map_where_none_is_needed(tmp_path: Path) -> None:
    with pytest.raises(PiiBenchError, match=r"^detector 'ours' gives our types: it takes no map"):
        build_detector("ours", tmp_path / "mine.json")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", ["plan", "plain:some/folder", "at", "at:", ""])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        build_detector(name)

    assert caught.value.allowed == ("plain", "at:PATH", "ours")


def test_a_checkpoint_that_is_not_there() -> None:
    with pytest.raises(InputFileError, match=r"^gone/folder: no such folder"):
        build_detector("hf:gone/folder")
