from __future__ import annotations

from colorsys import rgb_to_hls
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from pii_bench.analysis.figures.style import GREY, SERIES, STYLE, best, names_of, save, shown
from pii_bench.analysis.means import CurvePoint
from pii_bench.files import ResultsError
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import run_name

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.runs import RunName


def figure() -> Figure:
    with rc_context(dict(STYLE)):
        made = Figure(figsize=(1, 1))
        panel = made.subplots()
        panel.plot([0, 1], [1, 0], marker="o")
        panel.set_xlabel("Entities")
        panel.set_clip_on(True)
    return made


def test_equal_figures_give_equal_bytes_without_a_date(tmp_path: Path) -> None:
    first = save(figure(), tmp_path / "a", "curve")
    second = save(figure(), tmp_path / "b", "curve")

    assert [path.name for path in first] == ["curve.svg", "curve.png"]
    for path, other in zip(first, second, strict=True):
        assert path.read_bytes() == other.read_bytes()
    assert b"<dc:date>" not in first[0].read_bytes()
    assert b"Software" not in first[1].read_bytes()


def test_the_size_in_print_is_that_asked_for(tmp_path: Path) -> None:
    svg, png = save(figure(), tmp_path, "curve")

    assert b'width="72pt" height="72pt"' in svg.read_bytes()
    assert png.read_bytes()[16:24] == (300).to_bytes(4) * 2  # dots, at 300 an inch


def test_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "analysis").write_text("a file")

    with pytest.raises(ResultsError, match=r"curve\.svg: cannot be written"):
        save(figure(), tmp_path / "analysis", "curve")


def test_no_two_series_share_marker_dashes_or_colour() -> None:
    for first, second in combinations(SERIES, 2):
        assert first.marker != second.marker
        assert first.dashes != second.dashes
        assert first.color != second.color


def test_remarks_are_dark_enough_to_read() -> None:
    assert rgb_to_hls(*to_rgb(GREY))[1] < 0.4


def point(run: RunName, value: float, samples: int = 10, factor: str = "characters") -> CurvePoint:
    return CurvePoint(run, "f1", factor, 0, 500, samples, value)


def chosen(*points: CurvePoint) -> list[tuple[str, str]]:
    found = shown(points, Task.QUERY_RELATED, "f1")
    assert found is not None
    return [(run.model, run.strategy) for run in found.runs]


def test_the_set_is_the_one_that_most_systems_have() -> None:
    points = [
        point(run_name("single"), 0.5),
        point(run_name("single", model="fake/two"), 0.5),
        point(run_name("single+multi"), 0.5, samples=20),
    ]

    found = shown(points, Task.QUERY_RELATED, "f1")

    assert found is not None
    assert (found.dataset, len(found.runs)) == ("single", 2)


def test_of_sets_that_as_many_have_it_is_the_largest() -> None:
    points = [point(run_name("single"), 0.5), point(run_name("single+multi"), 0.5, samples=20)]

    found = shown(points, Task.QUERY_RELATED, "f1")

    assert found is not None
    assert found.dataset == "single+multi"


def test_how_large_a_set_is_does_not_hang_on_the_order_of_runs() -> None:
    """Of versions of samples, systems may have figures on different numbers of them."""
    sizes = {("one", "a"): 10, ("two", "a"): 30, ("one", "b"): 20, ("two", "b"): 20}

    found = best(
        (run_name(dataset, model=model), samples, 0.5)
        for (model, dataset), samples in sizes.items()
    )

    assert found is not None
    assert found.dataset == "a"


def test_the_best_come_first_by_the_mean_over_samples_and_oracles_last() -> None:
    low = run_name(model="fake/low")
    points = [
        point(run_name(model="fake/oracle", oracle=True), 0.9),
        point(low, 1.0, samples=1),
        replace(point(low, 0.1, samples=9), low=501),
        point(run_name(model="fake/high"), 0.5),
    ]

    assert chosen(*points) == [
        ("fake/high", "naive"),
        ("fake/low", "naive"),
        ("fake/oracle", "naive"),
    ]


def test_more_than_can_be_told_apart_are_left_out_each_model_with_its_best_first() -> None:
    points = [point(run_name(strategy=f"s{n}"), 0.9 - n / 100) for n in range(len(SERIES))]
    points.append(point(run_name(model="fake/low"), 0.1))
    points.append(point(run_name(model="fake/oracle", oracle=True), 1.0))

    found = shown(points, Task.QUERY_RELATED, "f1")

    assert found is not None
    assert len(found.runs) == len(SERIES)
    assert [run.strategy for run in found.runs] == [
        *(f"s{n}" for n in range(len(SERIES) - 1)),
        "naive",
    ]
    assert found.runs[-1].model == "fake/low"


def test_incomplete_runs_other_tasks_and_other_metrics_are_not_shown() -> None:
    points = [
        point(run_name(complete=False), 0.5),
        point(run_name(task=Task.MASKING), 0.5),
        replace(point(run_name(), 0.5), metric="ent_f1"),
    ]

    assert shown(points, Task.QUERY_RELATED, "f1") is None


def test_names_are_short_where_they_stay_different() -> None:
    runs = [
        run_name(model="openai/gpt-4o-2024-08-06"),
        run_name(model="openai/Qwen/Qwen2.5-7B-Instruct@localhost:8000", strategy="self-cot"),
        run_name(model="bilstm-crf", strategy="embedding"),
        run_name(model="gold", strategy="embedding", oracle=True),
        run_name(model="openai/gpt-5", task=Task.DETECTION, strategy="detection"),
        run_name(model="gpt-5", source=Source.PUBLISHED),
        run_name(model="human", source=Source.PUBLISHED, strategy=""),
    ]

    assert list(names_of(runs).values()) == [
        "gpt-4o-2024-08-06, naive",
        "Qwen2.5-7B-Instruct, self-cot",
        "bilstm-crf+embedding",
        "gold+embedding (oracle)",
        "gpt-5",
        "gpt-5, naive",
        "human",
    ]


def test_two_servers_of_one_model_have_their_full_names() -> None:
    runs = [run_name(model=f"openai/m@{host}") for host in ("a", "b")]

    assert list(names_of(runs).values()) == ["openai/m@a, naive", "openai/m@b, naive"]
