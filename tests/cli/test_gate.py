from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli import main

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys


def gate(*options: str) -> int:
    return main(["gate", "--dataset", "demo", "--model", "gold+gold", *options])


def test_a_good_system_passes_and_a_worse_one_fails(capsys: Capsys) -> None:
    assert gate("--min", "masking.h=1", "--write-baseline", "baseline.json") == 0
    assert capsys.readouterr().out == "passed: 3 rows\n"

    lacking = ("--model", "gold+none", "--min", "masking.protection=1")
    assert gate(*lacking, "--baseline", "baseline.json") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("demo, query-related: f1 is 0.")
    assert lines[1].startswith("demo, masking: h is 0.")
    assert Path("results/runs").is_dir()


def test_only_the_samples_of_the_limit_are_judged_and_compared(capsys: Capsys) -> None:
    assert gate("--limit", "3", "--write-baseline", "before.json") == 0
    assert gate("--min", "masking.h=1") == 0
    assert gate("--limit", "3", "--write-baseline", "after.json") == 0

    assert capsys.readouterr().out == "passed: 3 rows\n" * 3
    rows = json.loads(Path("after.json").read_bytes())
    assert [(row["task"], len(row["scores"]["ids"])) for row in rows] == [
        ("detection", 3),
        ("query-related", 3),
        ("masking", 3),
    ]
    assert rows == json.loads(Path("before.json").read_bytes())

    assert gate("--baseline", "before.json") == 0
    share = "3 of 12 samples are compared, the baseline lacks the others"
    assert capsys.readouterr().out.splitlines() == [
        f"demo, detection: {share}",
        f"demo, query-related: {share}",
        f"demo, masking: {share}",
        "passed: 3 rows",
    ]
