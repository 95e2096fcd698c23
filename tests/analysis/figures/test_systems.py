from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pii_bench.analysis.curves import CurvePoint
from pii_bench.analysis.figures.style import SERIES
from pii_bench.analysis.figures.systems import names_of, shown
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import run_name

if TYPE_CHECKING:
    from pii_bench.analysis.runs import RunName


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
