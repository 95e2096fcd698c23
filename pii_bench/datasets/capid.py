"""CAPID's native layout (arXiv 2602.10074) read into our format.

A line is `context`, `question` and `piis`, a mapping of phrase to type and
relevance, without offsets. The phrases get their spans here; the one writer of
a context is its one subject. Relevance is "1" or, in earlier releases, "high".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import BadLines, RecordError, get, read_records
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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

RELEVANCE: Final[Mapping[str, bool]] = MappingProxyType(
    {"0": False, "1": True, "low": False, "high": True}
)
"""Whether the question needs a phrase, by CAPID's words for it."""


def read_capid(path: Path) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Read a native CAPID file.

    Returns:
        The samples, with ids `capid-0001` by line, and the annotation faults: one message
        for each phrase that does not occur in its context and so is left out of gold.

    Raises:
        InputFileError: broken lines, unknown types or relevances, or no line at all.
    """
    samples: list[Sample] = []
    faults: list[str] = []
    bad = BadLines(path)
    for line, record in read_records(path, bad):
        try:
            sample, missing = _sample(record, f"capid-{line:04d}")
        except RecordError as error:
            bad.add(line, str(error))
            continue
        samples.append(sample)
        faults += [f"{sample.id}: phrase {number} of 'piis' is not in it" for number in missing]
    bad.raise_any()
    if not samples:
        raise InputFileError(path, "no samples in it")
    return tuple(samples), tuple(faults)


def as_written(phrase: str, context: str) -> str:
    """A phrase as a context writes it, whose quotes and dashes may be other ones.

    A phrase that occurs exactly, or not at all, is returned unchanged.
    """
    # Every command imports this module, and few need the locator.
    from pii_bench.scorer.locate import Locator, Strictness, typewritten

    if phrase in context or not phrase.strip():
        return phrase
    spans = Locator(typewritten(context)).spans(typewritten(phrase), Strictness.PLACED)
    return context[slice(*spans[0])] if spans else phrase


def _sample(record: dict[str, Any], sample_id: str) -> tuple[Sample, list[int]]:
    from pii_bench.scorer.locate import Strictness, locator_of

    context = get(record, "context", str)
    question = None if record.get("question") is None else get(record, "question", str)
    entities: list[Entity] = []
    related: list[Related] = []
    missing: list[int] = []
    for number, (phrase, label) in enumerate(get(record, "piis", dict).items(), start=1):
        pii_type, relevant = _label(label, f"phrase {number} of 'piis'")
        text = as_written(phrase, context)
        spans = locator_of(context).spans(text, Strictness.PLACED)
        if not spans:
            missing.append(number)
            continue
        entities.append(Entity(text, pii_type, spans=spans))
        if relevant and question is not None:
            related.append(Related(SUBJECT, text))
    subjects = (Subject(SUBJECT, tuple(entities)),) if entities else ()
    return Sample(sample_id, context, question, subjects, tuple(related)), missing


def _label(label: object, owner: str) -> tuple[PiiType, bool]:
    match label:
        case {"type": str(native_type), "relevance": str(relevance)} if relevance in RELEVANCE:
            if native_type not in TYPES:
                raise RecordError(f"{owner}: {UnknownNameError('CAPID type', native_type, TYPES)}")
            return TYPES[native_type], RELEVANCE[relevance]
        case _:
            allowed = ", ".join(RELEVANCE)
            raise RecordError(f"{owner} must have a 'type' and a 'relevance' (one of {allowed})")
