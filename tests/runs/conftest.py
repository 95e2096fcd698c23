"""Fixtures of the tests of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.runs.store import RunFiles
from tests.runs.batch_bench import Bench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles.at(tmp_path / "runs", "fake/one", "naive", "tiny")


@pytest.fixture
def bench(files: RunFiles) -> Bench:
    return Bench(files)
