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

EXAMPLE = r"^```python\n# {}\n(.*?)^```"


def documented(name: str) -> str:
    """Return an example of the page on extending."""
    page = (REPOSITORY / "docs/extending.md").read_text(encoding="utf-8")
    example = re.search(EXAMPLE.format(re.escape(name)), page, re.MULTILINE | re.DOTALL)
    assert example is not None
    return example[1]


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
    example = documented("my_system.py")
    (folder / "my_system.py").write_text(example, encoding="utf-8")
    return example
