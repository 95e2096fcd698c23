from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

pytestmark = pytest.mark.usefixtures("own_folder")


def gate(*options: str) -> int:
    return main(["gate", "--model", "gold+gold", "--dataset", "demo", *options])


def test_a_good_system_passes_and_a_worse_one_fails(capsys: Capsys) -> None:
    assert gate("--min", "masking.h=1", "--write-baseline", "baseline.json") == 0
    assert capsys.readouterr().out == "passed: 3 rows\n"

    lacking = ["gate", "--model", "gold+none", "--dataset", "demo"]
    assert main([*lacking, "--min", "masking.protection=1", "--baseline", "baseline.json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("demo, query-related: f1 is 0.")
    assert lines[1].startswith("demo, masking: h is 0.")
    assert Path("results/runs").is_dir()


def test_the_minimum_is_checked_before_the_run(capsys: Capsys) -> None:
    assert gate("--min", "masking.hh=1") == 2
    assert "did you mean 'h'?" in capsys.readouterr().err
    assert not Path("results").exists()
