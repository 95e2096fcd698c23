from __future__ import annotations

from matplotlib.collections import LineCollection

from pii_bench.analysis.figures.robustness import draw_robustness
from pii_bench.analysis.figures.systems import Shown
from pii_bench.analysis.robustness import Robustness
from tests.analysis.evaluated import run_name
from tests.analysis.figures.drawn import legend, points, rows

ONE, TWO = run_name("small"), run_name("small", model="fake/two")


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
