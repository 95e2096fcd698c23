from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import MissingExtraError
from pii_bench.systems.detectors.installed import import_part, version_of

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
