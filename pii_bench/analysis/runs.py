"""Stored runs with the score of every sample, and runs pooled over several sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import applicable
from pii_bench.ranking.rows import SUBJECT_METRICS, TESTED, Source
from pii_bench.ranking.stored import read_runs
from pii_bench.runs.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction
    from pii_bench.tasks import Task

BASE: Final = ("single", "multi")
"""The sets that hard and distract are compared with."""

CURVES: Final = ("single", "multi", "distract")
"""The sets pooled for curves. Hard and twins are left out: they repeat samples or descriptions of
single and multi."""


@dataclass(frozen=True, slots=True)
class RunName:
    """The identity of a run: the first columns of every table of results.

    Attributes:
        model, strategy: as in the leaderboard.
        dataset: a name, or the names of pooled sets joined by `+`.
        complete: whether every gold sample is scored.
    """

    source: Source
    model: str
    strategy: str
    dataset: str
    task: Task
    oracle: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """The samples, predictions and scores of a run under one task.

    Attributes:
        names_subjects: whether its detection says which subject an entity belongs to.
        samples: the gold samples that the task applies to.
        predictions: by sample id.
    """

    name: RunName
    names_subjects: bool
    samples: tuple[Sample, ...]
    predictions: Mapping[str, Prediction]
    evaluation: Evaluation

    @property
    def metrics(self) -> Mapping[str, str]:
        """The metrics to analyse: leaderboard column to metric of the evaluation.

        Detection that does not name subjects has no Strict-F1.
        """
        tested = TESTED[self.name.task].items()
        return {
            column: metric
            for column, metric in tested
            if self.names_subjects or column not in SUBJECT_METRICS
        }


def read_evaluated(results: Path) -> tuple[list[EvaluatedRun], tuple[str, ...]]:
    """Score the runs, references and submissions of a results folder.

    As in the leaderboard, masking is scored for each run that has both detection and
    query-related answers.

    Returns:
        The runs, and why others could not be read.
    """
    stored = read_runs(results)
    return [part for run in stored.runs for part in evaluated(run)], stored.left_out


def evaluated(run: Run) -> Iterator[EvaluatedRun]:
    """Yield a stored run under each task that it is scored for."""
    system, dataset, predictions = run.manifest.system, run.dataset, run.by_task
    for task, evaluation in run.scores.evaluations.items():
        name = RunName(
            source=run.source,
            model=system.model,
            strategy=system.prompt,
            dataset=dataset.name,
            task=task,
            oracle=system.oracle,
            complete=evaluation.complete,
        )
        samples = tuple(applicable(task, dataset.samples))
        yield EvaluatedRun(name, run.names_subjects, samples, predictions[task], evaluation)


def pooled(runs: Iterable[EvaluatedRun], names: Sequence[str]) -> Iterator[EvaluatedRun]:
    """Pool the runs of each system that has at least two of the named sets.

    The sets must share no sample. A pool has the names of the sets that it joins.
    """
    systems: dict[tuple[Source, str, str, Task], dict[str, EvaluatedRun]] = defaultdict(dict)
    for run in runs:
        name = run.name
        systems[name.source, name.model, name.strategy, name.task][name.dataset] = run
    for sets in systems.values():
        parts = [sets[name] for name in names if name in sets]
        if len(parts) > 1:
            yield _pool(parts)


def preferred(names: Iterable[RunName]) -> frozenset[RunName]:
    """Return one complete run per system, set and task: a user's own before a reference."""
    chosen: dict[tuple[str, str, str, Task], RunName] = {}
    order = list(Source)
    for name in sorted(names, key=lambda name: order.index(name.source)):
        if name.complete:
            chosen.setdefault((name.model, name.strategy, name.dataset, name.task), name)
    return frozenset(chosen.values())


def _pool(parts: Sequence[EvaluatedRun]) -> EvaluatedRun:
    name = parts[0].name
    evaluations = [part.evaluation for part in parts]
    merged = Evaluation(
        task=name.task,
        gold=sum(part.gold for part in evaluations),
        scores=tuple(score for part in evaluations for score in part.scores),
        statuses=sum((Counter(part.statuses) for part in evaluations), Counter()),
    )
    return EvaluatedRun(
        name=replace(
            name,
            dataset="+".join(part.name.dataset for part in parts),
            oracle=any(part.name.oracle for part in parts),
            complete=merged.complete,
        ),
        names_subjects=all(part.names_subjects for part in parts),
        samples=tuple(sample for part in parts for sample in part.samples),
        predictions={key: value for part in parts for key, value in part.predictions.items()},
        evaluation=merged,
    )
