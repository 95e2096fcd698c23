"""Samples and answers as the page reads them: texts once, and places in them.

Places are offsets in UTF-16 code units, start and end in turn, end exclusive: what JavaScript
counts in. Texts are told apart as the scorer tells them apart; their numbers are a sample's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.diagnosis.errors import ErrorClass, Side, classify
from pii_bench.datasets.sample import applicable, spans_of
from pii_bench.masking import mask
from pii_bench.runs.evaluation import score_sample, tell_of
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import locator_of
from pii_bench.scorer.masked_text import Trace
from pii_bench.scorer.measures import harmonic_mean
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer import MaskedTextScore
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.predictions import Prediction

Record: TypeAlias = dict[str, Any]

_STATUSES: Final = {status: number for number, status in enumerate(Status)}
_CLASSES: Final = {kind: number for number, kind in enumerate(ErrorClass)}
_WITH_ERRORS: Final = (Task.QUERY_RELATED, Task.MASKING)
_TRACES: Final = {trace: number for number, trace in enumerate(Trace)}
_SIDES: Final = {side: number for number, side in enumerate(Side)}


class Names:
    """Numbers for names that come again and again, in the order in which they first come."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def number(self, name: str) -> int:
        """The number of a name, a new one where the name is new."""
        return self._numbers.setdefault(name, len(self._numbers))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that all samples share: of types (the seven first), categories and tags."""

    types: Names = field(default_factory=lambda: Names(PiiType))
    categories: Names = field(default_factory=Names)
    tags: Names = field(default_factory=Names)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a system said of the samples of a dataset.

    Attributes:
        names_subjects: whether its detection tells whose the entities are.
        by_task: sample id to the prediction, for each task that it answers; those of
            query-related have the detected subjects too, where there are any.
    """

    names_subjects: bool
    by_task: Mapping[Task, Mapping[str, Prediction]]


def encode_sample(
    sample: Sample, runs: Sequence[Answers], vocabulary: Vocabulary | None
) -> tuple[Record, list[Record | None]]:
    """Encode a sample, and what each of several runs said of it.

    Args:
        sample: gold.
        runs: those of its dataset.
        vocabulary: where names are numbered; None leaves out all texts, and places in them.

    Returns:
        The sample: `id`, and with texts `d` (description), `q` (query), `s` (ids of subjects),
        `g` (gold: text, type, category or -1, subject, 1 if needed, places), `t` (texts: their
        places, or the text itself where it has none).
        For each run None where nothing was asked, else `s` (status for each task or None), `f`
        (for each task F1, precision, recall, RougeL-F; for detection Ent-F1 behind them; for
        masking and rewriting None, H, protection, retention and collateral; None where it is not
        scored), `e` (for query-related and masking class, side and count in turn), `l` (of a
        rewriting: texts not needed that are told as written, restated, in part), and with texts
        what there is of `d` (subjects: text and type in turn), `r` (texts chosen), `m` (start, end
        and tag in turn) and `w` (a rewriting, and of each gold text its number, its trace and
        where the rewriting tells it).
    """
    record: Record = {"id": sample.id}
    if vocabulary is None:
        return record, [_figures(sample, run) for run in runs]
    texts = _Texts(sample.description)
    needed = {(related.subject, normalise(related.text)) for related in sample.related}
    record |= {
        "d": sample.description,
        "q": sample.query,
        "s": [subject.id for subject in sample.subjects],
        "g": [
            [
                texts.number(entity.text),
                vocabulary.types.number(normalise_type(entity.type)),
                -1 if entity.category is None else vocabulary.categories.number(entity.category),
                number,
                int((subject.id, normalise(entity.text)) in needed),
                texts.offsets(spans_of(entity, sample.description)),
            ]
            for number, subject in enumerate(sample.subjects)
            for entity in subject.entities
        ],
    }
    answers = []
    for run in runs:
        answer = _figures(sample, run)
        if answer is not None:
            answer |= _said(sample, run, texts, vocabulary)
        answers.append(answer)
    return record | {"t": texts.listed}, answers


class _Texts:
    """The distinct texts of a sample, numbered as they come."""

    def __init__(self, text: str) -> None:
        self.locator = locator_of(text)
        self.listed: list[list[int] | str] = []
        self._numbers: dict[str, int] = {}
        self._units = _units(text)

    def number(self, text: str) -> int:
        key = normalise(text)
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            self.listed.append(self.offsets(self.locator.spans(text)) or key)
        return self._numbers[key]

    def offsets(self, spans: Iterable[Span]) -> list[int]:
        return [self._units[edge] for span in spans for edge in span]


def _units(text: str) -> tuple[int, ...]:
    """Where each code point begins, in UTF-16 code units."""
    return (0, *accumulate(1 + (character > "\uffff") for character in text))


def _figures(sample: Sample, run: Answers) -> Record | None:
    """Statuses, figures and errors: what holds no text."""
    given = [_given(task, sample, run) for task in Task]
    if not any(given):
        return None
    return {
        "s": [None if each is None else _STATUSES[each.status] for each in given],
        "f": [_scores(task, sample, each, run) for task, each in zip(Task, given, strict=True)],
        "e": [
            _errors(task, sample, each)
            for task, each in zip(Task, given, strict=True)
            if task in _WITH_ERRORS
        ],
        **_leaks(sample, given[[*Task].index(Task.REWRITE)]),
    }


def _leaks(sample: Sample, answer: Prediction | None) -> Record:
    told = None if answer is None else tell_of(sample, answer.rewritten)
    if told is None:
        return {}
    leaks = [each.trace for each in told if each.leaks]
    return {"l": [leaks.count(trace) for trace in Trace if trace is not Trace.GONE]}


def _given(task: Task, sample: Sample, run: Answers) -> Prediction | None:
    return run.by_task.get(task, {}).get(sample.id) if applicable(task, [sample]) else None


def _scores(
    task: Task, sample: Sample, answer: Prediction | None, run: Answers
) -> list[float | None] | None:
    if answer is None or not answer.status.scored:
        return None
    score = score_sample(task, sample, answer)
    metrics = score.metrics
    if task is not Task.DETECTION:
        exact = metrics["exact"]
        found = [exact.f1, exact.precision, exact.recall, metrics["rouge_l"].f1]
        return [*(_short(each) for each in found), *_left(score.masked_text)]
    entity = _short(metrics["entity"].f1)
    if not run.names_subjects:
        return [None, None, None, None, entity]
    strict = metrics["strict"]
    found = [strict.f1, strict.precision, strict.recall, metrics["rouge_l"].f1]
    return [*(_short(each) for each in found), entity]


def _left(score: MaskedTextScore | None) -> list[float | None]:
    """What is left of a masked text: no Ent-F1, then H and what it is made of."""
    if score is None:
        return []
    h = harmonic_mean(score.protection, score.retention)
    collateral = None if score.collateral is None else _short(score.collateral)
    return [None, _short(h), _short(score.protection), _short(score.retention), collateral]


def _errors(task: Task, sample: Sample, answer: Prediction | None) -> list[int]:
    if answer is None or not answer.status.scored:
        return []
    counts = classify(task, sample, answer)
    return [
        number
        for kind, side in sorted(counts, key=lambda key: (_CLASSES[key[0]], _SIDES[key[1]]))
        for number in (_CLASSES[kind], _SIDES[side], counts[kind, side])
    ]


def _said(sample: Sample, run: Answers, texts: _Texts, vocabulary: Vocabulary) -> Record:
    """The texts and places of an answer."""
    found, chosen, masking, rewriting = (_given(task, sample, run) for task in Task)
    said: Record = {}
    if found is not None and found.subjects is not None:
        said["d"] = [
            [
                number
                for text, pii_type in subject
                if text.strip()
                for number in (
                    texts.number(text),
                    vocabulary.types.number(normalise_type(pii_type)),
                )
            ]
            for subject in found.subjects
        ]
    if chosen is not None and chosen.related is not None:
        said["r"] = [*dict.fromkeys(texts.number(text) for text in chosen.related if text.strip())]
    if masking is not None and masking.subjects is not None:
        entities = [pair for subject in masking.subjects for pair in subject]
        masked = mask(sample.description, entities, masking.related or (), locator=texts.locator)
        said["m"] = [
            number
            for span in masked.spans
            for number in (
                *texts.offsets([(span.start, span.end)]),
                vocabulary.tags.number(span.tag),
            )
        ]
    if rewriting is not None and rewriting.rewritten is not None:
        units = _units(rewriting.rewritten)
        said["w"] = [
            rewriting.rewritten,
            [
                [
                    texts.number(each.text.text),
                    _TRACES[each.trace],
                    [units[edge] for span in each.spans for edge in span],
                ]
                for each in tell_of(sample, rewriting.rewritten) or ()
            ],
        ]
    return said


def _short(figure: float) -> float:
    rounded = round(figure, 4)
    return int(rounded) if rounded.is_integer() else rounded
