from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pii_bench.cli import data, main
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_file_of_ones_own_has_no_column_of_the_paper(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(own_folder / "mine.jsonl", [sample_record()])

    assert main(["data", "stats", "--dataset", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("### mine-")
    assert lines[2] == "| per sample              |   ours |"
    assert lines[-1] == "2 of the 55 categories occur."


def test_every_row_as_json(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(own_folder / "mine.jsonl", [sample_record()])

    assert main(["data", "stats", "--dataset", str(path), "--json"]) == 0

    first, *others = json.loads(capsys.readouterr().out)
    assert first.pop("dataset").startswith("mine-")
    assert first == {
        "table": "per sample",
        "name": "samples",
        "ours": 1,
        "paper": None,
        "difference": None,
    }
    assert [row["table"] for row in others].count("per sample") == 5
    assert sum(row["ours"] for row in others if row["table"] == "entities") == 2
    assert (others[-1]["name"], others[-1]["ours"]) == ("categories", 2)


def test_the_papers_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "stats", "--dataset", "hard", "--json"]) == 0

    samples, *_ = json.loads(capsys.readouterr().out)
    assert samples == {
        "dataset": "hard",
        "table": "per sample",
        "name": "samples",
        "ours": 200,
        "paper": 200,
        "difference": 0.0,
    }


def test_the_dataset_card_is_written_where_asked(
    own_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = own_folder / "README.md"
    card.write_text("<!-- statistics:begin -->\n<!-- statistics:end -->\n")
    monkeypatch.setattr(data, "README", card)

    assert main(["data", "stats", "--dataset", "demo"]) == 0
    printed = capsys.readouterr().out
    assert "demo" not in card.read_text()

    assert main(["data", "stats", "--dataset", "demo", "--write"]) == 0
    assert capsys.readouterr().out == f"{printed}\nwritten: {card}\n"
    assert printed in card.read_text()


def test_a_dataset_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "stats", "--dataset", "dem"]) == 2

    assert "unknown dataset 'dem'; did you mean 'demo'?" in capsys.readouterr().err
