from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis import figures
from pii_bench.analysis.means import Drop
from pii_bench.analysis.results import Analysis
from pii_bench.cli import analyse, main
from pii_bench.ranking.rows import Source
from tests.analysis.evaluated import run_name
from tests.builders import read_folder
from tests.cli.conftest import table_lines
from tests.ranking.stored_runs import store_run, tiny_dataset

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

AGES = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["41"]'}
FIGURES = ["categories-query-related", "curves-query-related-f1", "types-query-related"]
TABLES = [
    *("agreement", "consistency", "curves", "drops", "headlines", "reasons", "recall"),
    *("robustness", "tradeoffs", "transfers"),
]


@pytest.fixture
def results() -> Path:
    """One query-related run."""
    folder = Path("results")
    store_run(folder / "runs", tiny_dataset(Path("tiny.jsonl")), "naive", AGES)
    return folder


def test_tables_and_figures_are_written_the_same_twice(results: Path, capsys: Capsys) -> None:
    assert main(["analyse"]) == 0

    first = read_folder(results / "analysis")
    assert sorted(first) == sorted(
        [
            *(f"{name}.csv" for name in TABLES),
            *(f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")),
        ]
    )
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.splitlines() == [
        "no run of ours is complete on single, multi and a harder set: no drops",
        "analysis: 10 tables in results/analysis",
        "analysis: 6 files of figures in results/analysis",
    ]
    main(["analyse"])
    assert read_folder(results / "analysis") == first


def test_without_matplotlib_there_are_only_tables(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)

    assert main(["analyse"]) == 0

    assert sorted(read_folder(results / "analysis")) == [f"{name}.csv" for name in TABLES]
    assert "no figures: matplotlib" in (errors := capsys.readouterr().err)
    assert "pip install -e '.[figures]'" in errors


def test_drops_are_printed_with_their_differences(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    published = run_name("hard", model="gpt-5", source=Source.PUBLISHED)
    drops = (
        Drop(run_name("hard"), "f1", base=0.75, value=0.5),
        Drop(run_name("distract"), "f1", base=0.75, value=0.8),
        Drop(run_name("hard", model="fake/two"), "f1", base=0.5, value=0.5),
        Drop(published, "f1", base=0.9, value=0.8),
    )
    analysis = Analysis((), (), (), drops, (), (), (), ())
    monkeypatch.setattr(analyse, "analyse", lambda *_: analysis)
    monkeypatch.setattr(analyse, "draw_figures", lambda *_: [])

    assert main(["analyse", "--results", "."]) == 0

    header, *lines = table_lines(capsys.readouterr().out)
    asked = ("naive", "query-related", "f1", "run")
    assert header[-3:] == ["single+multi", "hard", "distract"]
    assert lines == [
        ["fake/one", *asked, "0.750", "0.500 (-0.250)", "0.800 (+0.050)"],
        ["fake/two", *asked, "0.500", "0.500 (+0.000)", ""],
    ]
