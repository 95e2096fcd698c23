from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.cli import main
from pii_bench.datasets.readings import load_readings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Capsys


def test_agreement_is_over_all_first_readings(capsys: Capsys) -> None:
    assert main(["data", "agreement", "single"]) == 0

    header, _, whole, *groups = capsys.readouterr().out.splitlines()
    firsts = [reading for reading in load_readings("single") if reading.round == 1]
    assert header.split()[1:6:2] == ["set", "group", "readings"]
    assert [cell.strip() for cell in whole.split("|")][1:4] == [
        "single",
        "all",
        f"{len(firsts):,}",
    ]
    assert {"explicit", "implied", "contrast"} < {line.split("|")[2].strip() for line in groups}


def test_every_sample_of_single_is_agreed_by_two_readers(capsys: Capsys) -> None:
    assert main(["data", "agreement", "single", "--disputed"]) == 0

    assert capsys.readouterr().out == "1214 recorded, 1214 passed, 0 lack readings\n"


def test_the_table_goes_into_the_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- agreement:begin -->\n<!-- agreement:end -->\n", encoding="utf-8")
    monkeypatch.setattr("pii_bench.cli.data_agreement.README", readme)

    assert main(["data", "agreement", "single", "--write"]) == 0

    assert "| single | all " in readme.read_text(encoding="utf-8")
