"""How much lower a system is on versions of samples, and how often its answer is the same.

Versions are what `pii-bench data perturb` writes. Each is compared with its original, in the run of
the same system on the dataset that it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pii_bench.datasets.sample import perturbation_of
from pii_bench.ranking.rows import Source
from pii_bench.ranking.scores import Scores, clusters_of, difference_interval, intervals, scores_of
from pii_bench.scorer import normalise, normalise_type
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pii_bench.analysis.runs import EvaluatedRun, RunName
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction

Answer: TypeAlias = tuple[frozenset[tuple[int, str]], int] | None
"""Numbers of the entities named, with the types said, and how many other texts are; None where
there is no answer."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """One figure of one run on the versions of one kind, and on their originals.

    Attributes:
        run: on the versions.
        kind: of perturbation.
        samples: scored both as they were and in their version.
        original, value: the figure over the originals and over their versions.
        drop_low, drop_high: the 95 % interval of the drop, by the bootstrap of originals; None
            where all share one description, as that of consistency.
        consistency: the share of samples with the same answer: it names the same entities, as
            they are written here and there, detection with the same types, and as many texts that
            are no entity.
        consistency_low, consistency_high: its 95 % interval.
    """

    run: RunName
    metric: str
    kind: str
    samples: int
    original: float
    value: float
    drop_low: float | None
    drop_high: float | None
    consistency: float
    consistency_low: float | None
    consistency_high: float | None

    @property
    def drop(self) -> float:
        """How much lower; below 0 where it is higher."""
        return self.original - self.value


def of_versions(run: EvaluatedRun) -> bool:
    """Whether a run is on versions of samples."""
    return any(perturbation_of(sample) for sample in run.samples)


def robustness(runs: Iterable[EvaluatedRun]) -> list[Robustness]:
    """Every run on versions, by kind, against the same system's run on the originals.

    Of several such runs, one from the same place is taken, else a user's own before a
    reference. Versions whose original was not run or scored are left out.
    """
    runs = list(runs)
    found: list[Robustness] = []
    for run in filter(of_versions, runs):
        kinds: dict[tuple[str, str], dict[str, Sample]] = {}
        for sample in run.samples:
            if version := perturbation_of(sample):
                kinds.setdefault((version.dataset, version.kind), {})[version.source] = sample
        for (dataset, kind), made in kinds.items():
            if (original := _original(run.name, dataset, runs)) is not None:
                found += _compared(original, run, kind, made)
    return found


def _original(name: RunName, dataset: str, runs: Iterable[EvaluatedRun]) -> EvaluatedRun | None:
    order = [name.source, *Source]
    wanted = name.model, name.strategy, name.task, dataset
    same = [
        run
        for run in runs
        if (run.name.model, run.name.strategy, run.name.task, run.name.dataset) == wanted
    ]
    return min(same, key=lambda run: order.index(run.name.source), default=None)


def _compared(
    original: EvaluatedRun, run: EvaluatedRun, kind: str, made: Mapping[str, Sample]
) -> Iterator[Robustness]:
    """The figures of one kind; `made` is the id of an original to its version."""
    before, after = clusters_of(original.samples), clusters_of(run.samples)
    samples = {sample.id: sample for sample in original.samples}
    for column, metric in run.metrics.items():
        if column not in original.metrics:
            continue
        pair = _paired(
            scores_of(original.evaluation, metric, before),
            scores_of(run.evaluation, metric, after),
            {source: version.id for source, version in made.items()},
        )
        if pair is None:
            continue
        first, second = pair
        answers = [
            (
                _answer(samples[source], original.predictions[source], run.name.task),
                _answer(made[source], run.predictions[made[source].id], run.name.task),
            )
            for source in first.ids
        ]
        same = Scores(first.ids, first.clusters, tuple(float(a == b) for a, b in answers))
        drop, consistency = difference_interval(first, second), intervals([same])[0]
        yield Robustness(
            run=run.name,
            metric=column,
            kind=kind,
            samples=len(first.ids),
            original=first.figure,
            value=second.figure,
            drop_low=drop.low if drop else None,
            drop_high=drop.high if drop else None,
            consistency=same.figure,
            consistency_low=consistency.low if consistency else None,
            consistency_high=consistency.high if consistency else None,
        )


def _paired(
    before: Scores | None, after: Scores | None, version_of: Mapping[str, str]
) -> tuple[Scores, Scores] | None:
    """Both on what both have, under the ids of the originals; None where that is nothing."""
    if before is None or after is None:
        return None
    places = {sample_id: place for place, sample_id in enumerate(after.ids)}
    first = before.on({source for source, version in version_of.items() if version in places})
    if first is None:
        return None

    def of(column: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(column[places[version_of[source]]] for source in first.ids)

    parts = None if after.parts is None else (of(after.parts[0]), of(after.parts[1]))
    return first, Scores(first.ids, first.clusters, of(after.values), parts)


def _answer(sample: Sample, prediction: Prediction, task: Task) -> Answer:
    """What a prediction says of a sample, whatever its entities are called."""
    if not prediction.status.answered:
        return None
    numbers = {normalise(each.text): number for number, each in enumerate(sample.entities)}
    pairs = {pair for subject in prediction.subjects or () for pair in subject}
    related = {normalise(text) for text in prediction.related or ()}
    if task is Task.DETECTION:
        said = {(normalise(text), normalise_type(kind)) for text, kind in pairs}
    elif task is Task.QUERY_RELATED:
        said = {(text, "") for text in related}
    else:
        said = {(text, "") for text in {normalise(text) for text, _ in pairs} - related}
    named = frozenset((numbers[text], kind) for text, kind in said if text in numbers)
    return named, sum(text not in numbers for text, _ in said)
