"""Predictions made anywhere, in the file format of `formats.md`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import write_whole
from pii_bench.jsonl import BadLines, RecordError, get, get_objects, read_records
from pii_bench.prompting.outcome import Status
from pii_bench.runs.predictions.prediction import Prediction
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PARTS: Final = {
    Task.DETECTION: ("subjects",),
    Task.QUERY_RELATED: ("related",),
    Task.MASKING: ("subjects", "related"),
}


def read_predictions(path: Path, sample_ids: Sequence[str]) -> dict[str, Prediction]:
    """Read a predictions file that answers exactly the given samples.

    Raises:
        InputFileError: broken lines; ids that are unknown or come twice, with their lines;
            ids without a line.
    """
    predictions: dict[str, Prediction] = {}
    first_line: dict[str, int] = {}
    known = set(sample_ids)
    bad = BadLines(path)
    for line, record in read_records(path, bad):
        try:
            sample_id, prediction = _prediction(record)
            if sample_id not in known:
                raise RecordError(f"id {sample_id!r} is no sample of the dataset")
            if sample_id in first_line:
                raise RecordError(
                    f"id {sample_id!r} stands on line {first_line[sample_id]} already"
                )
        except RecordError as error:
            bad.add(line, str(error))
            continue
        first_line[sample_id] = line
        predictions[sample_id] = prediction
    bad.raise_any()
    if missing := [name for name in sample_ids if name not in predictions]:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputFileError(path, f"no prediction for sample {missing[0]!r}{others}")
    _refuse_gaps(path, predictions, first_line)
    return predictions


def predicted_tasks(predictions: Mapping[str, Prediction]) -> list[Task]:
    """The tasks that a file answers: those whose parts stand in its answered lines."""
    answered = [p for p in predictions.values() if p.status.answered]
    return [
        task
        for task, parts in _PARTS.items()
        if answered and all(getattr(answered[0], part) is not None for part in parts)
    ]


def names_types(predictions: Mapping[str, Prediction]) -> bool:
    """Whether the answers say what kind an entity is; where none does, Strict-F1 means nothing.

    Answers without any entity leave it open, which counts as yes.
    """
    types = [
        pii_type
        for prediction in predictions.values()
        for subject in prediction.subjects or ()
        for _, pii_type in subject
    ]
    return not types or any(types)


def write_predictions(path: Path, predictions: Mapping[str, Prediction]) -> None:
    """Write a predictions file.

    Raises:
        ResultsError: it cannot be written.
    """
    write_whole(path, to_text(predictions))


def to_text(predictions: Mapping[str, Prediction]) -> str:
    """Predictions as the text of a file."""
    records = (_to_record(name, prediction) for name, prediction in predictions.items())
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def _prediction(record: dict[str, Any]) -> tuple[str, Prediction]:
    sample_id = get(record, "id", str)
    owner = f"prediction {sample_id!r}"
    name = get(record, "status", str, owner) if "status" in record else "ok"
    if name not in set(Status):
        raise RecordError(f"{owner}: {UnknownNameError('status', name, Status)}")
    status = Status(name)
    if not status.answered:
        return sample_id, Prediction(status)
    subjects = related = None
    if record.get("subjects") is not None:
        subjects = tuple(
            _subject(value, f"{owner}, subjects[{number}]")
            for number, value in enumerate(get(record, "subjects", list, owner))
        )
    if record.get("related") is not None:
        related = tuple(get(record, "related", list, owner))
        if not all(isinstance(text, str) for text in related):
            raise RecordError(f"{owner}: 'related' must be a list of strings")
    if subjects is None and related is None:
        raise RecordError(f"{owner}: has neither 'subjects' nor 'related' (status {name!r})")
    return sample_id, Prediction(status, subjects=subjects, related=related)


def _subject(value: object, owner: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise RecordError(f"{owner} must be a list of entities")
    entities = get_objects({"entities": value}, "entities", owner)
    return tuple((get(entity, "text", str, owner), _type(entity, owner)) for entity in entities)


def _type(entity: dict[str, Any], owner: str) -> str:
    """The type of an entity; empty where it is null: the system names none."""
    if "type" in entity and entity["type"] is None:
        return ""
    return get(entity, "type", str, owner)


def _refuse_gaps(
    path: Path, predictions: Mapping[str, Prediction], lines: Mapping[str, int]
) -> None:
    answered = {name: p for name, p in predictions.items() if p.status.answered}
    for part in ("subjects", "related"):
        having = [name for name, p in answered.items() if getattr(p, part) is not None]
        if having and len(having) < len(answered):
            name = next(name for name in answered if name not in set(having))
            what = f"prediction {name!r} has no {part!r}, though {having[0]!r} has"
            raise InputFileError(path, what, line=lines[name])


def _to_record(sample_id: str, prediction: Prediction) -> dict[str, Any]:
    record: dict[str, Any] = {"id": sample_id}
    if prediction.subjects is not None:
        record["subjects"] = [
            [{"text": text, "type": pii_type or None} for text, pii_type in subject]
            for subject in prediction.subjects
        ]
    if prediction.related is not None:
        record["related"] = list(prediction.related)
    return {**record, "status": prediction.status}
