from __future__ import annotations

from pii_bench.analysis.figures.curves import chosen, draw_curves
from pii_bench.analysis.figures.style import Shown
from pii_bench.analysis.means import CurvePoint, Tradeoff
from pii_bench.tasks import Task
from tests.analysis.evaluated import run_name
from tests.analysis.figures import drawn
from tests.analysis.figures.drawn import legend, texts

RUN = run_name("single+distract")
DETECTION = run_name(task=Task.DETECTION, strategy="detection", model="fake/one")


def points() -> list[CurvePoint]:
    """One and two subjects of single, seven of distract."""
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


def test_each_size_has_a_labelled_panel_with_its_samples() -> None:
    figure = draw_curves(points(), Shown(RUN.dataset, (RUN,)), "F1")

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
    assert all(not panel.get_title() for panel in figure.axes)


def test_a_line_stops_where_a_bin_has_no_samples() -> None:
    panel = draw_curves(points(), Shown(RUN.dataset, (RUN,)), "F1").axes[0]

    assert drawn.points(panel) == [[(1.0, 0.6), (2.0, 0.5)], [(7.0, 0.3)]]


def test_bins_of_several_sizes_are_labelled_at_their_ends() -> None:
    panel = draw_curves(points(), Shown(RUN.dataset, (RUN,)), "F1").axes[1]

    ticks = [tick.get_text() for tick in panel.get_xticklabels()]
    assert ticks == ["6", "9", "12", "16", "33", "45"]
    # 7 to 9 stands between the ticks of 6 and 9.
    assert list(panel.get_xticks())[:2] == [0.5, 1.5]
    assert drawn.points(panel)[0][0] == (1.0, 0.6)


def test_the_bins_of_the_last_of_several_sets_are_marked() -> None:
    figure = draw_curves(points(), Shown(RUN.dataset, (RUN,)), "F1")

    assert texts(figure).count("distract") == 4


def test_of_one_set_nothing_is_marked() -> None:
    alone = [CurvePoint(run_name(), "f1", "characters", 501, 750, 9, 0.5)]

    figure = draw_curves(alone, Shown("single", (run_name(),)), "F1")

    assert "single" not in texts(figure)
    assert [panel.get_xlabel() for panel in figure.axes if panel.axison] == [
        "Characters of the description"
    ]


def test_only_the_systems_shown_are_drawn() -> None:
    other = run_name("single+distract", model="fake/two")
    more = [*points(), CurvePoint(other, "f1", "subjects", 1, 1, 60, 0.9)]

    panel = draw_curves(more, Shown(RUN.dataset, (RUN,)), "F1").axes[0]

    assert max(y for line in drawn.points(panel) for _, y in line) == 0.6


def test_nothing_is_drawn_of_one_system_or_of_incomplete_ones() -> None:
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
