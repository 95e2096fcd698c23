"""Reader of published model outputs on CAPID's test set.

A line has `context`, `question` and `parsed`, a mapping of phrase to type and relevance, and often
the raw output of the model. Lines are matched to samples by (context, question), not by position.
Mistakes of a model become the status of its prediction; invalid JSON, a missing context or a second
answer to a sample is an error of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.foreign import CAPID_TYPES, RELEVANCE, as_written
from pii_bench.files import BadLines, RecordError, get, read_records
from pii_bench.prompting.parsing.reader import Group, Leaf, read_literal
from pii_bench.scorer.locate import typewritten
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

    Key = tuple[str, str | None]

# Names of the raw output in CAPID's scripts.
_RAW: Final = ("decoded", "generated_text", "raw_model_output")


@dataclass(frozen=True, slots=True)
class CapidOutputs:
    """Predictions for the samples of a dataset.

    Attributes:
        predictions: sample id to prediction, for every sample, in the order of the dataset.
        unanswered: ids of samples without a line; their prediction is `infra_error`.
        strangers: 1-based numbers of lines that match no sample.
    """

    predictions: Mapping[str, Prediction]
    unanswered: tuple[str, ...]
    strangers: tuple[int, ...]


def read_capid_outputs(path: Path, samples: Sequence[Sample]) -> CapidOutputs:
    """Read a file of model outputs on a CAPID dataset.

    An answer is `ok` if every phrase has a type (or null) and a relevance. It is `repaired` if a
    phrase lacks either, or if `parsed` is not an object but the raw output contains one: a missing
    type is left empty, a missing relevance means not needed. An answer without a readable phrase
    is `malformed`, or `empty` if there is no raw output.

    A predicted type that CAPID does not have is kept, upper-cased, and matches no gold type.
    Differences in quotes and dashes are ignored when lines are matched to samples and phrases to
    their context. Samples with the same context and question take their answers in file order.

    Raises:
        InputFileError: unreadable lines, or second answers to a sample.
    """
    by_key: dict[Key, list[Sample]] = {}
    for sample in samples:
        by_key.setdefault((sample.description, sample.query), []).append(sample)
    by_typewritten = _unambiguous(by_key)
    answers: dict[str, Prediction] = {}
    strangers: list[int] = []
    bad = BadLines(path)
    for line, record in read_records(path, bad):
        try:
            key = _key(record)
            asked = by_key.get(key) or by_typewritten.get(_typewritten(key), [])
            waiting = [sample for sample in asked if sample.id not in answers]
            if asked and not waiting:
                raise RecordError(f"a second answer for {asked[0].id!r}")
        except RecordError as error:
            bad.add(line, str(error))
            continue
        if waiting:
            answers[waiting[0].id] = _prediction(record, waiting[0].description)
        else:
            strangers.append(line)
    bad.raise_any()
    unanswered = tuple(sample.id for sample in samples if sample.id not in answers)
    missing = Prediction(Status.INFRA_ERROR)
    return CapidOutputs(
        {sample.id: answers.get(sample.id, missing) for sample in samples},
        unanswered,
        tuple(strangers),
    )


def _key(record: dict[str, Any]) -> Key:
    question = None if record.get("question") is None else get(record, "question", str)
    return get(record, "context", str), question


def _typewritten(key: Key) -> Key:
    context, question = key
    return typewritten(context), None if question is None else typewritten(question)


def _unambiguous(by_key: Mapping[Key, list[Sample]]) -> dict[Key, list[Sample]]:
    """Return the samples by typewritten key, for keys that only one original key maps to."""
    groups: dict[Key, list[list[Sample]]] = {}
    for key, samples in by_key.items():
        groups.setdefault(_typewritten(key), []).append(samples)
    return {key: group[0] for key, group in groups.items() if len(group) == 1}


def _prediction(record: dict[str, Any], context: str) -> Prediction:
    parsed = record.get("parsed")
    if isinstance(parsed, dict):
        answer = _answer(parsed.items(), context, Status.OK)
        if answer is not None or not parsed:
            return answer or Prediction(Status.OK, subjects=((),), related=())
    texts = [text for name in _RAW if isinstance(text := record.get(name), str)]
    for text in texts:
        if (answer := _answer(_written(text), context, Status.REPAIRED)) is not None:
            return answer
    return Prediction(Status.EMPTY if texts and not "".join(texts).strip() else Status.MALFORMED)


def _answer(
    labelled: Iterable[tuple[str, object]], context: str, status: Status
) -> Prediction | None:
    """Return the prediction for labelled phrases; None if no label can be read."""
    entities: list[tuple[str, str]] = []
    related: list[str] = []
    for phrase, label in labelled:
        pii_type, needed = _type(label), _needed(label)
        if pii_type is None or needed is None:
            status = Status.REPAIRED
        if pii_type is None and needed is None:
            continue
        text = as_written(phrase, context)
        entities.append((text, pii_type or ""))
        if needed:
            related.append(text)
    if not entities:
        return None
    return Prediction(status, subjects=(tuple(entities),), related=tuple(related))


def _type(label: object) -> str | None:
    """Return the type of a label, empty for null; None if it has no type."""
    match label:
        case {"type": str(name)}:
            return CAPID_TYPES.get(name.strip().lower(), name.strip().upper())
        case {"type": None}:
            return ""
        case _:
            return None


def _needed(label: object) -> bool | None:
    match label:
        case {"relevance": str(relevance)}:
            return RELEVANCE.get(relevance.strip().lower())
        case {"relevance": bool()}:
            return None
        case {"relevance": int(relevance)}:
            return RELEVANCE.get(str(relevance))
        case _:
            return None


def _written(text: str) -> Iterator[tuple[str, object]]:
    """Yield the phrases and labels of the first object in a raw output, even if truncated."""
    start = text.find("{")
    if start == -1:
        return
    for entry in read_literal(text, start, len(text)).group.entries:
        if entry.key is not None and isinstance(entry.value, Group):
            yield (
                entry.key.text,
                {
                    field.key.text: field.value.text
                    for field in entry.value.entries
                    if field.key is not None and isinstance(field.value, Leaf)
                },
            )
