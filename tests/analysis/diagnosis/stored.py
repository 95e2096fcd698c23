"""Stored runs of systems without a chat model, made without running anything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.catalog import Dataset
from pii_bench.ranking.rows import Source
from pii_bench.ranking.stored import Answers, Run
from pii_bench.runs.records import DatasetRef, Manifest
from pii_bench.systems.composed import DetectionSystem, RelevanceSystem
from pii_bench.systems.parts import GoldEntities, PredictedRelevance
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import SystemCard
    from pii_bench.systems.predictions import Subjects


def query_run(
    samples: Sequence[Sample],
    chosen: Mapping[str, tuple[str, ...] | Status],
    detected: Mapping[str, Subjects] | None = None,
    *,
    dataset: str = "tiny",
    relevance: str = "keyword",
    **card: Any,
) -> Run:
    """A run of gold+RELEVANCE; a status in the place of an answer is a failure.

    Args:
        samples: of its dataset.
        chosen: sample id to the query-related answer.
        detected: sample id to the detection answer; None for no detection run.
        dataset: its name.
        relevance: named in the card.
        card: what else the query-related card says.
    """
    own = Dataset(dataset, f"{dataset}.jsonl", "0" * 64, tuple(samples))
    made = RelevanceSystem(GoldEntities(), PredictedRelevance(build_relevance(relevance))).card
    answers = {
        name: Prediction(answer)
        if isinstance(answer, Status)
        else Prediction(Status.OK, related=answer)
        for name, answer in chosen.items()
    }
    detection = None
    if detected is not None:
        found = {name: Prediction(Status.OK, subjects=each) for name, each in detected.items()}
        detection = _stored(DetectionSystem(GoldEntities()).card, own, found)
    return _stored(replace(made, **card), own, answers, detection)


def _stored(
    card: SystemCard,
    dataset: Dataset,
    predictions: Mapping[str, Prediction],
    detection: Run | None = None,
) -> Run:
    manifest = Manifest(card, DatasetRef.of(dataset))
    return Run(Source.RUN, dataset, manifest, lambda: Answers(predictions), detection)
