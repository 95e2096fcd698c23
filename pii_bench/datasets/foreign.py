"""Readers of the datasets CAPID and TAB in their native layouts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import BadLines, RecordError, get, get_objects, read_records
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SUBJECT: Final = "A"
"""Id of the only subject of samples without known subjects."""

CAPID_TYPES: Final[Mapping[str, PiiType]] = {
    "age": PiiType.DEM,
    "appearance": PiiType.DEM,
    "belief": PiiType.DEM,
    "code": PiiType.CODE,
    "datetime": PiiType.DATETIME,
    "demographic": PiiType.DEM,
    "education": PiiType.DEM,
    "finance": PiiType.QUANTITY,
    "health": PiiType.DEM,
    "location": PiiType.LOC,
    "name": PiiType.PER,
    "occupation": PiiType.DEM,
    "organization": PiiType.ORG,
    "relationship": PiiType.DEM,
    "sexual orientation": PiiType.DEM,
}

RELEVANCE: Final[Mapping[str, bool]] = {"0": False, "1": True, "low": False, "high": True}
"""Whether the question needs a phrase, by CAPID's value of `relevance`."""


def read_capid(path: Path) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Read a CAPID file.

    Returns the samples, with ids `capid-0001` by line, and one message for each phrase that does
    not occur in its context and is therefore left out.

    Raises:
        InputFileError: lines are broken, a type or relevance is unknown, or the file is empty.
    """
    samples: list[Sample] = []
    faults: list[str] = []
    bad = BadLines(path)
    for line, record in read_records(path, bad):
        try:
            sample, missing = _capid_sample(record, f"capid-{line:04d}")
        except RecordError as error:
            bad.add(line, str(error))
            continue
        samples.append(sample)
        faults += missing
    bad.raise_any()
    if not samples:
        raise InputFileError(path, "no samples in it")
    return tuple(samples), tuple(faults)


def as_written(phrase: str, context: str) -> str:
    """Return a phrase as a context writes it, which may have other quotes and dashes.

    A phrase that occurs exactly or not at all is returned unchanged.
    """
    # Imported here because few commands need the locator.
    from pii_bench.scorer.locate import Locator, Strictness, typewritten

    if phrase in context or not phrase.strip():
        return phrase
    spans = Locator(typewritten(context)).spans(typewritten(phrase), Strictness.PLACED)
    return context[slice(*spans[0])] if spans else phrase


def _capid_sample(record: dict[str, Any], sample_id: str) -> tuple[Sample, list[str]]:
    from pii_bench.scorer.locate import Strictness, locator_of

    context = get(record, "context", str)
    question = None if record.get("question") is None else get(record, "question", str)
    entities: list[Entity] = []
    related: list[Related] = []
    missing: list[str] = []
    for number, (phrase, label) in enumerate(get(record, "piis", dict).items(), start=1):
        pii_type, relevant = _capid_label(label, f"phrase {number} of 'piis'")
        text = as_written(phrase, context)
        spans = locator_of(context).spans(text, Strictness.PLACED)
        if not spans:
            missing.append(f"{sample_id}: phrase {number} of 'piis' is not in it")
            continue
        entities.append(Entity(text, pii_type, spans=spans))
        if relevant and question is not None:
            related.append(Related(SUBJECT, text))
    subjects = (Subject(SUBJECT, tuple(entities)),) if entities else ()
    return Sample(sample_id, context, question, subjects, tuple(related)), missing


def _capid_label(label: object, owner: str) -> tuple[PiiType, bool]:
    match label:
        case {"type": str(native_type), "relevance": str(relevance)} if relevance in RELEVANCE:
            if native_type in CAPID_TYPES:
                return CAPID_TYPES[native_type], RELEVANCE[relevance]
            unknown = UnknownNameError("CAPID type", native_type, CAPID_TYPES)
            raise RecordError(f"{owner}: {unknown}")
        case _:
            allowed = ", ".join(RELEVANCE)
            raise RecordError(f"{owner} must have a 'type' and a 'relevance' (one of {allowed})")


_Value = TypeVar("_Value")

TAB_TYPES: Final[Mapping[str, PiiType | None]] = {
    "PERSON": PiiType.PER,
    "CODE": PiiType.CODE,
    "LOC": PiiType.LOC,
    "ORG": PiiType.ORG,
    "DEM": PiiType.DEM,
    "DATETIME": PiiType.DATETIME,
    "QUANTITY": PiiType.QUANTITY,
    "MISC": None,
}

_MASKED: Final[Mapping[str, bool]] = {"DIRECT": True, "QUASI": True, "NO_MASK": False}


def read_tab(path: Path) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Read a TAB file.

    Returns the samples, with the ids of the documents, and one message for each mention whose
    offsets do not hold its text and which is therefore left out.

    Raises:
        InputFileError: the file is no list of documents, a type or kind of identifier is unknown,
            an id is repeated, or the file is empty.
    """
    samples: dict[str, Sample] = {}
    faults: list[str] = []
    for number, record in enumerate(_documents(path), start=1):
        try:
            sample, misplaced = _tab_sample(record)
            if sample.id in samples:
                raise RecordError(f"'doc_id' {sample.id!r} comes twice")
        except RecordError as error:
            raise InputFileError(path, f"document {number}: {error}") from None
        samples[sample.id] = sample
        faults += misplaced
    if not samples:
        raise InputFileError(path, "no samples in it")
    return tuple(samples.values()), tuple(faults)


def _documents(path: Path) -> list[dict[str, Any]]:
    try:
        documents = json.loads(path.read_bytes())
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, RecursionError):
        # A chained exception would contain the file.
        raise InputFileError(path, "not valid JSON") from None
    try:
        return get_objects({"documents": documents}, "documents", "file")
    except RecordError as error:
        raise InputFileError(path, str(error)) from None


def _tab_sample(record: dict[str, Any]) -> tuple[Sample, list[str]]:
    doc_id = get(record, "doc_id", str)
    text = get(record, "text", str)
    annotations = get(record, "annotations", dict)
    if not annotations:
        raise RecordError("record: 'annotations' has no annotator")
    annotator = next(iter(annotations))
    spans: dict[tuple[str, PiiType], list[tuple[int, int]]] = {}
    faults: list[str] = []
    mentions = get_objects(get(annotations, annotator, dict), "entity_mentions", annotator)
    for number, mention in enumerate(mentions, start=1):
        owner = f"mention {number}"
        pii_type = _lookup(mention, "entity_type", TAB_TYPES, owner)
        if not _lookup(mention, "identifier_type", _MASKED, owner) or pii_type is None:
            continue
        start = get(mention, "start_offset", int, owner)
        end = get(mention, "end_offset", int, owner)
        phrase = get(mention, "span_text", str, owner)
        if not phrase.strip() or start < 0 or text[start:end] != phrase:
            faults.append(f"{doc_id}: {owner} is not at its offsets")
            continue
        spans.setdefault((phrase, pii_type), []).append((start, end))
    entities = tuple(
        Entity(phrase, pii_type, spans=tuple(sorted(mention_spans)))
        for (phrase, pii_type), mention_spans in spans.items()
    )
    subjects = (Subject(SUBJECT, entities),) if entities else ()
    return Sample(doc_id, text, None, subjects, ()), faults


def _lookup(mention: dict[str, Any], key: str, table: Mapping[str, _Value], owner: str) -> _Value:
    name = get(mention, key, str, owner)
    if name not in table:
        raise RecordError(f"{owner}: {UnknownNameError(f'TAB {key}', name, table)}")
    return table[name]


FOREIGN_FORMATS: Final[
    Mapping[str, Callable[[Path], tuple[tuple[Sample, ...], tuple[str, ...]]]]
] = {"capid": read_capid, "tab": read_tab}
"""Readers of samples and faults, by the prefix of `--dataset`."""
