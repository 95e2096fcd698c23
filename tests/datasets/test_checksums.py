from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.checksums import sha256_of, write_checksums
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

# FIPS 180-4: the digest of "abc", and that of nothing.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_bytes(b"abc")
    (tmp_path / "a.txt").write_bytes(b"")
    return tmp_path


def test_the_hash_of_a_file(folder: Path) -> None:
    assert sha256_of(folder / "b.txt") == ABC


def test_a_file_that_is_not_there(folder: Path) -> None:
    with pytest.raises(InputFileError, match=r"c\.txt: No such file or directory$"):
        sha256_of(folder / "c.txt")


def test_the_list_is_sorted_by_name(folder: Path) -> None:
    sums = write_checksums(folder, ["b.txt", "a.txt"])

    assert sums == folder / "SHA256SUMS"
    assert sums.read_text() == f"{NOTHING}  a.txt\n{ABC}  b.txt\n"


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="coreutils are not here")
def test_sha256sum_reads_the_list(folder: Path) -> None:
    write_checksums(folder, ["b.txt", "a.txt"])
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]

    done = subprocess.run(  # noqa: S603 -- our own arguments
        command, cwd=folder, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "a.txt: OK\nb.txt: OK\n")
