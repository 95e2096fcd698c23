"""CAPID's native layout (arXiv 2602.10074) read into our format.

A line is `context`, `question` and `piis`, a mapping of phrase to type and
relevance, without offsets. The phrases get their spans here; the one writer of
a context is its one subject.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.jsonl import RecordError, get, read_records
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.masking.locate import Span

SUBJECT: Final = "A"

TYPES: Final[Mapping[str, PiiType]] = MappingProxyType(
    {
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
)


def read_capid(path: Path) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Read a native CAPID file.

    Returns:
        The samples, with ids `capid-0001` by line, and the annotation faults: one message
        for each phrase that does not occur in its context and so is left out of gold.

    Raises:
        InputFileError: a broken line, an unknown type or relevance, or no line at all.
    """
    samples: list[Sample] = []
    faults: list[str] = []
    for line, record in read_records(path):
        try:
            sample, missing = _sample(record, f"capid-{line:04d}")
        except RecordError as error:
            raise InputFileError(path, str(error), line=line) from None
        samples.append(sample)
        faults += [f"{sample.id}: phrase {number} of 'piis' is not in it" for number in missing]
    if not samples:
        raise InputFileError(path, "no samples in it")
    return tuple(samples), tuple(faults)


def find_spans(phrase: str, context: str) -> tuple[Span, ...]:
    """Every occurrence as words of its own; where there is none, every occurrence at all.

    The phrase `son` is not in `person`; yet `34` stands in `34F`, and only there.
    """
    # Every command imports this module, and few need the locator.
    from pii_bench.masking.locate import Locator, Strictness

    locator = Locator(context)
    return locator.spans(phrase, Strictness.VERBATIM) or locator.spans(phrase, Strictness.EQUAL)


def _sample(record: dict[str, Any], sample_id: str) -> tuple[Sample, list[int]]:
    context = get(record, "context", str)
    question = None if record.get("question") is None else get(record, "question", str)
    entities: list[Entity] = []
    related: list[Related] = []
    missing: list[int] = []
    for number, (phrase, label) in enumerate(get(record, "piis", dict).items(), start=1):
        pii_type, relevant = _label(label, f"phrase {number} of 'piis'")
        spans = find_spans(phrase, context)
        if not spans:
            missing.append(number)
            continue
        entities.append(Entity(phrase, pii_type, spans=spans))
        if relevant and question is not None:
            related.append(Related(SUBJECT, phrase))
    subjects = (Subject(SUBJECT, tuple(entities)),) if entities else ()
    return Sample(sample_id, context, question, subjects, tuple(related)), missing


def _label(label: object, owner: str) -> tuple[PiiType, bool]:
    match label:
        case {"type": str(native_type), "relevance": "0" | "1" as relevance}:
            if native_type not in TYPES:
                raise RecordError(f"{owner}: {UnknownNameError('CAPID type', native_type, TYPES)}")
            return TYPES[native_type], relevance == "1"
        case _:
            raise RecordError(f"{owner} must have a 'type' and a 'relevance' of \"0\" or \"1\"")
