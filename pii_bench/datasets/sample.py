"""One sample of a dataset, in the format of `formats.md`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Entity:
    """A piece of PII.

    Attributes:
        text: the minimal span as the description writes it.
        type: one of the seven types.
        category: one of the 55 categories, None in foreign data.
        spans: code-point offsets (start, end), end exclusive; empty in foreign data without them.
        extra: keys of the file that the format does not name, kept as they came.
    """

    text: str
    type: str
    category: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """A person in the description, with the entities that belong to them."""

    id: str
    entities: tuple[Entity, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Related:
    """An entity that the query needs: one of the related entities."""

    subject: str
    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """A description, its PII by subject, a query and what the query needs.

    Attributes:
        query: None where a dataset has none; then only detection applies.
        related: the related entities, a subset of the gold entities.
    """

    id: str
    description: str
    query: str | None
    subjects: tuple[Subject, ...]
    related: tuple[Related, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """E, subject by subject."""
        return tuple(entity for subject in self.subjects for entity in subject.entities)


def spans_of(entity: Entity, description: str) -> tuple[tuple[int, int], ...]:
    """Where an entity is: the listed spans, else (foreign data) wherever its text can be read."""
    # Every command imports this module, and few need the locator.
    from pii_bench.scorer.locate import locator_of

    return entity.spans or locator_of(description).spans(entity.text)


def reasons_of(sample: Sample) -> tuple[str, ...]:
    """Why a sample is difficult, as its `meta` says."""
    reasons = sample.meta.get("reasons")
    return tuple(map(str, reasons)) if isinstance(reasons, list) else ()


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What a sample is a version of (`pii-bench data perturb`).

    Attributes:
        kind: of perturbation.
        dataset: name of the dataset that it was made from.
        source: id of the sample there. Subjects and their entities are in the same order here.
    """

    kind: str
    dataset: str
    source: str


def perturbation_of(sample: Sample) -> Perturbation | None:
    """What a sample is a version of, as its `meta` says; None for an original."""
    match sample.meta.get("perturbation"):
        case {"kind": str(kind), "dataset": str(dataset), "source": str(source)}:
            return Perturbation(kind, dataset, source)
        case _:
            return None


def applicable(task: Task, samples: Sequence[Sample]) -> list[Sample]:
    """The samples that a task applies to: all for detection, those with a query otherwise."""
    if task is Task.DETECTION:
        return list(samples)
    return [sample for sample in samples if sample.query is not None]
