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
    write_whole,
)
from pii_bench.scorer import normalise_type
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


Subjects = tuple[tuple[tuple[str, str], ...], ...]

_PARTS: Final = {
    Task.DETECTION: ("subjects",),
    Task.QUERY_RELATED: ("related",),
    Task.MASKING: ("subjects", "related"),
    Task.REWRITE: ("rewritten",),
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one sample; parts of other tasks are None.

    Attributes:
        status: `subjects` and `related` are None unless it is `ok` or `repaired`.
        subjects: per predicted subject its (text, type) pairs.
        related: the texts predicted for the related entities.
        repairs: stages of the parser that changed the response, in order.
        rewritten: the description written anew.
    """

    status: Status
    subjects: Subjects | None = None
    related: tuple[str, ...] | None = None
    repairs: tuple[str, ...] = ()
    rewritten: str | None = field(default=None, repr=False)

    def answers(self, task: Task) -> bool:
        """Return True if it has the part that the task needs."""
        return all(getattr(self, part) is not None for part in _PARTS[task])


_KEYS: Final = frozenset({"id", "subjects", "related", "rewritten", "status"})

_ANSWERS: Final = ("subjects", "related", "rewritten")


class PredictionsFile(Mapping[str, Prediction]):
    """A predictions file of any size; lines are read lazily.

    Every line is looked at once on opening; what is wrong with one is raised by `require`.

    Args:
        path: of the file.

    Raises:
        InputFileError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._bad = path, BadLines(path)
        self._lines: dict[str, tuple[int, int]] = {}
        self._answered = 0
        # How many answered lines have a part, and the first that has it or lacks it.
        self._having: Counter[str] = Counter()
        self._first: dict[tuple[str, bool], str] = {}
        for line, offset, record in read_places(path, self._bad):
            try:
                sample_id, prediction = _prediction(record)
                if sample_id in self._lines:
                    where = f"is already on line {self._lines[sample_id][0]}"
                    raise RecordError(f"id {sample_id!r} {where}")
            except RecordError as error:
                self._bad.add(line, str(error))
                continue
            self._lines[sample_id] = line, offset
            if prediction.status.answered:
                self._note(sample_id, prediction)

    def __getitem__(self, sample_id: str) -> Prediction:
        _, prediction = _prediction(read_record(self._path, *self._lines[sample_id]))
        return prediction

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def require(self, sample_ids: Mapping[str, object], *, partial: bool = False) -> int:
        """Check that it answers only these samples, and return the number of missing ones.

        Raises:
            InputFileError: broken lines; ids that are unknown or come twice, with their lines;
                ids without a line, unless it may be partial; lines without a part that others
                have.
        """
        for sample_id, (line, _) in self._lines.items():
            if sample_id not in sample_ids:
                self._bad.add(line, f"id {sample_id!r} is no sample of the dataset")
        self._bad.raise_any()
        missing = [name for name in sample_ids if name not in self._lines]
        if missing and not partial:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InputFileError(self._path, f"no prediction for sample {missing[0]!r}{others}")
        for part in _ANSWERS:
            if 0 < self._having[part] < self._answered:
                having, lacking = self._first[part, True], self._first[part, False]
                what = f"prediction {lacking!r} has no {part!r}, though {having!r} has"
                raise InputFileError(self._path, what, line=self._lines[lacking][0])
        return len(missing)

    def _note(self, sample_id: str, prediction: Prediction) -> None:
        self._answered += 1
        for part in _ANSWERS:
            has = getattr(prediction, part) is not None
            self._having[part] += has
            self._first.setdefault((part, has), sample_id)


def read_predictions(path: Path, sample_ids: Sequence[str]) -> dict[str, Prediction]:
    """Read a predictions file that answers exactly the given samples.

    Raises:
        InputFileError: broken lines; ids that are unknown or come twice, with their lines;
            ids without a line.
    """
    predictions = PredictionsFile(path)
    predictions.require(dict.fromkeys(sample_ids))
    return dict(predictions)


def unknown_types(predictions: Mapping[str, Prediction]) -> Counter[str]:
    """Return the types of entities that are not among the seven, with their counts."""
    ours = {normalise_type(each) for each in PiiType}
    return Counter(
        pii_type
        for prediction in predictions.values()
        for subject in prediction.subjects or ()
        for _, pii_type in subject
        if pii_type and normalise_type(pii_type) not in ours
    )


def predicted_tasks(predictions: Mapping[str, Prediction]) -> list[Task]:
    """Return the tasks of a file, judged by the parts of its first answered line."""
    answered = next((each for each in predictions.values() if each.status.answered), None)
    return [task for task in _PARTS if answered and answered.answers(task)]


def names_types(predictions: Mapping[str, Prediction]) -> bool:
    """Return True if an answer names types of entities; without any, Strict-F1 has no meaning.

    Answers without any entity leave it open, which counts as yes.
    """
    named = (
        bool(pii_type)
        for prediction in predictions.values()
        for subject in prediction.subjects or ()
        for _, pii_type in subject
    )
    first = next(named, True)
    return first or any(named)


def write_predictions(path: Path, predictions: Mapping[str, Prediction]) -> None:
    """Write a predictions file.

    Raises:
        ResultsError: it cannot be written.
    """
    write_whole(path, to_text(predictions))


def to_text(predictions: Mapping[str, Prediction]) -> str:
    """Return predictions as the text of a file."""
    records = ({"id": name, **encode_prediction(each)} for name, each in predictions.items())
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def _prediction(record: dict[str, Any]) -> tuple[str, Prediction]:
    sample_id = get(record, "id", str)
    owner = f"prediction {sample_id!r}"
    for key in record.keys() - _KEYS:
        # Other keys are allowed; one that resembles a key of the format is a typing error.
        if near := difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.8):
            raise RecordError(f"{owner}: unknown key {key!r}; did you mean {near[0]!r}?")
    return sample_id, decode_prediction(record, owner)


def decode_prediction(record: dict[str, Any], owner: str) -> Prediction:
    """Convert the JSON object of a prediction.

    Raises:
        RecordError: naming the owner and the key at fault.
    """
    name = get(record, "status", str, owner) if "status" in record else "ok"
    if name not in set(Status):
        raise RecordError(f"{owner}: {UnknownNameError('status', name, Status)}")
    status = Status(name)
    if not status.answered:
        return Prediction(status)
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
    rewritten = None
    if record.get("rewritten") is not None:
        rewritten = get(record, "rewritten", str, owner)
    if subjects is None and related is None and rewritten is None:
        what = "has neither 'subjects' nor 'related' nor 'rewritten'"
        raise RecordError(f"{owner}: {what} (status {name!r})")
    return Prediction(status, subjects=subjects, related=related, rewritten=rewritten)


def _subject(value: object, owner: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, list):
        raise RecordError(f"{owner} must be a list of entities")
    entities = get_objects({"entities": value}, "entities", owner)
    return tuple((get(entity, "text", str, owner), _type(entity, owner)) for entity in entities)


def _type(entity: dict[str, Any], owner: str) -> str:
    """Return the type of an entity; empty for null (no type given)."""
    if "type" in entity and entity["type"] is None:
        return ""
    return get(entity, "type", str, owner)


def encode_prediction(prediction: Prediction) -> dict[str, Any]:
    """Return the JSON object of a prediction, without missing parts and without repairs."""
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
