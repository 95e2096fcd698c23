from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.analysis.figures.recall import draw_categories, draw_types
from pii_bench.analysis.figures.style import Shown
from pii_bench.analysis.recall import Rule, Share
from pii_bench.tasks import Task
from pii_bench.taxonomy import CATEGORIES
from tests.analysis.evaluated import run_name
from tests.analysis.figures.drawn import legend, points, rows, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pii_bench.analysis.runs import RunName

DETECTION = run_name(task=Task.DETECTION, strategy="detection")
ASKED = run_name()


def share(name: str, found: int, predicted: int | None, gold: int, run: RunName) -> Share:
    rule = Rule.TYPED if run.task is Task.DETECTION else Rule.TEXT
    return Share(run, rule, "type", name, name, found, predicted, gold)


def dots(panel: Axes) -> list[tuple[float, float]]:
    return [point for line in points(panel) for point in line]


def test_detection_has_recall_precision_and_f1_of_each_type() -> None:
    shares = [share("PER", 3, 4, 6, DETECTION), share("ORG", 0, 2, 0, DETECTION)]

    figure = draw_types(shares, Shown("single", (DETECTION,)))

    recall, precision, f1 = figure.axes
    assert rows(recall) == ["PER (6)", "ORG (0)"]
    assert recall.get_xlabel() == "Recall, single"
    assert dots(recall) == [(0.5, 0.0)]  # ORG has none
    assert dots(precision) == [(0.75, 0.0), (0.0, 1.0)]
    assert dots(f1) == [(0.6, 0.0), (0.0, 1.0)]
    assert legend(figure) == ["one"]


def test_an_answer_to_a_query_has_recall_alone() -> None:
    figure = draw_types([share("DEM", 1, None, 4, ASKED)], Shown("single", (ASKED,)))

    (panel,) = figure.axes
    assert dots(panel) == [(0.25, 0.0)]


def test_the_dots_of_two_systems_stand_beside_each_other() -> None:
    other = run_name(model="fake/two")
    shares = [share("DEM", 1, None, 4, ASKED), share("DEM", 1, None, 4, other)]

    figure = draw_types(shares, Shown("single", (ASKED, other)))

    (first, second) = dots(figure.axes[0])
    assert first == (0.25, -0.1)
    assert second == (0.25, 0.1)


def test_categories_stand_in_two_columns_by_type() -> None:
    shares = [
        Share(ASKED, Rule.TEXT, "category", name, kind, 1, None, 2)
        for kind, names in CATEGORIES.items()
        for name in names
    ]

    figure = draw_categories(shares, Shown("single", (ASKED,)))

    left, right = figure.axes
    assert sorted(rows(left) + rows(right)) == sorted(f"{s.name} (2)" for s in shares)
    assert abs(len(rows(left)) - len(rows(right))) <= 1  # 55 of them
    assert all(any(name == kind for name in texts(figure)) for kind in CATEGORIES)


def test_a_single_category_has_a_column_of_its_own() -> None:
    age = Share(ASKED, Rule.TEXT, "category", "Age", "DEM", 1, None, 2)

    left, right = draw_categories([age], Shown("single", (ASKED,))).axes

    assert rows(left) == ["Age (2)"]
    assert not right.axison
