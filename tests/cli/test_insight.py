"""The commands on stored runs, through the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "bilstm-crf+keyword"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two taggers' runs on the demo set."""
    folder = tmp_path_factory.mktemp("insight")
    for system in (SYSTEM, "gold+keyword"):
        assert main(["run", "--model", system, "--dataset", "demo", "--results", str(folder)]) == 0
    return folder


def test_two_systems_are_compared(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()

    assert main(["compare", SYSTEM, "gold+keyword", "--results", str(results)]) == 0

    output = capsys.readouterr().out
    assert "query-related" in output
    assert "masking" in output


def test_a_misspelt_system_is_offered_its_neighbour(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "bilstm-crf+keywort", "gold", "--results", str(results)]) == 2

    assert "did you mean 'bilstm-crf+keyword'?" in capsys.readouterr().err


def test_errors_are_sorted_into_files_without_texts(results: Path) -> None:
    assert main(["diagnose", "--results", str(results)]) == 0

    files = sorted(path.name for path in (results / "diagnosis").iterdir())
    assert files == ["errors.csv", "leak-curve.csv", "leak.csv", "twins.csv"]


def test_a_table_of_the_paper_has_ours_below(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    assert main(["leaderboard", "--table", "4", "--results", str(results)]) == 0

    assert "published" in capsys.readouterr().out
    assert main(["leaderboard", "--table", "99", "--results", str(results)]) == 2


def test_the_report_is_one_file(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["report", "--results", str(results), "--model", SYSTEM, "--no-texts"]

    assert main(arguments) == 0

    assert "report.html" in capsys.readouterr().out
    assert (results / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
