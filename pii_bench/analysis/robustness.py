"""How much perturbed samples lower the scores of a system, and how often its answers stay the same.

`pii-bench data perturb` writes the perturbed versions. Each is compared with its original, in the
same system's run on the dataset that it was made from.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
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
"""The answered entities as (number, type), and the number of other texts; None for no answer."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """A mean score of a run on the versions of one kind, and on their originals.

    Attributes:
        run: on the versions.
        kind: of perturbation.
        samples: number of samples scored in both forms.
        original, value: mean over the originals, and over their versions.
        drop_low, drop_high: 95 % interval, by the bootstrap of originals; None if all share one
            description.
        consistency: share of samples with the same answer: the same entities (for detection,
            with the same types), and as many texts that are no entity. Its interval as above.
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
        """Original minus value; below 0 if the versions score higher."""
        return self.original - self.value


def of_versions(run: EvaluatedRun) -> bool:
    """Whether a run is on perturbed versions of samples."""
    return any(perturbation_of(sample) for sample in run.samples)


def robustness(runs: Iterable[EvaluatedRun]) -> list[Robustness]:
    """Compare every run on versions, by kind, with the same system's run on the originals.

    If there are several runs on the originals, uses the one of the same source, else a user's own
    before a reference. Versions whose original is not scored are left out.
    """
    runs = list(runs)
    results: list[Robustness] = []
    for run in runs:
        kinds: defaultdict[tuple[str, str], dict[str, Sample]] = defaultdict(dict)
        for sample in run.samples:
            if perturbation := perturbation_of(sample):
                kinds[perturbation.dataset, perturbation.kind][perturbation.source] = sample
        for (dataset, kind), versions in kinds.items():
            if (original := _original(run.name, dataset, runs)) is not None:
                results += _compare(original, run, kind, versions)
    return results


def _original(name: RunName, dataset: str, runs: Iterable[EvaluatedRun]) -> EvaluatedRun | None:
    order = [name.source, *Source]
    wanted = name.model, name.strategy, name.task, dataset
    same = [
        run
        for run in runs
        if (run.name.model, run.name.strategy, run.name.task, run.name.dataset) == wanted
    ]
    return min(same, key=lambda run: order.index(run.name.source), default=None)


def _compare(
    original: EvaluatedRun, run: EvaluatedRun, kind: str, versions: Mapping[str, Sample]
) -> Iterator[Robustness]:
    """Yield the figures of one kind; `versions` is by the id of the original."""
    clusters = clusters_of(original.samples)
    samples = {sample.id: sample for sample in original.samples}
    scores = {score.id: score for score in run.evaluation.scores}
    task = run.name.task
    # The scores of the samples that are scored in both forms, under the ids of the originals.
    befores, afters = [], []
    for score in original.evaluation.scores:
        version = versions.get(score.id)
        if version is not None and version.id in scores:
            befores.append(score)
            afters.append(replace(scores[version.id], id=score.id))
    for column, metric in run.metrics.items():
        if column not in original.metrics:
            continue
        before = scores_of(replace(original.evaluation, scores=befores), metric, clusters)
        after = scores_of(replace(run.evaluation, scores=afters), metric, clusters)
        if before is None or after is None:
            continue
        same = [
            _answer(samples[source], original.predictions[source], task)
            == _answer(versions[source], run.predictions[versions[source].id], task)
            for source in before.ids
        ]
        consistent = Scores(before.ids, before.clusters, tuple(map(float, same)))
        drop = difference_interval(before, after)
        consistency = intervals([consistent])[0]
        yield Robustness(
            run=run.name,
            metric=column,
            kind=kind,
            samples=len(before.ids),
            original=before.figure,
            value=after.figure,
            drop_low=drop.low if drop else None,
            drop_high=drop.high if drop else None,
            consistency=consistent.figure,
            consistency_low=consistency.low if consistency else None,
            consistency_high=consistency.high if consistency else None,
        )


def _answer(sample: Sample, prediction: Prediction, task: Task) -> Answer:
    """Return an answer in a form that does not depend on how the entities are written."""
    if not prediction.status.answered:
        return None
    numbers = {normalise(entity.text): place for place, entity in enumerate(sample.entities)}
    pairs = {pair for subject in prediction.subjects or () for pair in subject}
    related = {normalise(text) for text in prediction.related or ()}
    if task is Task.DETECTION:
        answer = {(normalise(text), normalise_type(kind)) for text, kind in pairs}
    elif task is Task.QUERY_RELATED:
        answer = {(text, "") for text in related}
    else:
        answer = {(text, "") for text in {normalise(text) for text, _ in pairs} - related}
    entities = frozenset((numbers[text], kind) for text, kind in answer if text in numbers)
    return entities, sum(text not in numbers for text, _ in answer)
