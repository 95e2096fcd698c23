"""Stored runs with the score of every sample, and runs over several sets as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import applicable
from pii_bench.ranking.rows import Source
from pii_bench.ranking.scores import MASKED_TEXT
from pii_bench.ranking.stored import read_runs
from pii_bench.runs.evaluation import Evaluation
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction

BASE: Final = ("single", "multi")
"""What hard and distract are compared with."""

CURVES: Final = ("single", "multi", "distract")
"""One after the other they reach from one subject to many. Not hard, whose samples are those
of the first two, nor twins, whose descriptions are."""


@dataclass(frozen=True, slots=True)
class RunName:
    """Which run a result is of; every table of results begins with these columns.

    Attributes:
        source: where its figures come from.
        model: as in the leaderboard.
        strategy: likewise.
        dataset: a name, or the names of several sets taken as one, joined by `+`.
        task: what was asked.
        oracle: whether the system is told gold.
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
    """A run, or several over sets taken as one, under one task.

    Attributes:
        name: which it is.
        names_subjects: whether its detection tells whose an entity is.
        samples: the gold samples that the task applies to.
        predictions: sample id to what the system said.
        evaluation: the score of each sample.
    """

    name: RunName
    names_subjects: bool
    samples: tuple[Sample, ...]
    predictions: Mapping[str, Prediction]
    evaluation: Evaluation

    @property
    def metrics(self) -> Mapping[str, str]:
        """The figures analysed: column of the leaderboard to metric of the evaluation.

        The headline of the task; Ent-F1 for detection, alone where it names no subjects; and
        the paper's F1 for masking and rewriting.
        """
        match self.name.task:
            case Task.QUERY_RELATED:
                return {"f1": "exact"}
            case Task.MASKING | Task.REWRITE:
                return {"h": MASKED_TEXT, "f1": "exact"}
        headline = {"strict_f1": "strict"} if self.names_subjects else {}
        return headline | {"ent_f1": "entity"}


@dataclass(frozen=True, slots=True)
class EvaluatedRuns:
    """The runs of a results folder, and those that could not be read, each with the reason."""

    runs: tuple[EvaluatedRun, ...]
    left_out: tuple[str, ...]


def read_evaluated(results: Path) -> EvaluatedRuns:
    """Score what is stored in a results folder: runs, references and what is submitted.

    Masking is there wherever a run has detection and query-related answers, as in the
    leaderboard.
    """
    stored = read_runs(results)
    runs = tuple(each for run in stored.runs for each in evaluated(run))
    return EvaluatedRuns(runs, stored.left_out)


def evaluated(run: Run) -> Iterator[EvaluatedRun]:
    """What a stored run was evaluated under: its own task, and masking."""
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
    """One run for each system that has at least two of the named sets: all their samples.

    Args:
        runs: of single sets.
        names: sets that share no sample; a pool is named after those of them that it joins.
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
    """The complete runs, one per system, set and task: a user's own before a reference."""
    chosen: dict[tuple[str, str, str, Task], RunName] = {}
    order = list(Source)
    for name in sorted(names, key=lambda name: order.index(name.source)):
        if name.complete:
            chosen.setdefault((name.model, name.strategy, name.dataset, name.task), name)
    return frozenset(chosen.values())


def _pool(parts: Sequence[EvaluatedRun]) -> EvaluatedRun:
    name, evaluations = parts[0].name, [part.evaluation for part in parts]
    merged = Evaluation(
        task=name.task,
        gold=sum(each.gold for each in evaluations),
        scores=tuple(score for each in evaluations for score in each.scores),
        statuses=sum((Counter(each.statuses) for each in evaluations), Counter()),
        repairs=sum((Counter(each.repairs) for each in evaluations), Counter()),
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
