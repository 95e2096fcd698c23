"""Samples of two people, small enough to judge by hand, and runs on them as if stored."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.catalog import Dataset
from pii_bench.ranking.rows import Source
from pii_bench.ranking.stored import ParsedRun, Run
from pii_bench.runs.records import DatasetRef, Manifest
from pii_bench.systems.composed import (
    DetectionSystem,
    GoldEntities,
    PredictedRelevance,
    RelevanceSystem,
)
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.tasks import Status
from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import SystemCard
    from pii_bench.systems.predictions import Subjects

DESCRIPTION = (
    "Ann Lee, 32, is with Acme Tools in Oslo. "
    "Bo Ray, 40, is with Initech in Lima. "
    "Acme Tools sells 7 saws."
)

PEOPLE = {
    "A": [
        ("Ann Lee", "PER", "Full Name"),
        ("32", "DEM", "Age"),
        ("Acme Tools", "ORG", "Company Name"),
        ("Oslo", "LOC", "City/Region"),
    ],
    "B": [
        ("Bo Ray", "PER", "Full Name"),
        ("40", "DEM", "Age"),
        ("Initech", "ORG", "Company Name"),
        ("Lima", "LOC", "City/Region"),
    ],
}

EVERYONE = tuple(
    tuple((text, pii_type) for text, pii_type, _ in entities) for entities in PEOPLE.values()
)
"""What a perfect detector says."""


def couple(
    related: Sequence[tuple[str, str]] = (("A", "Acme Tools"), ("A", "Oslo")),
    *,
    sample_id: str = "s1",
    description: str = DESCRIPTION,
    people: Mapping[str, Sequence[tuple[str, str, str | None]]] = PEOPLE,
    query: str | None = "Is my employer far from where I live?",
    meta: Mapping[str, str] | None = None,
) -> Sample:
    """Ann and Bo; spans are all places of a text. By default Ann's employer and city are needed."""
    return make_sample(
        sample_id,
        description=description,
        query=query,
        subjects=[
            {
                "id": person,
                "entities": [
                    {
                        "text": text,
                        "type": pii_type,
                        "category": category,
                        "spans": [
                            list(m.span()) for m in re.finditer(re.escape(text), description)
                        ],
                    }
                    for text, pii_type, category in entities
                ],
            }
            for person, entities in people.items()
        ],
        related=[{"subject": person, "text": text} for person, text in related],
        meta=dict(meta or {}),
    )


def query_run(
    samples: Sequence[Sample],
    chosen: Mapping[str, tuple[str, ...] | Status],
    detected: Mapping[str, Subjects] | None = None,
    *,
    dataset: str = "tiny",
    relevance: str = "keyword",
    **card: Any,
) -> Run:
    """A run of gold+RELEVANCE, with a detection run if `detected` is given.

    A status in the place of an answer is a failure. `card` is what else the card says.
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
    return Run(Source.RUN, dataset, manifest, lambda: ParsedRun(predictions), detection)
