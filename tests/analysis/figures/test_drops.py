from __future__ import annotations

from dataclasses import replace

from pii_bench.analysis.figures.drops import draw_drops
from pii_bench.ranking.source import Source
from tests.analysis.evaluated import headline
from tests.analysis.figures.drawn import legend, points, rows, texts

OURS = [
    replace(headline(0.75, "single+multi", samples=2442), interval_low=0.7, interval_high=0.8),
    headline(0.5, "hard", samples=200),
]
PUBLISHED = [
    headline(value, dataset, model="gpt-5", source=Source.PUBLISHED, samples=None)
    for dataset, value in (("single+multi", 0.9), ("hard", 0.6), ("distract", 0.7))
]


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
