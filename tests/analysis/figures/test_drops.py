from __future__ import annotations

from dataclasses import replace

from matplotlib.collections import LineCollection

from pii_bench.analysis.figures.drops import draw_drops, draw_robustness
from pii_bench.analysis.figures.style import Shown
from pii_bench.analysis.robustness import Robustness
from pii_bench.ranking.rows import Source
from tests.analysis.evaluated import headline, run_name
from tests.analysis.figures.drawn import legend, points, rows, texts

OURS = [
    replace(headline(0.75, "single+multi", samples=2442), interval_low=0.7, interval_high=0.8),
    headline(0.5, "hard", samples=200),
]
PUBLISHED = [
    headline(value, dataset, model="gpt-5", source=Source.PUBLISHED, samples=None)
    for dataset, value in (("single+multi", 0.9), ("hard", 0.6), ("distract", 0.7))
]

ONE, TWO = run_name("small"), run_name("small", model="fake/two")


def test_ours_stand_above_the_published_the_best_first_and_oracles_last() -> None:
    better = [
        headline(0.8, "single+multi", model="fake/two"),
        headline(0.7, "hard", model="fake/two"),
    ]
    oracle = [
        headline(0.99, dataset, model="gold", strategy="all", oracle=True)
        for dataset in ("single+multi", "hard")
    ]

    figure = draw_drops([*PUBLISHED, *oracle, *OURS, *better], "F1")

    (panel,) = figure.axes
    assert rows(panel) == ["two, naive", "one, naive", "gold+all (oracle)", "gpt-5, naive"]
    assert panel.get_xlabel() == "F1"
    assert "published" in texts(figure)


def test_each_set_has_its_mark_and_its_samples() -> None:
    figure = draw_drops(OURS, "F1")

    assert legend(figure) == ["single+multi (n = 2442)", "hard (n = 200)"]
    assert [line[0][0] for line in points(figure.axes[0])] == [0.75, 0.5]
    assert "published" not in texts(figure)


def test_published_marks_are_hollow() -> None:
    marks = draw_drops([*OURS, *PUBLISHED], "F1").axes[0].get_lines()

    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [False] * 2 + [True] * 3


def drop(kind: str, value: float, model: str = "fake/one") -> Robustness:
    name = run_name("small", model=model)
    return Robustness(name, "f1", kind, 10, 0.9, value, 0.1, 0.3, 0.5, 0.4, 0.6)


def test_a_row_for_each_kind_and_a_mark_for_each_system() -> None:
    found = [drop("typos", 0.7), drop("ocr", 0.8), drop("typos", 0.6, "fake/two")]
    found.append(drop("typos", 0.1, "fake/three"))

    figure = draw_robustness(found, Shown("small", (ONE, TWO)), "F1")

    (panel,) = figure.axes
    assert panel.get_xlabel() == "Drop of F1"
    assert rows(panel) == ["typos", "ocr"]
    marks = [line[0] for line in points(panel) if len(line) == 1]
    assert [round(drop, 3) for drop, _ in marks] == [0.2, 0.1, 0.3]
    # Both systems in one row, the first above the second.
    assert [round(height) for _, height in marks] == [0, 1, 0]
    assert marks[0][1] < marks[2][1]
    intervals = [each for each in panel.collections if isinstance(each, LineCollection)]
    assert len(intervals) == 3
    assert legend(figure) == ["one, naive", "two, naive"]
