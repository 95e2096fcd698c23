"""Samples of a dataset, and our JSON Lines format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import BadLines, RecordError, get, get_objects, read_records, write_whole
from pii_bench.tasks import Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entity:
    """A piece of PII, as the description writes it.

    Attributes:
        type: one of the seven types.
        category: one of the 55 categories; None in foreign data.
        spans: offsets (start, end) in code points, end exclusive; empty if the description does
            not contain the text.
        listed: False if the file lists no spans, as foreign data may. `spans` are then all readable
            occurrences of the text, also in other spellings, and are not stored with the sample.
        extra: keys of the file that the format does not define.
    """

    text: str
    type: str
    category: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    listed: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """A person in the description, with their entities."""

    id: str
    entities: tuple[Entity, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Related:
    """An entity that the query needs."""

    subject: str
    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """A description, its PII by subject, a query and the related entities that it needs.

    Only detection applies to a sample without query.
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
        """The entities of all subjects, subject by subject."""
        return tuple(entity for subject in self.subjects for entity in subject.entities)

    @property
    def gold_subjects(self) -> list[list[tuple[str, str]]]:
        """The (text, type) pairs of each subject, as they are scored."""
        return [[(e.text, e.type) for e in subject.entities] for subject in self.subjects]


def reasons_of(sample: Sample) -> tuple[str, ...]:
    """Return why a sample is difficult, from `meta.reasons`."""
    reasons = sample.meta.get("reasons")
    return tuple(map(str, reasons)) if isinstance(reasons, list) else ()


def public_texts(sample: Sample) -> list[str]:
    """Return the texts of `meta.public`, which concern no person of the sample."""
    public = sample.meta.get("public")
    return [text for text in public if isinstance(text, str)] if isinstance(public, list) else []


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The origin of a perturbed sample: the sample `source` of `dataset`.

    The subjects and entities of both are in the same order.
    """

    kind: str
    dataset: str
    source: str


def perturbation_of(sample: Sample) -> Perturbation | None:
    """Return the origin of a perturbed sample, from `meta.perturbation`; None for an original."""
    match sample.meta.get("perturbation"):
        case {"kind": str(kind), "dataset": str(dataset), "source": str(source)}:
            return Perturbation(kind, dataset, source)
        case _:
            return None


def applicable(task: Task, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that a task applies to: all for detection, else those with a query."""
    if task is Task.DETECTION:
        return list(samples)
    return [sample for sample in samples if sample.query is not None]


_SAMPLE_KEYS: Final = frozenset({"id", "description", "query", "subjects", "related", "meta"})
_SUBJECT_KEYS: Final = frozenset({"id", "entities"})
_ENTITY_KEYS: Final = frozenset({"text", "type", "category", "spans"})
_RELATED_KEYS: Final = frozenset({"subject", "text"})


def read_native(path: Path) -> tuple[Sample, ...]:
    """Read a dataset file; raises as `iterate_native`."""
    return tuple(iterate_native(path))


def iterate_native(path: Path) -> Iterator[Sample]:
    """Yield the samples of a dataset file; faults are raised after the last one.

    Raises:
        InputFileError: with file and lines, if the format is broken, a span does not hold its
            entity, a related entity is no gold entity, or an id is repeated.
    """
    first_line: dict[str, int] = {}
    bad = BadLines(path)
    for line, record in read_records(path, bad):
        try:
            sample = sample_from_record(record)
            if sample.id in first_line:
                line_before = first_line[sample.id]
                raise RecordError(f"id {sample.id!r} is already on line {line_before}")
        except RecordError as error:
            bad.add(line, str(error))
            continue
        first_line[sample.id] = line
        yield sample
    bad.raise_any()
    if not first_line:
        raise InputFileError(path, "no samples in it")


def write_native(path: Path, samples: Iterable[Sample]) -> None:
    """Write a dataset file atomically.

    Raises:
        ResultsError: the file cannot be written.
    """
    lines = [json.dumps(sample_to_record(sample), ensure_ascii=False) for sample in samples]
    write_whole(path, "".join(f"{line}\n" for line in lines))


def sample_from_record(record: dict[str, Any]) -> Sample:
    """Parse the JSON object of one line.

    Raises:
        RecordError: names the sample and the faulty key.
    """
    sample_id = get(record, "id", str)
    owner = f"sample {sample_id!r}"
    description = get(record, "description", str, owner)
    query = None if record.get("query") is None else get(record, "query", str, owner)
    subjects = tuple(
        _subject(value, description, f"{owner}, subjects[{number}]")
        for number, value in enumerate(get_objects(record, "subjects", owner))
    )
    texts: dict[str, set[str]] = {}
    for subject in subjects:
        if subject.id in texts:
            raise RecordError(f"{owner}: subject {subject.id!r} comes twice")
        texts[subject.id] = {entity.text for entity in subject.entities}
    related = tuple(
        _related(value, texts, f"{owner}, related[{number}]")
        for number, value in enumerate(get_objects(record, "related", owner))
    )
    if query is None and related:
        raise RecordError(f"{owner}: 'related' must be empty where 'query' is null")
    return Sample(
        id=sample_id,
        description=description,
        query=query,
        subjects=subjects,
        related=related,
        meta=get(record, "meta", dict, owner) if record.get("meta") is not None else {},
        extra=_extra(record, _SAMPLE_KEYS),
    )


def sample_to_record(sample: Sample) -> dict[str, Any]:
    """Return the JSON object of one line, with unknown keys last."""
    return {
        "id": sample.id,
        "description": sample.description,
        "query": sample.query,
        "subjects": [
            {
                "id": subject.id,
                "entities": [_entity_to_record(entity) for entity in subject.entities],
                **subject.extra,
            }
            for subject in sample.subjects
        ],
        "related": [
            {"subject": related.subject, "text": related.text, **related.extra}
            for related in sample.related
        ],
        "meta": dict(sample.meta),
        **sample.extra,
    }


def _entity_to_record(entity: Entity) -> dict[str, Any]:
    record: dict[str, Any] = {"text": entity.text, "type": entity.type}
    if entity.category is not None:
        record["category"] = entity.category
    if entity.listed and entity.spans:
        record["spans"] = [list(span) for span in entity.spans]
    return {**record, **entity.extra}


def _subject(record: dict[str, Any], description: str, owner: str) -> Subject:
    return Subject(
        id=get(record, "id", str, owner),
        entities=tuple(
            _entity(value, description, f"{owner}.entities[{number}]")
            for number, value in enumerate(get_objects(record, "entities", owner))
        ),
        extra=_extra(record, _SUBJECT_KEYS),
    )


def _entity(record: dict[str, Any], description: str, owner: str) -> Entity:
    text = get(record, "text", str, owner)
    if not text.strip():
        raise RecordError(f"{owner}: 'text' is empty")
    pii_type = get(record, "type", str, owner)
    if pii_type not in PiiType.__members__:
        raise RecordError(f"{owner}: {UnknownNameError('type', pii_type, PiiType.__members__)}")
    spans = _spans(record, text, description, owner)
    category = None if record.get("category") is None else get(record, "category", str, owner)
    return Entity(
        text=text,
        type=pii_type,
        category=category,
        spans=spans or _occurrences(text, description),
        listed=bool(spans),
        extra=_extra(record, _ENTITY_KEYS),
    )


def _spans(
    record: dict[str, Any], text: str, description: str, owner: str
) -> tuple[tuple[int, int], ...]:
    if record.get("spans") is None:
        return ()
    spans: list[tuple[int, int]] = []
    for number, span in enumerate(get(record, "spans", list, owner)):
        # `True` is an int, but not a number in JSON.
        if not isinstance(span, list) or [type(offset) for offset in span] != [int, int]:
            raise RecordError(f"{owner}: spans[{number}] must be [start, end] in code points")
        start, end = span
        # A slice would accept negative offsets and an end beyond the description.
        if not 0 <= start <= end <= len(description) or description[start:end] != text:
            raise RecordError(f"{owner}: spans[{number}] = {span} does not hold the entity's text")
        spans.append((start, end))
    return tuple(spans)


def _occurrences(text: str, description: str) -> tuple[tuple[int, int], ...]:
    # Imported here because every command imports this module, and few files need the locator.
    from pii_bench.scorer.locate import locator_of

    return locator_of(description).spans(text)


def _related(record: dict[str, Any], texts: Mapping[str, set[str]], owner: str) -> Related:
    subject_id = get(record, "subject", str, owner)
    text = get(record, "text", str, owner)
    if subject_id not in texts:
        raise RecordError(f"{owner}: {UnknownNameError('subject', subject_id, texts)}")
    if text not in texts[subject_id]:
        raise RecordError(f"{owner}: its text is not an entity of subject {subject_id!r}")
    return Related(subject_id, text, _extra(record, _RELATED_KEYS))


def _extra(record: dict[str, Any], known: frozenset[str]) -> Mapping[str, Any]:
    return {key: value for key, value in record.items() if key not in known}
