"""What people answered, as rows: the human baseline, next to the paper's.

`<results>/human/*.jsonl` holds an answer of one person to one sample a line, with the gold that it
is scored against. The web application's export writes such a file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import BadLines, RecordError, get, read_records
from pii_bench.ranking.rows import Row, Source
from pii_bench.ranking.scores import Scores
from pii_bench.scorer import macro, score_detection, score_query_related
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.scorer import PRF
    from pii_bench.scorer.detection import RawSubjects

FOLDER: Final = "human"
PEOPLE: Final = "people"
_STRATEGY: Final = "each alone"


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
    for path in sorted((results / FOLDER).glob("*.jsonl")):
        try:
            answers = read_human(path)
        except InputFileError as error:
            broken.append(str(error))
            continue
        for each in answers:
            groups.setdefault((each.dataset, each.task), []).append(each)
    return [_row(*key, own) for key, own in sorted(groups.items())], broken


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


def _row(dataset: str, task: Task, answers: Sequence[HumanAnswer]) -> Row:
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
        strategy=_STRATEGY,
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
