from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.bank import Bank, read_bank
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path


def bank_of(folder: Path, text: str) -> Bank:
    path = folder / "bank.txt"
    path.write_text(text, encoding="utf-8")
    return read_bank(path)


def test_frames_stand_by_section_in_the_order_of_the_file(tmp_path: Path) -> None:
    bank = bank_of(tmp_path, "# a comment\n\n@ near\n  what is left  \nwhat is due\n@ far\nhm\n")
    assert bank.frames("near") == ("what is left", "what is due")
    assert bank.frames("far") == ("hm",)
    assert bank.facets == ("",)


def test_facets_have_sections_of_their_own(tmp_path: Path) -> None:
    bank = bank_of(tmp_path, "@@ home\n@ near\na\n@@ origin\n@ near\nb\n")
    assert bank.facets == ("home", "origin")
    assert bank.frames("near", "home") == ("a",)
    assert bank.frames("near", "origin") == ("b",)


def test_a_section_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert bank_of(tmp_path, "@ near\na\n").frames("far") == ()


def test_a_section_may_be_taken_up_again(tmp_path: Path) -> None:
    assert bank_of(tmp_path, "@ a\n1\n@ b\n2\n@ a\n3\n").frames("a") == ("1", "3")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stray\n@ near\n", 1),
        ("@@ home\nstray\n", 2),  # a facet closes the section before it
        ("@ near\na\n@@ home\nstray\n", 4),
        ("@ near\na\nb\na\n", 4),  # twice
        ("@ near\na\n@ far\nb\n@ near\na\n", 6),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(InputFileError, match=rf"bank\.txt:{line}: "):
        bank_of(tmp_path, text)


def test_one_frame_may_stand_in_two_sections(tmp_path: Path) -> None:
    assert bank_of(tmp_path, "@ near\na\n@ far\na\n").frames("far") == ("a",)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"none\.txt: No such file"):
        read_bank(tmp_path / "none.txt")
