from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from pii_bench.analysis.agreement import Agreement
from pii_bench.analysis.figures.rows import (
    draw_agreement,
    draw_categories,
    draw_drops,
    draw_robustness,
    draw_types,
)
from pii_bench.analysis.recall import Rule, Share
from pii_bench.analysis.robustness import Robustness
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task
from pii_bench.taxonomy import CATEGORIES
from tests.analysis.evaluated import headline, run_name
from tests.analysis.figures.drawn import legend, points, rows, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pii_bench.analysis.runs import RunName

OURS = [
    replace(headline(0.75, "single+multi", samples=2442), interval_low=0.7, interval_high=0.8),
    headline(0.5, "hard", samples=200),
]
PUBLISHED = [
    headline(value, dataset, model="gpt-5", source=Source.PUBLISHED, samples=None)
    for dataset, value in (("single+multi", 0.9), ("hard", 0.6), ("distract", 0.7))
]

ONE, TWO = run_name("small"), run_name("small", model="fake/two")
DETECTION = run_name(task=Task.DETECTION, strategy="detection")
ASKED = run_name()


def test_drops_are_sorted_by_source_oracle_and_score() -> None:
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


def test_the_legend_of_drops_names_sets_and_samples() -> None:
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


def test_robustness_has_a_row_per_kind_and_a_mark_per_system() -> None:
    drops = [drop("typos", 0.7), drop("ocr", 0.8), drop("typos", 0.6, "fake/two")]
    drops.append(drop("typos", 0.1, "fake/three"))

    figure = draw_robustness(drops, [ONE, TWO], "F1")

    (panel,) = figure.axes
    assert panel.get_xlabel() == "Drop of F1"
    assert rows(panel) == ["typos", "ocr"]
    marks = [line[0] for line in points(panel) if len(line) == 1]
    assert [round(drop, 3) for drop, _ in marks] == [0.2, 0.1, 0.3]
    # The first system is above the second in the same row.
    assert [round(height) for _, height in marks] == [0, 1, 0]
    assert marks[0][1] < marks[2][1]
    intervals = [each for each in panel.collections if isinstance(each, LineCollection)]
    assert len(intervals) == 3
    assert legend(figure) == ["one, naive", "two, naive"]


def share(name: str, found: int, predicted: int | None, gold: int, run: RunName) -> Share:
    rule = Rule.TYPED if run.task is Task.DETECTION else Rule.TEXT
    return Share(run, rule, "type", name, name, found, predicted, gold)


def dots(panel: Axes) -> list[tuple[float, float]]:
    return [point for line in points(panel) for point in line]


def test_types_of_detection_have_recall_precision_and_f1() -> None:
    shares = [share("PER", 3, 4, 6, DETECTION), share("ORG", 0, 2, 0, DETECTION)]

    figure = draw_types(shares, [DETECTION])

    recall, precision, f1 = figure.axes
    assert rows(recall) == ["PER (6)", "ORG (0)"]
    assert recall.get_xlabel() == "Recall, single"
    assert dots(recall) == [(0.5, 0.0)]  # ORG has no gold entity
    assert dots(precision) == [(0.75, 0.0), (0.0, 1.0)]
    assert dots(f1) == [(0.6, 0.0), (0.0, 1.0)]
    assert legend(figure) == ["one"]


def test_types_of_query_related_have_only_recall_and_dots_do_not_overlap() -> None:
    other = run_name(model="fake/two")
    shares = [share("DEM", 1, None, 4, ASKED), share("DEM", 1, None, 4, other)]

    figure = draw_types(shares, [ASKED, other])

    (recall,) = figure.axes
    assert dots(recall) == [(0.25, -0.1), (0.25, 0.1)]


def test_categories_are_split_into_two_columns() -> None:
    shares = [
        Share(ASKED, Rule.TEXT, "category", name, kind, 1, None, 2)
        for kind, names in CATEGORIES.items()
        for name in names
    ]

    figure = draw_categories(shares, [ASKED])

    left, right = figure.axes
    assert sorted(rows(left) + rows(right)) == sorted(f"{s.name} (2)" for s in shares)
    assert abs(len(rows(left)) - len(rows(right))) <= 1  # 55 of them
    assert all(any(name == kind for name in texts(figure)) for kind in CATEGORIES)
    # A single category leaves the right column empty.
    left, right = draw_categories(shares[:1], [ASKED]).axes
    assert (len(rows(left)), right.axison) == (1, False)


def agreement(
    a: str, b: str, rho: float | None, *, sources: tuple[str, str] = ("run", "run")
) -> Agreement:
    return Agreement(Task.MASKING, "f1", sources[0], a, sources[1], b, 4, rho, 0.875)


def test_a_cell_is_darker_for_a_larger_rho_and_white_for_none() -> None:
    cells = [
        agreement("single", "multi", None),
        agreement("single", "hard", 0.2),
        agreement("single", "distract", 0.9),
    ]

    figure = draw_agreement(cells)

    assert "ρ 0.90\nPCS 0.88\nn = 4" in texts(figure)
    (panel,) = figure.axes
    none, little, much = (to_rgb(cell.get_facecolor()) for cell in panel.patches)
    assert none == (1, 1, 1)
    assert none > little > much > (0.5, 0.5, 0.5)  # black letters stay readable


def test_agreement_has_a_table_per_source() -> None:
    cells = [
        agreement("single", "multi", 0.8, sources=("run+reference", "run")),
        agreement("single", "multi", 0.8, sources=("published", "published")),
        agreement("single", "single", 0.8, sources=("run", "published")),
    ]

    figure = draw_agreement(cells)

    assert [panel.get_xlabel() for panel in figure.axes] == [
        "Ours",
        "Published",
        "Ours (rows) and published",
    ]
    assert [rows(panel) for panel in figure.axes] == [["single"]] * 3
