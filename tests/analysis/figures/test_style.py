from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from pii_bench.analysis.figures.style import GREY, SERIES, STYLE, names_of, save, shown
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
        drawn = Figure(figsize=(1, 1))
        panel = drawn.subplots()
        panel.plot([0, 1], [1, 0], marker="o")
        panel.set_xlabel("Entities")
        panel.set_clip_on(True)
    return drawn


def test_equal_figures_give_equal_bytes_of_the_given_size_without_a_date(tmp_path: Path) -> None:
    first = save(figure(), tmp_path / "a", "curve")
    second = save(figure(), tmp_path / "b", "curve")

    assert [path.name for path in first] == ["curve.svg", "curve.png"]
    for path, other in zip(first, second, strict=True):
        assert path.read_bytes() == other.read_bytes()
    svg, png = (path.read_bytes() for path in first)
    assert b"<dc:date>" not in svg
    assert b"Software" not in png
    assert b'width="72pt" height="72pt"' in svg
    assert png[16:24] == (300).to_bytes(4) * 2  # dots, at 300 an inch


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "analysis").write_text("a file")

    with pytest.raises(ResultsError, match=r"curve\.svg: cannot be written"):
        save(figure(), tmp_path / "analysis", "curve")


def test_series_differ_in_marker_dashes_and_colour() -> None:
    for first, second in combinations(SERIES, 2):
        assert all(first[look] != second[look] for look in ("color", "marker", "linestyle"))


def test_the_grey_of_remarks_is_readable() -> None:
    assert all(part < 0.4 for part in to_rgb(GREY))


def point(run: RunName, value: float, samples: int = 10) -> CurvePoint:
    return CurvePoint(run, "f1", "characters", 0, 500, samples, value)


def choose(*points: CurvePoint) -> list[RunName]:
    return shown(points, Task.QUERY_RELATED, "f1")


@pytest.mark.parametrize(
    ("sizes", "dataset"),
    [
        # The set with most systems; with ties the largest,
        ([("one", "a", 10), ("two", "a", 10), ("one", "a+b", 20)], "a"),
        ([("one", "a", 10), ("one", "a+b", 20)], "a+b"),
        # whose runs may have scores on different numbers of perturbed samples, in any order.
        ([("one", "a", 10), ("two", "a", 30), ("one", "b", 20), ("two", "b", 20)], "a"),
    ],
)
def test_the_set_with_most_systems_or_samples_is_shown(
    sizes: list[tuple[str, str, int]], dataset: str
) -> None:
    points = [
        point(run_name(name, model=f"fake/{model}"), 0.5, samples) for model, name, samples in sizes
    ]

    models = {f"fake/{model}" for model, name, _ in sizes if name == dataset}
    assert {(run.dataset, run.model) for run in choose(*points)} == {(dataset, m) for m in models}


def test_systems_are_sorted_by_mean_score_with_oracles_last() -> None:
    low, high = run_name(model="fake/low"), run_name(model="fake/high")
    oracle = run_name(model="fake/oracle", oracle=True)
    points = [point(oracle, 0.9), point(low, 1.0, samples=1), point(high, 0.5)]

    assert choose(*points, replace(point(low, 0.1, samples=9), low=501)) == [high, low, oracle]


def test_the_best_run_of_each_model_is_shown_first() -> None:
    points = [point(run_name(strategy=f"s{n}"), 0.9 - n / 100) for n in range(len(SERIES))]
    points.append(point(run_name(model="fake/low"), 0.1))
    points.append(point(run_name(model="fake/oracle", oracle=True), 1.0))

    *others, last = choose(*points)

    assert [run.strategy for run in others] == [f"s{n}" for n in range(len(SERIES) - 1)]
    assert last.model == "fake/low"


def test_incomplete_runs_and_other_tasks_and_metrics_are_not_shown() -> None:
    points = [
        point(run_name(complete=False), 0.5),
        point(run_name(task=Task.MASKING), 0.5),
        replace(point(run_name(), 0.5), metric="ent_f1"),
    ]

    assert choose(*points) == []


def test_names_are_short_if_unique() -> None:
    runs = [
        run_name(model="openai/gpt-4o-2024-08-06"),
        run_name(model="openai/Qwen/Qwen2.5-7B-Instruct@localhost:8000", strategy="self-cot"),
        run_name(model="openai/small@models.example/a"),
        run_name(model="bilstm-crf", strategy="embedding"),
        run_name(model="gold", strategy="embedding", oracle=True),
        run_name(model="openai/gpt-5", task=Task.DETECTION, strategy="detection"),
        run_name(model="gpt-5", source=Source.PUBLISHED),
        run_name(model="human", source=Source.PUBLISHED, strategy=""),
        # Ambiguous names are full.
        run_name(model="openai/m@a"),
        run_name(model="openai/m@b"),
    ]

    assert list(names_of(runs).values()) == [
        "gpt-4o-2024-08-06, naive",
        "Qwen2.5-7B-Instruct, self-cot",
        "small, naive",
        "bilstm-crf+embedding",
        "gold+embedding (oracle)",
        "gpt-5",
        "gpt-5, naive",
        "human",
        "openai/m@a, naive",
        "openai/m@b, naive",
    ]
