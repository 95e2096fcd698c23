"""Fixtures of plug-ins."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLUGIN = re.compile(r"^```python\n# my_system\.py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, from which `my_system` is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("my_system", None)


@pytest.fixture
def plug_in(folder: Path) -> str:
    """The documented example, as the module `my_system`."""
    example = PLUGIN.search((REPOSITORY / "docs/extending.md").read_text(encoding="utf-8"))
    assert example is not None
    (folder / "my_system.py").write_text(example[1], encoding="utf-8")
    return example[1]
