from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.figures import (
    NOTHING_TO_DRAW,
    Figures,
    draw_figures,
    draw_svgs,
    style,
)
from pii_bench.analysis.figures.draw import chosen, draw_curves
from pii_bench.analysis.means import CurvePoint, Tradeoff
from pii_bench.analysis.results import Analysis, analyse
from pii_bench.ranking.external import published_rows
from pii_bench.tasks import Task
from tests.analysis.evaluated import answer, asked, detected, evaluated, perturbed, run_name
from tests.analysis.figures.drawn import legend, points, texts

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from pii_bench.analysis.runs import EvaluatedRun


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the figures that are saved, without drawing files."""
    names: list[str] = []

    def keep(_: Figure, folder: Path, name: str) -> list[Path]:
        names.append(name)
        return [folder / name]

    monkeypatch.setattr(style, "save", keep)
    return names


def results(*datasets: str) -> Analysis:
    runs = []
    for dataset in datasets:
        samples = [asked(f"{dataset}-{number}", "32") for number in range(2)]
        entities = {sample.id: detected({"32": "DEM"}) for sample in samples}
        related = {sample.id: answer("32") for sample in samples}
        detection = run_name(dataset, task=Task.DETECTION, strategy="detection")
        runs += [
            evaluated(detection, samples, entities),
            evaluated(run_name(dataset), samples, related),
        ]
    return analyse(runs, published_rows())


def perturbed_runs() -> list[EvaluatedRun]:
    """A run on two samples and a run on a perturbed version of each."""
    samples = [asked("demo-1", "32"), asked("demo-2", "32")]
    versions = [perturbed(sample, "typos", "demo") for sample in samples]
    return [
        evaluated(run_name(name), own, {sample.id: answer("32") for sample in own})
        for name, own in (("demo", samples), ("versions", versions))
    ]


def test_all_figures_of_a_system_on_all_sets(drawn: list[str], tmp_path: Path) -> None:
    paths = draw_figures(results("single", "multi", "hard", "distract"), tmp_path)

    assert sorted(drawn) == [
        "categories-detection",
        "categories-query-related",
        "curves-detection-ent-f1",
        "curves-detection-strict-f1",
        "curves-query-related-f1",
        "drops-detection-ent-f1",
        "drops-detection-strict-f1",
        "drops-query-related-f1",
        "types-detection",
        "types-query-related",
    ]
    assert paths == [tmp_path / name for name in drawn]


def test_one_set_has_no_drops_but_its_perturbed_samples_have_a_figure() -> None:
    figures = draw_svgs(perturbed_runs(), published_rows())

    assert [figure.caption for figure in figures.drawn] == [
        "Score by size of the sample: query-related, F1",
        "Drop on perturbed samples: query-related, F1",
        "Scores by type: query-related",
        "Recall by category: query-related",
    ]
    assert all("</svg>" in figure.svg for figure in figures.drawn)
    assert figures.missing == ""


def test_published_figures_alone_are_not_drawn(drawn: list[str], tmp_path: Path) -> None:
    assert draw_figures(results(), tmp_path) == []
    assert drawn == []
    assert draw_svgs([], published_rows()) == Figures((), NOTHING_TO_DRAW)


RUN = run_name("single+distract")


def some_points() -> list[CurvePoint]:
    """Curves over three bins, the last of them from distract."""
    sizes = {"subjects": [1, 2, 7], "entities": [7, 10, 34], "related": [1, 2, 5]}
    sizes["characters"] = [501, 751, 3001]
    made = [
        CurvePoint(RUN, "f1", factor, low, low, samples, value, value - 0.05, value + 0.05)
        for factor, lows in sizes.items()
        for low, samples, value in zip(lows, (60, 40, 20), (0.6, 0.5, 0.3), strict=True)
    ]
    part = run_name("distract")
    own = [CurvePoint(part, "f1", f, lows[2], None, 20, 0.3) for f, lows in sizes.items()]
    return made + own


def test_each_size_has_a_labelled_panel() -> None:
    figure = draw_curves(some_points(), [RUN], "F1")

    labels = [panel.get_xlabel() for panel in figure.axes]
    assert labels == [
        "Subjects",
        "Entities",
        "Characters of the description",
        "Query-related entities",
    ]
    assert figure.axes[0].get_ylabel() == "F1, single+distract"
    assert legend(figure) == ["one, naive"]
    assert {"60", "40", "20", "n"} <= set(texts(figure))
    # The last bin of each panel is mostly of the last set.
    assert texts(figure).count("distract") == 4
    assert all(not panel.get_title() for panel in figure.axes)


def test_a_line_stops_where_a_bin_has_no_samples() -> None:
    hidden = CurvePoint(run_name(RUN.dataset, model="fake/two"), "f1", "subjects", 1, 1, 60, 0.9)

    panel = draw_curves([*some_points(), hidden], [RUN], "F1").axes[0]

    (line,) = points(panel)
    # A line stops at what is not a number.
    assert [None if isnan(value) else value for _, value in line] == [0.6, 0.5, *[None] * 4, 0.3]
    assert (line[0][0], line[-1][0]) == (1.0, 7.0)


def test_wide_bins_are_labelled_at_their_ends() -> None:
    panel = draw_curves(some_points(), [RUN], "F1").axes[1]

    ticks = [tick.get_text() for tick in panel.get_xticklabels()]
    assert ticks == ["6", "9", "12", "16", "33", "45"]
    # The bin of 7 to 9 is between the ticks 6 and 9.
    assert list(panel.get_xticks())[:2] == [0.5, 1.5]
    assert points(panel)[0][0] == (1.0, 0.6)


def test_no_bin_is_marked_for_a_single_set() -> None:
    alone = [CurvePoint(run_name(), "f1", "characters", 501, 750, 9, 0.5)]

    figure = draw_curves(alone, [run_name()], "F1")

    assert "single" not in texts(figure)
    assert [panel.get_xlabel() for panel in figure.axes if panel.axison] == [
        "Characters of the description"
    ]


def test_a_tradeoff_needs_two_complete_systems() -> None:
    one, two, other = (
        Tradeoff(run_name(dataset, task=Task.MASKING, model=model), 0.5, protection)
        for dataset, model, protection in (
            ("single", "fake/one", 0.2),
            ("single", "fake/two", 0.9),
            ("multi", "fake/one", 0.5),
        )
    )
    part = Tradeoff(run_name(task=Task.MASKING, model="fake/part", complete=False), 1.0, 1.0)

    assert chosen([one, part, other]) == []
    assert chosen([one, two, part, other]) == [two, one]
