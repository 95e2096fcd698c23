from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.check.sets import CANARY
from pii_bench.datasets.readme import README, replace_block
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = "<!-- one:begin -->\nold\n<!-- one:end -->"


def test_only_the_block_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"# Größe\n{BLOCK}\n<!-- two:begin -->\nkept\n<!-- two:end -->\n")

    replace_block("one", "new\n", path)

    assert path.read_text() == (
        "# Größe\n<!-- one:begin -->\nnew\n<!-- one:end -->\n"
        "<!-- two:begin -->\nkept\n<!-- two:end -->\n"
    )


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(BLOCK)

    replace_block("one", "old", path)

    assert path.read_text() == BLOCK


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
def test_marks_that_are_not_there_once_and_in_order(tmp_path: Path, text: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)

    with pytest.raises(InputFileError, match="must have <!-- one:begin --> and after it <!-- one"):
        replace_block("one", "new", path)

    assert path.read_text() == text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"README\.md: cannot be read as text$"):
        replace_block("one", "new", tmp_path / "README.md")


def test_our_dataset_card_has_the_blocks_that_commands_write() -> None:
    text = README.read_text(encoding="utf-8")

    for name in ("statistics", "quality"):
        assert text.count(f"<!-- {name}:begin -->\n") == text.count(f"<!-- {name}:end -->\n") == 1


def test_our_dataset_card_has_the_canary_that_stands_in_the_sets() -> None:
    assert f"    {CANARY}\n" in README.read_text(encoding="utf-8")


def test_our_dataset_card_offers_every_set_that_ships() -> None:
    text = README.read_text(encoding="utf-8")
    names = list(DATASETS)

    assert re.findall(r"^- config_name: (.+)$", text, re.MULTILINE) == names
    assert re.findall(r"^    path: (.+)$", text, re.MULTILINE) == [f"{n}.jsonl" for n in names]
