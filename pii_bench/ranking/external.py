"""Results that no run of ours made: the paper's figures, submissions, people and blind readers.

`<results>/submitted/<name>/<dataset>.jsonl` is a predictions file that was made elsewhere, and
`<dataset>.json` next to it says whose it is and on what. It enters every table like a run. Each
line of `<results>/human/*.jsonl` is the answer of one person to one sample, with the gold that it
is scored against; the web application's export writes such a file.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import pii_bench
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.readings import READINGS, load_readings
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import (
    DATA,
    BadLines,
    RecordError,
    get,
    read_object,
    read_records,
    sha256_of,
    write_json,
    write_whole,
)
from pii_bench.models.catalog import MODELS
from pii_bench.prompting.strategies import DETECTION, STRATEGIES
from pii_bench.ranking.rows import METRICS, Row, Source
from pii_bench.ranking.scores import Scores
from pii_bench.runs.records import DatasetRef, Manifest
from pii_bench.scorer import macro, score_detection, score_query_related
from pii_bench.systems.base import GOLD, SystemCard
from pii_bench.systems.detectors import DETECTORS
from pii_bench.systems.predictions import Prediction, predicted_tasks, read_predictions, to_text
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.scorer import PRF
    from pii_bench.scorer.detection import RawSubjects


PUBLISHED: Final = DATA / "published" / "paper_results.csv"

_TASKS: Final = {
    "detection": Task.DETECTION,
    "query_related": Task.QUERY_RELATED,
    "masking": Task.MASKING,
}

READERS: Final = "readers"
_BLIND: Final = "blind"


def published_rows(path: Path = PUBLISHED) -> list[Row]:
    """Rows of every published figure of the three tasks, one per table, model and strategy.

    Detection has one prompt for all strategies, so its rows carry its name. The figures on
    privacy and utility are of another task and stay in the file.

    Raises:
        InputFileError: absent, or a figure that is no number between 0 and 1.
    """
    metrics: dict[tuple[Task, str, str, str, str], dict[str, float]] = {}
    notes: dict[tuple[Task, str, str, str, str], set[str]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            for record in reader:
                if record["task"] not in _TASKS:
                    continue
                task = _TASKS[record["task"]]
                strategy = DETECTION.name if task is Task.DETECTION else record["strategy"]
                key = (task, record["dataset"], record["model"], strategy, record["table"])
                metric, value = record["metric"], float(record["value"])
                if metric not in METRICS or not 0 <= value <= 1:
                    raise ValueError(f"{metric} = {value}")
                metrics.setdefault(key, {})[metric] = value
                if record["note"]:
                    notes.setdefault(key, set()).add(f"{metric}: {record['note']}")
    except (OSError, KeyError, ValueError) as error:
        raise InputFileError(path, f"no table of published figures: {error}") from error
    return [
        Row(
            source=Source.PUBLISHED,
            model=model,
            strategy=strategy,
            dataset=dataset,
            task=task,
            oracle=strategy in STRATEGIES and STRATEGIES[strategy].oracle,
            metrics=values,
            note="; ".join([f"paper, table {table}", *sorted(notes.get(key, ()))]),
        )
        for key, values in metrics.items()
        for task, dataset, model, strategy, table in (key,)
    ]


def reading_rows(datasets: Iterable[str], folder: Path = READINGS) -> list[Row]:
    """A row for each dataset of ours that was read: F1 of readers against gold, on first readings.

    The gold is that of the version that was read, before anything was mended. A sample has the
    mean over its readings.

    Raises:
        InputFileError: a file of readings is broken.
    """
    rows = []
    for dataset in sorted(DATASETS.keys() & set(datasets)):
        by_sample: dict[str, list[PRF]] = {}
        for reading in load_readings(dataset, folder):
            if reading.round == 1:
                score = score_query_related(reading.needed, reading.gold).exact
                by_sample.setdefault(reading.id, []).append(score)
        if by_sample:
            rows.append(_reading_row(dataset, by_sample))
    return rows


def _reading_row(dataset: str, by_sample: dict[str, list[PRF]]) -> Row:
    mean = macro([score for scores in by_sample.values() for score in scores])
    ids = tuple(by_sample)
    f1 = Scores(ids, ids, tuple(fmean(s.f1 for s in own) for own in by_sample.values()))
    count = sum(map(len, by_sample.values()))
    return Row(
        source=Source.READING,
        model=READERS,
        strategy=_BLIND,
        dataset=dataset,
        task=Task.QUERY_RELATED,
        oracle=False,
        metrics=(
            {"f1": mean.f1, "precision": mean.precision, "recall": mean.recall} if mean else {}
        ),
        scored=len(ids),
        gold=len(ids),
        note=f"a large language model, blind to gold: {count} first readings",
        by_sample={"f1": f1},
    )


SUBMITTED: Final = "submitted"
FORMAT: Final = "pii-bench-submission-1"
"""What the file next to the predictions says of itself."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@+-]+")


@dataclass(frozen=True, slots=True)
class Submission:
    """What predictions are, as the file next to them says.

    Attributes:
        name: of their maker.
        dataset: what they are about.
        version: of the suite that kept them.
    """

    name: str
    dataset: DatasetRef
    version: str = pii_bench.__version__
    format: str = FORMAT


def check_name(name: str) -> None:
    """Refuse a name that a submission cannot have.

    Raises:
        PiiBenchError: it is no name for a folder, or that of a system of the suite.
    """
    if not _NAME.fullmatch(name):
        allowed = "up to 80 of A-Z, a-z, 0-9, '.', '_' and '-', a letter or digit first"
        raise PiiBenchError(f"a submission came with the name {name!r}; allowed: {allowed}")
    if name in {GOLD, *DETECTORS, *MODELS}:
        raise PiiBenchError(f"{name!r} is a system of the suite: give predictions another name")


def keep_submission(
    results: Path,
    name: str,
    dataset: Dataset,
    predictions: Mapping[str, Prediction],
    *,
    force: bool = False,
) -> Path:
    """Keep predictions under a name.

    Returns:
        The file of the predictions.

    Raises:
        PiiBenchError: see `check_name`; or others are kept under it already, and `force` is not
            set.
        ResultsError: they cannot be written.
    """
    check_name(name)
    path = results / SUBMITTED / name / f"{_UNSAFE.sub('--', dataset.name)}.jsonl"
    text = to_text(predictions)
    if path.exists() and path.read_text(encoding="utf-8") != text and not force:
        raise PiiBenchError(f"{path}: other predictions are kept there; --force replaces them")
    write_whole(path, text)
    write_json(path.with_suffix(".json"), Submission(name, DatasetRef.of(dataset)))
    return path


def submissions(results: Path) -> Iterator[Path]:
    """The files that say what each kept file of predictions is."""
    return iter(sorted((results / SUBMITTED).glob("*/*.json")))


def read_submission(path: Path) -> Submission:
    """Read what predictions are.

    Raises:
        InputFileError: it is not of its format, or lies in a folder of another name.
    """
    submission = read_object(path, "submission", _submission)
    if submission.name != path.parent.name:
        raise InputFileError(path, f"'name' must be that of its folder, {path.parent.name!r}")
    return submission


def answers_of(
    path: Path, submission: Submission, dataset: Dataset
) -> list[tuple[Manifest, Mapping[str, Prediction]]]:
    """What a submission answers, as runs would have it: detection first.

    Args:
        path: the file that says what it is.
        submission: what that says.
        dataset: gold, as it says.

    Raises:
        InputFileError: the predictions cannot be read or do not fit the dataset.
    """
    file = path.with_suffix(".jsonl")
    predictions = read_predictions(file, [sample.id for sample in dataset.samples])
    settings = {"predictions": sha256_of(file)[:12]}
    tasks = [task for task in predicted_tasks(predictions) if task is not Task.MASKING]
    return [
        (
            Manifest(
                SystemCard(
                    model=submission.name,
                    prompt="",
                    prompt_sha256="",
                    task=task,
                    oracle=False,
                    settings=settings,
                ),
                submission.dataset,
                submission.version,
            ),
            {
                sample_id: Prediction(
                    each.status,
                    subjects=each.subjects if task is Task.DETECTION else None,
                    related=each.related if task is Task.QUERY_RELATED else None,
                    rewritten=each.rewritten if task is Task.REWRITE else None,
                )
                for sample_id, each in predictions.items()
            },
        )
        for task in tasks
    ]


def _submission(record: dict[str, Any]) -> Submission:
    if get(record, "format", str) != FORMAT:
        raise RecordError(f"'format' must be {FORMAT!r}")
    dataset = get(record, "dataset", dict)
    return Submission(
        name=get(record, "name", str),
        dataset=DatasetRef(
            name=get(dataset, "name", str, "dataset"),
            source=get(dataset, "source", str, "dataset"),
            sha256=get(dataset, "sha256", str, "dataset"),
            samples=get(dataset, "samples", int, "dataset"),
        ),
        version=get(record, "version", str),
    )


HUMAN: Final = "human"
PEOPLE: Final = "people"
_EACH_ALONE: Final = "each alone"


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """What one person said of one sample under one task.

    Attributes:
        dataset: its name in the leaderboard.
        id: of the sample.
        cluster: id of the first sample with the same description.
        annotator: a number within the dataset, no name.
        answer: of detection, (text, type) pairs of each subject; of query-related, texts.
        gold: likewise.
        suggestions: the system whose suggestions the person saw; None for none.
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
    """The text of a file of answers."""
    return "".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in answers)


def read_human(path: Path) -> list[HumanAnswer]:
    """Read a file of answers.

    Raises:
        InputFileError: it cannot be read, or a line is not of its form.
    """
    bad = BadLines(path)
    found = []
    for line, record in read_records(path, bad):
        try:
            found.append(_answer(record))
        except RecordError as error:
            bad.add(line, str(error))
    bad.raise_any()
    return found


def human_rows(results: Path) -> tuple[list[Row], list[str]]:
    """A row for each dataset and task that people answered, and what cannot be read.

    A sample has the mean over those who answered it.
    """
    groups: dict[tuple[str, Task], list[HumanAnswer]] = {}
    broken: list[str] = []
    for path in sorted((results / HUMAN).glob("*.jsonl")):
        try:
            answers = read_human(path)
        except InputFileError as error:
            broken.append(str(error))
            continue
        for each in answers:
            groups.setdefault((each.dataset, each.task), []).append(each)
    return [_human_row(*key, own) for key, own in sorted(groups.items())], broken


def _answer(record: dict[str, Any]) -> HumanAnswer:
    try:
        task = Task(get(record, "task", str))
    except ValueError:
        raise RecordError("'task' must be detection or query-related") from None
    if task is Task.MASKING:
        raise RecordError("'task' must be detection or query-related")
    of_task = _subjects if task is Task.DETECTION else _texts
    suggestions = record.get("suggestions")
    return HumanAnswer(
        dataset=get(record, "dataset", str),
        task=task,
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
    return [tuple(_pairs(value, key)) for value in values]


def _pairs(value: object, key: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        raise RecordError(f"{key!r} must list subjects")
    for pair in value:
        match pair:
            case [str(text), str(pii_type)]:
                yield text, pii_type
            case _:
                raise RecordError(f"{key!r} must list pairs of text and type")


def _human_row(dataset: str, task: Task, answers: Sequence[HumanAnswer]) -> Row:
    by_sample: dict[str, list[HumanAnswer]] = {}
    for each in answers:
        by_sample.setdefault(each.id, []).append(each)
    scores = {id_: [_scores(each) for each in own] for id_, own in by_sample.items()}
    ids = tuple(by_sample)
    clusters = tuple(own[0].cluster for own in by_sample.values())
    every = [score for own in scores.values() for score in own]
    main = next(iter(every[0]))
    columns = {
        name: Scores(ids, clusters, tuple(fmean(s[name].f1 for s in scores[id_]) for id_ in ids))
        for name in every[0]
        if name != "rouge_l_f"
    }
    mean = macro([score[main] for score in every])
    return Row(
        source=Source.HUMAN,
        model=PEOPLE,
        strategy=_EACH_ALONE,
        dataset=dataset,
        task=task,
        oracle=False,
        metrics={
            **{name: fmean(score[name].f1 for score in every) for name in every[0]},
            **({"precision": mean.precision, "recall": mean.recall} if mean else {}),
        },
        scored=len(ids),
        gold=len(ids),
        note=_note(answers, len(ids)),
        by_sample=columns,
    )


def _scores(answer: HumanAnswer) -> Mapping[str, PRF]:
    """Column to score, the headline first."""
    if answer.task is Task.DETECTION:
        found = score_detection(answer.answer, answer.gold)
        return {"strict_f1": found.strict, "ent_f1": found.entity, "rouge_l_f": found.rouge_l}
    related = score_query_related(answer.answer, answer.gold)
    return {"f1": related.exact, "rouge_l_f": related.rouge_l}


def _note(answers: Sequence[HumanAnswer], samples: int) -> str:
    people = len({each.annotator for each in answers})
    seen = sorted({each.suggestions for each in answers if each.suggestions is not None})
    shown = f", who saw suggestions of {', '.join(seen)}" if seen else ""
    who = "1 person" if people == 1 else f"{people} people"
    return f"{who}{shown}: {len(answers):,} answers, {samples:,} samples"
