from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.analysis.report import figures
from pii_bench.analysis.report.data import collect_report
from pii_bench.analysis.report.figures import NOT_INSTALLED, NOTHING_TO_DRAW, Figures, draw
from pii_bench.analysis.runs import read_evaluated
from pii_bench.ranking.external import published_rows
from tests.analysis.report.folders import demo_results

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_analyse_draws_is_drawn_with_a_caption(tmp_path: Path) -> None:
    demo_results(tmp_path)

    drawn = draw(read_evaluated(tmp_path).runs, published_rows())

    captions = [figure.caption for figure in drawn.drawn]
    assert "Score by size of the sample: masking, F1" in captions
    assert "What is found of each type: query-related" in captions
    assert all("</svg>" in figure.svg for figure in drawn.drawn)
    assert drawn.missing == ""


def test_without_matplotlib_it_is_said_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)

    assert draw(read_evaluated(tmp_path).runs, []) == Figures((), NOT_INSTALLED)
    assert "pip install 'pii-bench[figures]'" in NOT_INSTALLED


def test_without_runs_there_is_nothing_to_draw(tmp_path: Path) -> None:
    demo_results(tmp_path)

    assert draw([], []) == Figures((), NOTHING_TO_DRAW)
    assert collect_report(tmp_path, dataset="single").figures == draw([], [])
