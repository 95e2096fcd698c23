"""Predictions of systems, and files of predictions."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.files import (
    BadLines,
    RecordError,
    get,
    get_objects,
    read_places,
    read_record,
)
from pii_bench.scorer import normalise_type
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

Subjects = tuple[tuple[tuple[str, str], ...], ...]

_PARTS: Final = {
    Task.DETECTION: ("subjects",),
    Task.QUERY_RELATED: ("related",),
    Task.MASKING: ("subjects", "related"),
    Task.REWRITE: ("rewritten",),
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one sample; parts that the task does not ask for are None.

    All parts are None with a status other than `ok` and `repaired`. Subjects are (text, type)
    pairs. `cut` is True if the answer to a detection broke off, so that entities may be missing.
    """

    status: Status
    subjects: Subjects | None = None
    related: tuple[str, ...] | None = None
    rewritten: str | None = field(default=None, repr=False)
    cut: bool = False

    def answers(self, task: Task) -> bool:
        """Return True if the prediction has the parts that the task asks for."""
        return all(getattr(self, part) is not None for part in _PARTS[task])


_ANSWERS: Final = ("subjects", "related", "rewritten")
_KEYS: Final = ("id", *_ANSWERS, "status")


class PredictionsFile(Mapping[str, Prediction]):
    """A predictions file of any size, by sample id; predictions are read when they are used.

    Opening checks every line; `require` raises what is wrong. `queried` tells whether each sample
    of the dataset has a query; if it has none, only its `subjects` count.

    Raises:
        InputFileError: the file cannot be read.
    """

    def __init__(self, path: Path, queried: Mapping[str, bool]) -> None:
        self._path, self._queried = path, queried
        self._bad = BadLines(path)
        # Line number and offset by sample id.
        self._lines: dict[str, tuple[int, int]] = {}
        # By part, the first answered prediction with it and the first without it.
        self._first_with: dict[str, str] = {}
        self._first_without: dict[str, str] = {}
        for line, offset, _, record in read_places(path, self._bad):
            try:
                sample_id, prediction = _read(record)
                if sample_id in self._lines:
                    earlier, _ = self._lines[sample_id]
                    raise RecordError(f"id {sample_id!r} is already on line {earlier}")
            except RecordError as error:
                self._bad.add(line, str(error))
                continue
            self._lines[sample_id] = line, offset
            if prediction.status.answered:
                for part in _ANSWERS if queried.get(sample_id) else _PARTS[Task.DETECTION]:
                    missing = getattr(prediction, part) is None
                    first = self._first_without if missing else self._first_with
                    first.setdefault(part, sample_id)

    def __getitem__(self, sample_id: str) -> Prediction:
        _, prediction = _read(read_record(self._path, *self._lines[sample_id]))
        return prediction

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def tasks(self) -> list[Task]:
        """The tasks that the answers have the parts for; without answers, all of the dataset."""
        if self._lines and not self._first_with and not self._first_without:
            return list(Task) if any(self._queried.values()) else [Task.DETECTION]
        return [task for task, parts in _PARTS.items() if self._first_with.keys() >= set(parts)]

    def require(self, *, partial: bool = False) -> int:
        """Check the file against the dataset, and return how many of its samples it lacks.

        Raises:
            InputFileError: lines are broken, ids are unknown, repeated or (unless `partial`)
                missing, a prediction lacks a part that others have, or no line answers a task.
        """
        for sample_id, (line, _) in self._lines.items():
            if sample_id not in self._queried:
                self._bad.add(line, f"the dataset has no sample {sample_id!r}")
        self._bad.raise_any()
        missing = [name for name in self._queried if name not in self._lines]
        if missing and not partial:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            hint = "`pii-bench score --partial` scores the samples of the file"
            what = f"no prediction for sample {missing[0]!r}{others}; {hint}"
            raise InputFileError(self._path, what)
        for part in _ANSWERS:
            if part in self._first_with and part in self._first_without:
                complete, incomplete = self._first_with[part], self._first_without[part]
                what = f"prediction {incomplete!r} has no {part!r}, but {complete!r} has"
                raise InputFileError(self._path, what, line=self._lines[incomplete][0])
        if not self.tasks:
            raise InputFileError(self._path, "no line answers a task of the dataset")
        return len(missing)


def read_predictions(path: Path, samples: Iterable[Sample]) -> PredictionsFile:
    """Open a predictions file with exactly one prediction for each sample.

    Raises:
        InputFileError: as `PredictionsFile.require`.
    """
    predictions = PredictionsFile(path, {each.id: each.query is not None for each in samples})
    predictions.require()
    return predictions


def unknown_types(predictions: Mapping[str, Prediction]) -> Counter[str]:
    """Count the predicted types that are not among the seven."""
    known = {normalise_type(pii_type) for pii_type in PiiType}
    given = filter(None, _types(predictions))
    return Counter(each for each in given if normalise_type(each) not in known)


def names_types(predictions: Mapping[str, Prediction]) -> bool:
    """Return False if there are entities but none has a type, so that Strict-F1 is undefined."""
    entities = 0
    for pii_type in _types(predictions):
        if pii_type:
            return True
        entities += 1
    return entities == 0


def _types(predictions: Mapping[str, Prediction]) -> Iterator[str]:
    """Yield the type of every predicted entity, empty where none is given."""
    for prediction in predictions.values():
        for subject in prediction.subjects or ():
            for _, pii_type in subject:
                yield pii_type


def to_text(predictions: Mapping[str, Prediction]) -> str:
    """Return the text of a predictions file."""
    lines = []
    for sample_id, prediction in predictions.items():
        record = {"id": sample_id, **encode_prediction(prediction)}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)


def _read(record: dict[str, Any]) -> tuple[str, Prediction]:
    sample_id = get(record, "id", str)
    owner = f"prediction {sample_id!r}"
    for key in record.keys() - _KEYS:
        # Other keys are allowed, but a key that resembles one of the format is a typing error.
        if near := difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.8):
            raise RecordError(f"{owner}: unknown key {key!r}; did you mean {near[0]!r}?")
    return sample_id, decode_prediction(record, owner)


def decode_prediction(record: dict[str, Any], owner: str) -> Prediction:
    """Convert the JSON object of a prediction, which errors call `owner`.

    Raises:
        RecordError: a key is missing or has an invalid value.
    """
    name = get(record, "status", str, owner) if "status" in record else "ok"
    if name not in set(Status):
        raise RecordError(f"{owner}: {UnknownNameError('status', name, Status)}")
    status = Status(name)
    if not status.answered:
        return Prediction(status)
    subjects = related = rewritten = None
    if record.get("subjects") is not None:
        subjects = tuple(
            _subject(value, f"{owner}, subjects[{number}]")
            for number, value in enumerate(get(record, "subjects", list, owner))
        )
    if record.get("related") is not None:
        related = tuple(get(record, "related", list, owner))
        if not all(isinstance(text, str) for text in related):
            raise RecordError(f"{owner}: 'related' must be a list of strings")
    if record.get("rewritten") is not None:
        rewritten = get(record, "rewritten", str, owner)
    if subjects is None and related is None and rewritten is None:
        what = "has neither 'subjects' nor 'related' nor 'rewritten'"
        raise RecordError(f"{owner}: {what} (status {name!r})")
    return Prediction(status, subjects=subjects, related=related, rewritten=rewritten)


def _subject(value: object, owner: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise RecordError(f"{owner} must be a list of entities")
    pairs = []
    for entity in get_objects({"entities": value}, "entities", owner):
        text = get(entity, "text", str, owner)
        # Null if no type was given.
        untyped = "type" in entity and entity["type"] is None
        pairs.append((text, "" if untyped else get(entity, "type", str, owner)))
    return tuple(pairs)


def encode_prediction(prediction: Prediction) -> dict[str, Any]:
    """Return the JSON object of a prediction, without parts that are None and without `cut`."""
    record: dict[str, Any] = {}
    if prediction.subjects is not None:
        record["subjects"] = [
            [{"text": text, "type": pii_type or None} for text, pii_type in subject]
            for subject in prediction.subjects
        ]
    if prediction.related is not None:
        record["related"] = list(prediction.related)
    if prediction.rewritten is not None:
        record["rewritten"] = prediction.rewritten
    return {**record, "status": prediction.status}
