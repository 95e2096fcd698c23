"""What real systems answered on CAPID's test set, read into our predictions.

A line holds `context`, `question` and `parsed`, a mapping of phrase to type and
relevance. Lines join on (context, question), never by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.capid import TYPES
from pii_bench.errors import InputFileError
from pii_bench.jsonl import RecordError, get, read_records
from pii_bench.outcome import Status
from pii_bench.predictions.prediction import Prediction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class CapidOutputs:
    """Answers joined to samples.

    Attributes:
        predictions: sample id to answer, for every sample, in the dataset's order.
        unanswered: samples that no line answers; their prediction is `infra_error`.
        strangers: 1-based lines that answer no sample of the dataset.
    """

    predictions: Mapping[str, Prediction]
    unanswered: tuple[str, ...]
    strangers: tuple[int, ...]


def read_capid_outputs(path: Path, samples: Sequence[Sample]) -> CapidOutputs:
    """Read a file of answers to a CAPID dataset.

    A predicted type outside CAPID's own is a model's invention, not a fault of the file: it
    stays, upper-cased, and matches no gold type.

    Raises:
        InputFileError: a broken line, or a second answer to one sample.
    """
    ids = {(sample.description, sample.query): sample.id for sample in samples}
    answers: dict[str, Prediction] = {}
    strangers: list[int] = []
    for line, record in read_records(path):
        try:
            key = get(record, "context", str), record.get("question")
            prediction = _prediction(record)
        except RecordError as error:
            raise InputFileError(path, str(error), line=line) from None
        if key not in ids:
            strangers.append(line)
        elif ids[key] in answers:
            raise InputFileError(path, f"a second answer for {ids[key]!r}", line=line)
        else:
            answers[ids[key]] = prediction
    unanswered = tuple(sample.id for sample in samples if sample.id not in answers)
    missing = Prediction(Status.INFRA_ERROR)
    return CapidOutputs(
        {sample.id: answers.get(sample.id, missing) for sample in samples},
        unanswered,
        tuple(strangers),
    )


def _prediction(record: dict[str, Any]) -> Prediction:
    if record.get("parsed") is None:
        return Prediction(Status.MALFORMED)
    entities: list[tuple[str, str]] = []
    related: list[str] = []
    for number, (phrase, label) in enumerate(get(record, "parsed", dict).items(), start=1):
        match label:
            case {"type": str(name), "relevance": "0" | "1" as relevance}:
                entities.append((phrase, TYPES.get(name, name.upper())))
                if relevance == "1":
                    related.append(phrase)
            case _:
                raise RecordError(f"phrase {number} of 'parsed' lacks a type or a relevance")
    return Prediction(Status.OK, subjects=(tuple(entities),), related=tuple(related))
