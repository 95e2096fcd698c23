"""Rows that come from no run: the paper's figures, submissions, people and blind readers.

A submission is a predictions file that was made elsewhere,
`<results>/submitted/<name>/<dataset>.jsonl`, with a `<dataset>.json` that describes it. It appears
in every table like a run. A line of `<results>/human/*.jsonl` is the answer of one person to one
sample, with the gold; the export of the web application writes these files.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pii_bench
from pii_bench.datasets.catalog import DATASETS, read_card
from pii_bench.datasets.readings import READINGS, load_readings
from pii_bench.datasets.sample import applicable
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import (
    DATA,
    BadLines,
    RecordError,
    encode,
    get,
    read_object,
    read_records,
    sha256_of,
    write_json,
    write_whole,
)
from pii_bench.prompting.strategies import DETECTION, STRATEGIES
from pii_bench.ranking.rows import METRICS, TESTED, Row, Source
from pii_bench.ranking.scores import Scores
from pii_bench.runs.records import DatasetRef, Manifest, Signature
from pii_bench.runs.store import file_name
from pii_bench.scorer import macro, score_detection, score_query_related
from pii_bench.systems.base import SystemCard
from pii_bench.systems.catalog import is_system
from pii_bench.systems.predictions import Prediction, read_predictions, to_text
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.scorer import PRF
    from pii_bench.scorer.detection import RawSubjects


PUBLISHED: Final = DATA / "published" / "paper_results.csv"

TASKS: Final = {
    "detection": Task.DETECTION,
    "query_related": Task.QUERY_RELATED,
    "masking": Task.MASKING,
}
"""The tasks by their names in the file of the published figures."""

Condition: TypeAlias = tuple[str, str, str, str, str]
"""Task, dataset, model, strategy and table, as the file of the published figures names them."""


def read_published(
    path: Path, tasks: Collection[str], metrics: Collection[str]
) -> dict[Condition, list[tuple[str, float, str]]]:
    """Return the (metric, value, note) triples of each condition of some tasks, as in the file.

    Raises:
        InputFileError: the file is absent, or a figure is not a number between 0 and 1 of one of
            the metrics.
    """
    figures: dict[Condition, list[tuple[str, float, str]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for record in csv.DictReader(file):
                if (task := record["task"]) not in tasks:
                    continue
                metric, value = record["metric"], float(record["value"])
                if metric not in metrics or not 0 <= value <= 1:
                    raise ValueError(f"{metric} = {value}")
                key = task, record["dataset"], record["model"], record["strategy"], record["table"]
                figures.setdefault(key, []).append((metric, value, record["note"]))
    except (OSError, KeyError, ValueError) as error:
        raise InputFileError(path, f"no table of published figures: {error}") from error
    return figures


def published_rows(path: Path = PUBLISHED) -> list[Row]:
    """Return the published figures of the three tasks, a row per table, model and strategy.

    Detection has the same prompt for all strategies; its rows have the prompt's name. The figures
    on privacy and utility belong to another task and are skipped. Raises as `read_published`.
    """
    rows = []
    for condition, figures in read_published(path, TASKS, METRICS).items():
        name, dataset, model, written, table = condition
        task = TASKS[name]
        strategy = DETECTION.name if task is Task.DETECTION else written
        notes = sorted(f"{metric}: {note}" for metric, _, note in figures if note)
        rows.append(
            Row(
                source=Source.PUBLISHED,
                model=model,
                strategy=strategy,
                dataset=dataset,
                task=task,
                oracle=strategy in STRATEGIES and STRATEGIES[strategy].oracle,
                metrics={metric: value for metric, value, _ in figures},
                note="; ".join([f"paper, table {table}", *notes]),
            )
        )
    return rows


def reading_rows(datasets: Iterable[str], folder: Path = READINGS) -> list[Row]:
    """Return a row for each of our datasets that was read: F1 of the readers against gold.

    Only first readings count, against the gold of the version that was read. A sample has the mean
    over its readings.

    Raises:
        InputFileError: a file of readings is broken.
    """
    rows = []
    for dataset in sorted(DATASETS.keys() & set(datasets)):
        scores: dict[str, list[Mapping[str, PRF]]] = defaultdict(list)
        for reading in load_readings(dataset, folder):
            if reading.round == 1:
                score = score_query_related(reading.needed, reading.gold)
                scores[reading.id].append({"f1": score.exact})
        if not scores:
            continue
        sha256 = sha256_of(folder / f"{dataset}.jsonl")
        count = sum(map(len, scores.values()))
        row = Row(
            source=Source.READING,
            model="readers",
            strategy="blind",
            dataset=dataset,
            task=Task.QUERY_RELATED,
            oracle=False,
            metrics={},
            gold=len(scores),
            signature=str(Signature(f"readings/{dataset}", sha256, Task.QUERY_RELATED)),
            note=f"a large language model, blind to gold: {count} first readings",
        )
        rows.append(_with_figures(row, scores, {name: name for name in scores}))
    return rows


def _with_figures(
    row: Row, scores: Mapping[str, Sequence[Mapping[str, PRF]]], clusters: Mapping[str, str]
) -> Row:
    """Fill in the figures of answers of people or readers; a sample has the mean of its answers.

    `scores` is sample id to the scores of each answer by column.
    """
    answers = [score for own in scores.values() for score in own]
    metrics = {name: fmean(score[name].f1 for score in answers) for name in answers[0]}
    if mean := macro([score[row.headline_name] for score in answers]):
        metrics |= {"precision": mean.precision, "recall": mean.recall}
    ids, named = tuple(scores), tuple(clusters[sample_id] for sample_id in scores)
    by_sample = {}
    for name in TESTED[row.task]:
        f1 = tuple(fmean(score[name].f1 for score in own) for own in scores.values())
        by_sample[name] = Scores(ids, named, f1)
    return replace(row, metrics=metrics, scored=len(scores), by_sample=by_sample)


SUBMITTED: Final = "submitted"
_FORMAT: Final = "pii-bench-submission-1"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class Submission:
    """The description of a predictions file, stored next to it."""

    name: str
    dataset: DatasetRef
    version: str = pii_bench.__version__
    format: str = _FORMAT


def check_name(name: str) -> None:
    """Check the name of a submission.

    Raises:
        PiiBenchError: it does not fit a folder, or is that of a system (`is_system`).
    """
    if not _NAME.fullmatch(name):
        allowed = "up to 80 of A-Z, a-z, 0-9, '.', '_' and '-', a letter or digit first"
        raise PiiBenchError(f"a submission came with the name {name!r}; allowed: {allowed}")
    if is_system(name):
        raise PiiBenchError(f"{name!r} is a system of the suite: give predictions another name")


def keep_submission(
    results: Path,
    name: str,
    dataset: Dataset,
    predictions: Mapping[str, Prediction],
    *,
    force: bool = False,
) -> Path:
    """Store predictions as a submission, and return the predictions file.

    Raises:
        PiiBenchError: the name is not allowed (`check_name`), or has other predictions already
            and `force` is not set.
        ResultsError: the files cannot be written.
    """
    check_name(name)
    path = results / SUBMITTED / name / f"{file_name(dataset.name)}.jsonl"
    text = to_text(predictions)
    if path.exists() and path.read_text(encoding="utf-8") != text and not force:
        raise PiiBenchError(f"{path}: other predictions are kept there; --force replaces them")
    write_whole(path, text)
    write_json(path.with_suffix(".json"), Submission(name, DatasetRef.of(dataset)))
    return path


def read_submission(path: Path) -> Submission:
    """Read the description of a submission.

    Raises:
        InputFileError: the file is in another format, or its folder has another name.
    """
    submission = read_object(path, "submission", _submission)
    if submission.name != path.parent.name:
        raise InputFileError(path, f"'name' must be that of its folder, {path.parent.name!r}")
    return submission


def _submission(record: dict[str, Any]) -> Submission:
    if get(record, "format", str) != _FORMAT:
        raise RecordError(f"'format' must be {_FORMAT!r}")
    return Submission(
        name=get(record, "name", str),
        dataset=DatasetRef.from_record(get(record, "dataset", dict)),
        version=get(record, "version", str),
    )


def answers_of(
    path: Path, submission: Submission, dataset: Dataset
) -> list[tuple[Manifest, dict[str, Prediction]]]:
    """Return the manifest and predictions of each task that a submission answers.

    Detection comes first; masking is composed later.

    Raises:
        InputFileError: the predictions cannot be read or do not fit the dataset.
    """
    file = path.with_suffix(".jsonl")
    stored = read_predictions(file, dataset.samples)
    predictions = dict(stored)
    settings = {"predictions": sha256_of(file)[:12]}
    answers = []
    for task in stored.tasks:
        if task is Task.MASKING:
            continue
        card = SystemCard(
            model=submission.name,
            prompt="",
            prompt_sha256="",
            task=task,
            oracle=False,
            settings=settings,
        )
        of_task = {}
        for sample in applicable(task, dataset.samples):
            prediction = predictions[sample.id]
            of_task[sample.id] = Prediction(
                prediction.status,
                subjects=prediction.subjects if task is Task.DETECTION else None,
                related=prediction.related if task is Task.QUERY_RELATED else None,
                rewritten=prediction.rewritten if task is Task.REWRITE else None,
            )
        answers.append((Manifest(card, submission.dataset, submission.version), of_task))
    return answers


HUMAN: Final = "human"


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """The answer of one person to one sample of one task.

    Attributes:
        cluster: id of the first sample with the same description.
        annotator: a number, the same in all projects of a database, not a name.
        answer: for detection, (text, type) pairs of each subject; for query-related, texts.
        gold: in the same form.
        suggestions: the system whose suggestions the person saw, if any.
    """

    dataset: str
    task: Task
    id: str
    cluster: str
    annotator: int
    answer: Sequence[Any]
    gold: Sequence[Any]
    suggestions: str | None = None


def to_lines(answers: Iterable[HumanAnswer]) -> str:
    """Return the content of a file of answers."""
    return "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)


def read_human(path: Path) -> list[HumanAnswer]:
    """Read a file of answers.

    Raises:
        InputFileError: the file cannot be read, or a line has a wrong format.
    """
    bad = BadLines(path)
    answers = []
    for line, record in read_records(path, bad):
        try:
            answers.append(_answer(record))
        except RecordError as error:
            bad.add(line, str(error))
    bad.raise_any()
    return answers


def human_rows(results: Path) -> tuple[list[Row], list[str]]:
    """Return a row for each dataset and task that people answered, and the unreadable files.

    A sample has the mean over the people who answered it.
    """
    groups: dict[tuple[str, Task], list[HumanAnswer]] = defaultdict(list)
    broken: list[str] = []
    for path in sorted((results / HUMAN).glob("*.jsonl")):
        try:
            answers = read_human(path)
        except InputFileError as error:
            broken.append(str(error))
            continue
        for answer in answers:
            groups[answer.dataset, answer.task].append(answer)
    rows = [_human_row(dataset, task, own) for (dataset, task), own in sorted(groups.items())]
    return rows, broken


def _answer(record: dict[str, Any]) -> HumanAnswer:
    task = get(record, "task", str)
    if task not in {Task.DETECTION, Task.QUERY_RELATED}:
        raise RecordError("'task' must be detection or query-related")
    of_task = _subjects if task == Task.DETECTION else _texts
    suggestions = record.get("suggestions")
    return HumanAnswer(
        dataset=get(record, "dataset", str),
        task=Task(task),
        id=get(record, "id", str),
        cluster=get(record, "cluster", str),
        annotator=get(record, "annotator", int),
        answer=of_task(get(record, "answer", list), "answer"),
        gold=of_task(get(record, "gold", list), "gold"),
        suggestions=None if suggestions is None else get(record, "suggestions", str),
    )


def _texts(values: list[Any], key: str) -> Sequence[str]:
    if not all(isinstance(value, str) for value in values):
        raise RecordError(f"{key!r} must list texts")
    return tuple(values)


def _subjects(values: list[Any], key: str) -> RawSubjects:
    subjects = []
    for value in values:
        if not isinstance(value, list):
            raise RecordError(f"{key!r} must list subjects")
        pairs = []
        for pair in value:
            match pair:
                case [str(text), str(pii_type)]:
                    pairs.append((text, pii_type))
                case _:
                    raise RecordError(f"{key!r} must list pairs of text and type")
        subjects.append(tuple(pairs))
    return subjects


def _human_row(dataset: str, task: Task, answers: Sequence[HumanAnswer]) -> Row:
    sha256 = hashlib.sha256(encode(to_lines(answers))).hexdigest()
    scores: dict[str, list[Mapping[str, PRF]]] = defaultdict(list)
    clusters: dict[str, str] = {}
    for answer in answers:
        scores[answer.id].append(_scores(answer))
        clusters.setdefault(answer.id, answer.cluster)
    row = Row(
        source=Source.HUMAN,
        model="people",
        strategy="each alone",
        dataset=dataset,
        task=task,
        oracle=False,
        metrics={},
        gold=_size(dataset),
        signature=str(Signature(f"{HUMAN}/{dataset}", sha256, task)),
        note=_note(answers, len(scores)),
    )
    return _with_figures(row, scores, clusters)


def _size(dataset: str) -> int | None:
    """Return the number of samples of one of our datasets, which all have a query; else None."""
    entry = DATASETS.get(dataset)
    return None if entry is None else read_card(entry.card_path).pins[dataset].samples


def _scores(answer: HumanAnswer) -> Mapping[str, PRF]:
    """Return the scores of an answer by column."""
    if answer.task is Task.DETECTION:
        detection = score_detection(answer.answer, answer.gold)
        return {
            "strict_f1": detection.strict,
            "ent_f1": detection.entity,
            "rouge_l_f": detection.rouge_l,
        }
    related = score_query_related(answer.answer, answer.gold)
    return {"f1": related.exact, "rouge_l_f": related.rouge_l}


def _note(answers: Sequence[HumanAnswer], samples: int) -> str:
    people = len({answer.annotator for answer in answers})
    systems = sorted({answer.suggestions for answer in answers if answer.suggestions is not None})
    suggested = f", who saw suggestions of {', '.join(systems)}" if systems else ""
    who = "1 person" if people == 1 else f"{people} people"
    return f"{who}{suggested}: {len(answers):,} answers, {samples:,} samples"
