"""Runs and results made of literals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pii_bench.analysis.means import Headline
from pii_bench.analysis.runs import EvaluatedRun, RunName
from pii_bench.datasets.sample import applicable
from pii_bench.ranking.rows import Source
from pii_bench.runs.evaluation import evaluate
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Subjects

FAILED = Prediction(Status.MALFORMED)
UNASKED = Prediction(Status.INFRA_ERROR)


def asked(sample_id: str, *related: str, description: str = "") -> Sample:
    """A sample of one person with the entities Ann Lee, 32 and Halifax, or as many as needed.

    The query needs the entities `related`; those beyond the three are ages of theirs.
    """
    texts = {"Ann Lee": "PER", "32": "DEM", "Halifax": "LOC"}
    categories = {"PER": "Full Name", "DEM": "Age", "LOC": "City/Region"}
    entities = [
        {"text": text, "type": kind, "category": categories[kind]}
        for text, kind in (texts | {text: texts.get(text, "DEM") for text in related}).items()
    ]
    needed = [{"subject": "A", "text": text} for text in related]
    return make_sample(
        sample_id,
        description=description or f"{sample_id}: Ann Lee, 32, Halifax. {' '.join(related)}",
        subjects=[{"id": "A", "entities": entities}],
        related=needed,
    )


def perturbed(sample: Sample, kind: str, dataset: str = "single") -> Sample:
    """A version of a sample of a dataset; its texts are the same."""
    mark = {"kind": kind, "dataset": dataset, "source": sample.id}
    return replace(sample, id=f"{sample.id}.{kind}", meta={"perturbation": mark})


def answer(*related: str, subjects: Subjects | None = None) -> Prediction:
    return Prediction(Status.OK, subjects=subjects, related=related)


def detected(*subjects: Mapping[str, str]) -> Prediction:
    """A detection of subjects, each a map of text to type."""
    return Prediction(Status.OK, subjects=tuple(tuple(each.items()) for each in subjects))


def run_name(
    dataset: str = "single",
    *,
    task: Task = Task.QUERY_RELATED,
    source: Source = Source.RUN,
    model: str = "fake/one",
    strategy: str = "naive",
    oracle: bool = False,
    complete: bool = True,
) -> RunName:
    return RunName(source, model, strategy, dataset, task, oracle, complete)


def evaluated(
    name: RunName,
    samples: Sequence[Sample],
    predictions: Mapping[str, Prediction],
    *,
    names_subjects: bool = True,
) -> EvaluatedRun:
    return EvaluatedRun(
        name,
        names_subjects,
        tuple(applicable(name.task, samples)),
        predictions,
        evaluate(name.task, samples, predictions),
    )


def headline(
    value: float,
    dataset: str = "single",
    *,
    metric: str = "f1",
    samples: int | None = 10,
    **name: Any,
) -> Headline:
    """A figure of a run, of which `name` says what `run_name` takes."""
    return Headline(run_name(dataset, **name), metric, samples, value)
