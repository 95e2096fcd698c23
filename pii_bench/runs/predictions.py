"""Predictions: raw responses read, and files of answers made elsewhere."""

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
from pii_bench.models.base import Draws
from pii_bench.prompting.parsing.answers import (
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.scorer import normalise, normalise_type
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pii_bench.models.base import Completion, Response
    from pii_bench.prompting.strategies import Output


Subjects = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one sample; what a task does not ask for is None.

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


def read_response(
    task: Task,
    response: Response,
    output: Output = "text",
    labels_of: str | None = None,
    text: str | None = None,
) -> Prediction:
    """Read the raw response to a prompt of any task; pure, no response raises.

    Several draws are read one by one and put to the vote; where detection answers in labels of
    a taxonomy, they are of pieces of one text, whose entities are put together.

    Args:
        task: what was asked.
        response: what came.
        output: the form of it.
        labels_of: the taxonomy whose labels detection answers in; None for the seven types.
            Entities get our types, and those whose label has none are left out.
        text: what was asked about, in which parts of one value (given name, surname) are
            joined; None to leave them as they are.

    Raises:
        ValueError: the task has no such response: masking none, detection in the seven types
            none of several draws.
    """
    draws = response.completions if isinstance(response, Draws) else (response,)
    if task is Task.DETECTION and labels_of is not None:
        return _read_labelled(draws, output, labels_of, text)
    if isinstance(response, Draws):
        if task is not Task.QUERY_RELATED:
            raise ValueError(f"{task} has no vote: only query-related answers have one")
        return vote([read_response(task, each, output) for each in draws])
    match task:
        case Task.DETECTION:
            return _read_detection(response, output)
        case Task.QUERY_RELATED:
            return _read_related(response, output)
        case Task.REWRITE:
            from pii_bench.prompting.parsing.texts import parse_rewriting

            read = parse_rewriting(response.text, response.finish)
            return Prediction(read.status, repairs=read.repairs, rewritten=read.text)
        case Task.MASKING:
            raise ValueError("masking has no response of its own: compose it from the other two")


def vote(draws: Sequence[Prediction]) -> Prediction:
    """The majority of several answers to one query-related question.

    A text is chosen if more than half of the draws that have an answer name it, as the scorer
    compares texts; a half is not enough. Texts are in the order and the writing in which
    the draws first name them. Draws without an answer do not vote; where none has one, the
    first tells the status. The vote is as repaired as its draws are.

    Args:
        draws: at least one, in the order of their requests.
    """
    answers = [draw for draw in draws if draw.status.answered]
    if not answers:
        return Prediction(draws[0].status)
    written: dict[str, str] = {}
    named: Counter[str] = Counter()
    for answer in answers:
        texts = answer.related or ()
        for text in texts:
            written.setdefault(normalise(text), text)
        named.update({normalise(text) for text in texts})
    return Prediction(
        Status.REPAIRED if Status.REPAIRED in {each.status for each in answers} else Status.OK,
        related=tuple(text for key, text in written.items() if 2 * named[key] > len(answers)),
        repairs=tuple(dict.fromkeys(stage for each in answers for stage in each.repairs)),
    )


def compose(detection: Prediction, related: Prediction) -> Prediction:
    """The masking prediction of a detection and a query-related one.

    A part that was never answered (`infra_error`, `skipped_budget`) leaves the sample
    unscored; else a part that failed fails it; else it is as repaired as its parts are.
    """
    parts = (detection, related)
    failed = [part.status for part in parts if not part.status.answered]
    if failed:
        unscored = [status for status in failed if not status.scored]
        return Prediction((unscored or failed)[0])
    return Prediction(
        Status.REPAIRED if Status.REPAIRED in {part.status for part in parts} else Status.OK,
        subjects=detection.subjects,
        related=related.related,
        repairs=detection.repairs + related.repairs,
    )


# The parsers of free text are imported where they are used: most systems answer in JSON.


def _read_detection(response: Completion, output: Output) -> Prediction:
    if output == "text":
        from pii_bench.prompting.parsing.detection import parse_detection as parse
    else:
        parse = parse_structured_detection
    read = parse(response.text, response.finish)
    return Prediction(read.status, subjects=read.subjects, repairs=read.repairs)


def _read_labelled(
    completions: Sequence[Completion], output: Output, labels_of: str, text: str | None
) -> Prediction:
    """The entities of all pieces of a text, each once; a piece without an answer fails it."""
    from pii_bench.prompting.parsing.labelled import parse_labelled, whole_values

    labels = taxonomy(labels_of)
    parse = parse_labelled if output == "text" else parse_structured_labelled
    read = [parse(each.text, labels, each.finish) for each in completions]
    pairs: dict[tuple[str, str], None] = {}
    for each in read:
        if each.subjects is None:
            return Prediction(each.status)
        pairs.update(dict.fromkeys(pair for subject in each.subjects for pair in subject))
    whole = list(pairs) if text is None else whole_values(pairs, labels, text)
    # What is no label of the taxonomy stays, as a wrong one.
    typed = [
        (value, str(pii_type))
        for value, label in whole
        if (pii_type := labels[label].type if label in labels else label) is not None
    ]
    return Prediction(
        Status.REPAIRED if Status.REPAIRED in {each.status for each in read} else Status.OK,
        subjects=(tuple(typed),) if typed else (),
        repairs=tuple(dict.fromkeys(stage for each in read for stage in each.repairs)),
    )


def _read_related(response: Completion, output: Output) -> Prediction:
    if output == "text":
        from pii_bench.prompting.parsing.texts import parse_related as parse
    else:
        parse = parse_structured_related
    read = parse(response.text, response.finish)
    return Prediction(read.status, related=read.texts, repairs=read.repairs)


_KEYS: Final = frozenset({"id", "subjects", "related", "rewritten", "status"})
_PARTS: Final = {
    Task.DETECTION: ("subjects",),
    Task.QUERY_RELATED: ("related",),
    Task.MASKING: ("subjects", "related"),
    Task.REWRITE: ("rewritten",),
}

_ANSWERS: Final = ("subjects", "related", "rewritten")


class PredictionsFile(Mapping[str, Prediction]):
    """A predictions file of any size: each line is read when its sample is asked for.

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
        """See that it answers exactly these samples, or some of them; how many it lacks.

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
    """The types of entities that are none of the seven, and how often each comes."""
    ours = {normalise_type(each) for each in PiiType}
    return Counter(
        pii_type
        for prediction in predictions.values()
        for subject in prediction.subjects or ()
        for _, pii_type in subject
        if pii_type and normalise_type(pii_type) not in ours
    )


def predicted_tasks(predictions: Mapping[str, Prediction]) -> list[Task]:
    """The tasks that a file answers: those whose parts are in its answered lines."""
    answered = next((each for each in predictions.values() if each.status.answered), None)
    return [
        task
        for task, parts in _PARTS.items()
        if answered and all(getattr(answered, part) is not None for part in parts)
    ]


def names_types(predictions: Mapping[str, Prediction]) -> bool:
    """Whether the answers say what kind an entity is; where none does, Strict-F1 means nothing.

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
    """Predictions as the text of a file."""
    records = (_to_record(name, prediction) for name, prediction in predictions.items())
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def _prediction(record: dict[str, Any]) -> tuple[str, Prediction]:
    sample_id = get(record, "id", str)
    owner = f"prediction {sample_id!r}"
    for key in record.keys() - _KEYS:
        # A user may have keys of their own; one that is nearly ours is a slip.
        if near := difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.8):
            raise RecordError(f"{owner}: unknown key {key!r}; did you mean {near[0]!r}?")
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
    rewritten = None
    if record.get("rewritten") is not None:
        rewritten = get(record, "rewritten", str, owner)
    if subjects is None and related is None and rewritten is None:
        what = "has neither 'subjects' nor 'related' nor 'rewritten'"
        raise RecordError(f"{owner}: {what} (status {name!r})")
    return sample_id, Prediction(status, subjects=subjects, related=related, rewritten=rewritten)


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


def _to_record(sample_id: str, prediction: Prediction) -> dict[str, Any]:
    record: dict[str, Any] = {"id": sample_id}
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
