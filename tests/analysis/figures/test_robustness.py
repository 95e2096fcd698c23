from __future__ import annotations

from matplotlib.collections import LineCollection

from pii_bench.analysis.figures.robustness import draw_robustness
from pii_bench.analysis.figures.systems import Shown
from pii_bench.analysis.robustness import Robustness
from tests.analysis.evaluated import run_name

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
    assert [label.get_text() for label in panel.get_yticklabels()] == ["typos", "ocr"]
    marks = [line.get_xydata()[0] for line in panel.lines if len(line.get_xdata()) == 1]
    assert [round(float(x), 3) for x, _ in marks] == [0.2, 0.1, 0.3]
    # Both systems in one row, apart from each other.
    assert round(marks[0][1]) == round(marks[2][1]) == 0
    assert marks[0][1] < marks[2][1]
    assert sum(isinstance(each, LineCollection) for each in panel.collections) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "one, naive",
        "two, naive",
    ]
