"""TAB's native layout (Pilán et al. 2022, arXiv 2202.00443) read into our format.

A file is one list of court decisions, each annotated to conceal one person, the
applicant. What becomes of it here:

- Of several annotators the first of the file counts; their marks differ, and to unite
  or to vote would make a gold that no annotator wrote.
- Gold are the mentions that TAB wants masked, DIRECT and QUASI. These are its words for
  what the benchmark calls PII: what singles a person out alone or with others. NO_MASK
  says that a mention tells nothing about the applicant; six in ten of them are
  organisations, mostly courts and governments.
- MISC has no type among the seven (laws, trades, allowances, substances) and is left out.
- TAB says of no entity whose it is: one subject holds all. Nothing is asked.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import RecordError, get, get_objects
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

T = TypeVar("T")

SUBJECT: Final = "A"

TYPES: Final[Mapping[str, PiiType | None]] = MappingProxyType(
    {
        "PERSON": PiiType.PER,
        "CODE": PiiType.CODE,
        "LOC": PiiType.LOC,
        "ORG": PiiType.ORG,
        "DEM": PiiType.DEM,
        "DATETIME": PiiType.DATETIME,
        "QUANTITY": PiiType.QUANTITY,
        "MISC": None,
    }
)

MASKED: Final[Mapping[str, bool]] = MappingProxyType(
    {"DIRECT": True, "QUASI": True, "NO_MASK": False}
)


def read_tab(path: Path) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Read a file of TAB.

    Returns:
        The samples, with the documents' own ids, and the annotation faults: one message
        for each mention whose offsets do not hold its text and that so is left out.

    Raises:
        InputFileError: no list of documents, an unknown type or kind of identifier, an id
            that comes twice, or no document at all.
    """
    samples: dict[str, Sample] = {}
    faults: list[str] = []
    for number, record in enumerate(_documents(path), start=1):
        try:
            sample, found = _sample(record)
            if sample.id in samples:
                raise RecordError(f"'doc_id' {sample.id!r} comes twice")
        except RecordError as error:
            raise InputFileError(path, f"document {number}: {error}") from None
        samples[sample.id] = sample
        faults += found
    if not samples:
        raise InputFileError(path, "no samples in it")
    return tuple(samples.values()), tuple(faults)


def _documents(path: Path) -> list[dict[str, Any]]:
    try:
        documents = json.loads(path.read_bytes())
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, RecursionError):
        # The chained exception holds the file.
        raise InputFileError(path, "not valid JSON") from None
    try:
        return get_objects({"documents": documents}, "documents", "file")
    except RecordError as error:
        raise InputFileError(path, str(error)) from None


def _sample(record: dict[str, Any]) -> tuple[Sample, list[str]]:
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
        pii_type = _lookup(mention, "entity_type", TYPES, owner)
        if not _lookup(mention, "identifier_type", MASKED, owner) or pii_type is None:
            continue
        start, end = (
            get(mention, "start_offset", int, owner),
            get(mention, "end_offset", int, owner),
        )
        phrase = get(mention, "span_text", str, owner)
        if not phrase.strip() or start < 0 or text[start:end] != phrase:
            faults.append(f"{doc_id}: {owner} does not stand at its offsets")
            continue
        spans.setdefault((phrase, pii_type), []).append((start, end))
    entities = tuple(
        Entity(phrase, pii_type, spans=tuple(sorted(found)))
        for (phrase, pii_type), found in spans.items()
    )
    subjects = (Subject(SUBJECT, entities),) if entities else ()
    return Sample(doc_id, text, None, subjects, ()), faults


def _lookup(mention: dict[str, Any], key: str, table: Mapping[str, T], owner: str) -> T:
    name = get(mention, key, str, owner)
    if name not in table:
        raise RecordError(f"{owner}: {UnknownNameError(f'TAB {key}', name, table)}")
    return table[name]
