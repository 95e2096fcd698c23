from __future__ import annotations

import hashlib
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.checksums import sha256_of, sha256_of_folder, write_checksums
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


def test_the_hash_of_a_folder_is_that_of_its_checksums(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "weights").write_bytes(b"1")
    (tmp_path / "a.json").write_bytes(b"2")
    checksums = (
        "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35  a.json\n"
        "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  b/weights\n"
    )

    assert sha256_of_folder(tmp_path) == hashlib.sha256(checksums.encode()).hexdigest()


def test_hidden_files_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    before = sha256_of_folder(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "lock").touch()

    assert sha256_of_folder(tmp_path) == before

    (tmp_path / "more").touch()
    assert sha256_of_folder(tmp_path) != before
