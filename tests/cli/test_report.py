from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis import figures
from pii_bench.analysis.figures import NOT_INSTALLED
from pii_bench.cli import main
from tests.analysis.report.folders import NOTHING, demo_results
from tests.ranking.stored_runs import store_run, tiny_dataset

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

ANSWERS = {"s1": '### Answer: ["32"]', "s2": NOTHING}


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)


def report(*options: str) -> int:
    return main(["report", *options])


def test_the_page_is_written_where_asked_with_or_without_texts(capsys: Capsys) -> None:
    demo_results(Path("results"))

    assert report("--out", "new/page.html", "--no-texts") == 0
    assert "Halifax" not in Path("new/page.html").read_text(encoding="utf-8")
    assert not Path("results/report.html").exists()
    capsys.readouterr()

    assert report() == 0
    output = capsys.readouterr()
    assert output.out.startswith("report: results/report.html (")
    assert output.out.endswith(" rows, 2 runs, 0.3 MB)\n")
    assert output.err == f"scoring run 1 of 4\nno figures: {NOT_INSTALLED}\n"
    page = Path("results/report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Halifax" in page

    # An unknown system leaves the page unchanged.
    assert report("--model", "fake/tow") == 2
    assert "did you mean 'fake/two'" in capsys.readouterr().err
    assert Path("results/report.html").read_text(encoding="utf-8") == page


def test_a_users_texts_are_included_only_on_request(capsys: Capsys) -> None:
    tiny = tiny_dataset(Path("tiny.jsonl"))
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    file = Path("results/report.html")

    assert report() == 0
    assert f"without the texts of {tiny.name} (--texts includes them)\n" in capsys.readouterr().err
    assert "Ann Lee" not in file.read_text(encoding="utf-8")

    assert report("--texts") == 0
    message = f"it contains the texts of {tiny.name}: the file is as private as they are\n"
    assert message in capsys.readouterr().err
    assert "Ann Lee" in file.read_text(encoding="utf-8")

    # One row of one run is counted as one.
    assert report("--dataset", tiny.name) == 0
    assert " (1 row, 1 run, " in capsys.readouterr().out
