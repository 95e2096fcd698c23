from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.runs import BASE, CURVES, pooled, preferred, read_evaluated
from pii_bench.ranking.rows import Source
from pii_bench.ranking.scores import MASKED_TEXT, clusters_of, scores_of
from pii_bench.ranking.stored import collect
from pii_bench.tasks import Task
from tests.analysis.evaluated import UNASKED, answer, asked, detected, evaluated, run_name
from tests.builders import make_sample
from tests.ranking.stored_runs import ANN, BO, FAILED, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.runs import EvaluatedRun

AGES = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["41"]'}


def of_set(dataset: str, *right: bool, model: str = "fake/one") -> EvaluatedRun:
    """A run whose samples are answered rightly or not."""
    samples = [asked(f"{dataset}-{number}", "32") for number in range(len(right))]
    answers = {
        sample.id: answer("32" if each else "33")
        for sample, each in zip(samples, right, strict=True)
    }
    return evaluated(run_name(dataset, model=model), samples, answers)


def test_runs_are_scored_as_on_the_leaderboard(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(tmp_path / "runs", dataset, "naive", AGES)
    store_run(tmp_path / "runs", dataset, "naive-choice", {"s1": AGES["s1"], "s2": FAILED})
    store_run(tmp_path / "reference", dataset, "naive", AGES, model="fake/two")

    runs, left_out = read_evaluated(tmp_path)

    rows = collect(tmp_path).rows
    assert left_out == ()
    assert [
        (r.name.source, r.name.model, r.name.strategy, r.name.task, r.name.oracle, r.name.complete)
        for r in runs
    ] == [(r.source, r.model, r.strategy, r.task, r.oracle, r.complete) for r in rows]
    assert len(rows) == 6
    for run, row in zip(runs, rows, strict=True):
        for column, metric in run.metrics.items():
            scores = scores_of(run.evaluation, metric, clusters_of(run.samples))
            assert scores is not None
            assert scores.figure == row.metrics[column]


def test_runs_without_their_dataset_are_left_out_with_the_reason(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    gone = tiny_dataset(tmp_path / "gone.jsonl")
    store_run(tmp_path / "runs", changed(dataset), "naive", AGES)
    store_run(tmp_path / "runs", gone, "detection", {"s1": ANN})
    (tmp_path / "gone.jsonl").unlink()

    runs, (detection, naive) = read_evaluated(tmp_path)

    assert runs == []
    assert detection.startswith(f"runs on {gone.source}: ")
    assert naive.startswith(f"fake/one, naive on {dataset.source}: its file has changed since")


def test_sets_taken_as_one_have_all_samples() -> None:
    single, multi = of_set("single", True, False), of_set("multi", True)

    (both,) = pooled([multi, of_set("hard", True), single], BASE)

    assert both.name == run_name("single+multi")
    assert [sample.id for sample in both.samples] == ["single-0", "single-1", "multi-0"]
    assert both.predictions.keys() == {"single-0", "single-1", "multi-0"}
    mean = both.evaluation.macro("exact")
    assert mean is not None
    assert mean.f1 == pytest.approx(2 / 3)
    assert (both.evaluation.gold, both.evaluation.complete) == (3, True)


@pytest.mark.parametrize(
    ("runs", "names", "pools"),
    [
        ([("single", "fake/one"), ("hard", "fake/one")], BASE, []),
        # A pool is named after the sets that are there.
        ([("single", "fake/one"), ("distract", "fake/one")], CURVES, ["single+distract"]),
        ([("single", "fake/one"), ("multi", "fake/two")], BASE, []),
    ],
)
def test_two_sets_of_one_system_make_a_pool(
    runs: list[tuple[str, str]], names: tuple[str, ...], pools: list[str]
) -> None:
    made = [of_set(dataset, True, model=model) for dataset, model in runs]

    assert [run.name.dataset for run in pooled(made, names)] == pools


def test_a_pool_with_an_incomplete_part_is_incomplete() -> None:
    part = evaluated(run_name("multi", complete=False), [asked("m", "32")], {"m": UNASKED})

    (both,) = pooled([of_set("single", True), part], BASE)

    assert not both.name.complete
    assert len(both.evaluation.scores) == 1


def test_a_complete_run_is_preferred_to_the_reference_and_that_to_an_incomplete_run() -> None:
    run, reference = run_name(), run_name(source=Source.REFERENCE)
    part = run_name(complete=False)

    assert preferred([reference, run]) == {run}
    assert preferred([reference, part]) == {reference}
    assert preferred([part]) == frozenset()


@pytest.mark.parametrize(
    ("task", "names_subjects", "columns"),
    [
        (Task.DETECTION, True, ["strict_f1", "ent_f1"]),
        (Task.DETECTION, False, ["ent_f1"]),
        (Task.QUERY_RELATED, False, ["f1"]),
        (Task.MASKING, True, ["h", "f1"]),
    ],
)
def test_the_figures_of_a_task(task: Task, names_subjects: bool, columns: list[str]) -> None:
    run = evaluated(
        run_name(task=task),
        [make_sample("a")],
        {"a": detected({"32": "DEM"})},
        names_subjects=names_subjects,
    )

    assert list(run.metrics) == columns
    known = {*next(iter(run.evaluation.scores)).metrics, MASKED_TEXT}
    assert set(run.metrics.values()) <= known
