from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import MissingExtraError
from pii_bench.systems.detectors.installed import import_part, sha256_of_folder, version_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_module_that_is_installed_is_imported() -> None:
    assert import_part("hashlib", "make it") is hashlib


def test_a_module_that_is_not_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "somebodys_ner", None)

    with pytest.raises(MissingExtraError) as caught:
        import_part("somebodys_ner", "make detectors")

    assert str(caught.value) == "somebodys_ner is not installed: run `make detectors`"


def test_what_a_module_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import its_runtime\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingExtraError, match=r"^its_runtime is not installed"):
        import_part("half_installed", "make detectors")


def test_a_version_is_told_with_its_name() -> None:
    assert version_of("pytest") == f"pytest {pytest.__version__}"


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
