"""Every attack as a test; `make torture` writes their table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.torture.__main__ import ATTACKS, Attack, render
from tests.torture.process import Trial

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.area}: {attack.name}")
def test_every_trial_of_an_attack_passes(attack: Attack, tmp_path: Path) -> None:
    trials = list(attack.run(tmp_path))

    assert trials
    assert [trial for trial in trials if trial.broken] == []


def test_the_table_counts_trials_and_lists_failures() -> None:
    attack = Attack("size", "`score` of much", "at most 1 GB", lambda _: iter(()))
    trials = [Trial("a"), Trial.of("b <x>", {"at most 1 GB": False, "no traceback": True})]

    table = render([(attack, trials)])

    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[:4]]
    assert lines[2] == ["size", "`score` of much", "at most 1 GB", "2", "1"]
    assert lines[3] == ["all", "", "", "2", "1"]
    assert table.endswith("\n\n## Failed trials\n\n- \\`score\\` of much: b \\<x>: at most 1 GB\n")
