"""Samples, answers and calls in the format of the page: distinct texts and their positions.

Positions are offsets in UTF-16 code units, as in JavaScript: start, end, start, end..., with
exclusive ends. Texts are compared after the scorer's normalisation and numbered per sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.diagnosis.errors import ErrorClass, Side, classify
from pii_bench.datasets.sample import Entity, Sample, Subject, applicable, spans_of
from pii_bench.errors import PiiBenchError
from pii_bench.masking import mask
from pii_bench.models.budget import cost
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt
from pii_bench.ranking.costs import price_of
from pii_bench.runs.evaluation import score_sample, traces_of
from pii_bench.runs.store import read_lines
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import locator_of
from pii_bench.scorer.masked_text import Trace
from pii_bench.scorer.measures import harmonic_mean
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.ranking.stored import Run
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.base import SystemCard
    from pii_bench.systems.predictions import Prediction

Record: TypeAlias = dict[str, Any]

_STATUSES: Final = {status: number for number, status in enumerate(Status)}
_CLASSES: Final = {kind: number for number, kind in enumerate(ErrorClass)}
_TRACES: Final = {trace: number for number, trace in enumerate(Trace)}
_SIDES: Final = {side: number for number, side in enumerate(Side)}


# Where the page puts description, query and choices: code points for private use.
_PLACES: Final = Sample(
    "", "\ue000", "\ue001", (Subject("A", (Entity("\ue002", "PER", spans=((0, 1),)),)),), ()
)
_BETWEEN_DRAWS: Final = "\n\n--- next draw ---\n\n"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The numbers of the names shared by all samples, in the order of first use.

    Those of types (the seven first), of categories and of tags.
    """

    types: dict[str, int] = field(
        default_factory=lambda: {kind: number for number, kind in enumerate(PiiType)}
    )
    categories: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)


def _number(names: dict[str, int], name: str) -> int:
    """Return the number of a name, assigning a new one if needed."""
    return names.setdefault(name, len(names))


@dataclass(frozen=True, slots=True)
class Answers:
    """The predictions of a system for the samples of a dataset.

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
    """Encode a sample and the answers of several runs.

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
                _number(vocabulary.types, normalise_type(entity.type)),
                -1 if entity.category is None else _number(vocabulary.categories, entity.category),
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
    """The distinct texts of a sample, numbered in order of first use."""

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
    """Return the UTF-16 offset of each code point."""
    return (0, *accumulate(1 + (character > "\uffff") for character in text))


def _figures(sample: Sample, run: Answers) -> Record | None:
    """Return statuses, metrics and errors, without texts."""
    given = {task: _given(task, sample, run) for task in Task}
    if not any(given.values()):
        return None
    record: Record = {
        "s": [None if each is None else _STATUSES[each.status] for each in given.values()],
        "f": [_scores(task, sample, each, run) for task, each in given.items()],
        "e": [_errors(task, sample, given[task]) for task in (Task.QUERY_RELATED, Task.MASKING)],
    }
    rewriting = given[Task.REWRITE]
    told = None if rewriting is None else traces_of(sample, rewriting.rewritten)
    if told is not None:
        leaks = [each.trace for each in told if each.leaks]
        record["l"] = [leaks.count(trace) for trace in Trace if trace is not Trace.GONE]
    return record


def _given(task: Task, sample: Sample, run: Answers) -> Prediction | None:
    return run.by_task.get(task, {}).get(sample.id) if applicable(task, [sample]) else None


def _scores(
    task: Task, sample: Sample, answer: Prediction | None, run: Answers
) -> list[float | None] | None:
    if answer is None or not answer.status.scored:
        return None
    score = score_sample(task, sample, answer)
    main = score.metrics["strict" if task is Task.DETECTION else "exact"]
    figures: list[float | None] = [main.f1, main.precision, main.recall]
    figures.append(score.metrics["rouge_l"].f1)
    if task is Task.DETECTION:
        figures = figures if run.names_subjects else [None] * len(figures)
        figures.append(score.metrics["entity"].f1)
    elif (left := score.masked_text) is not None:
        h = harmonic_mean(left.protection, left.retention)
        figures += [None, h, left.protection, left.retention, left.collateral]
    return [None if each is None else _short(each) for each in figures]


def _short(figure: float) -> float:
    rounded = round(figure, 4)
    return int(rounded) if rounded.is_integer() else rounded


def _errors(task: Task, sample: Sample, answer: Prediction | None) -> list[int]:
    if answer is None or not answer.status.scored:
        return []
    numbered = sorted(
        (_CLASSES[kind], _SIDES[side], count)
        for (kind, side), count in classify(task, sample, answer).items()
    )
    return [number for each in numbered for number in each]


def _said(sample: Sample, run: Answers, texts: _Texts, vocabulary: Vocabulary) -> Record:
    """Return the texts and positions of an answer."""
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
                    _number(vocabulary.types, normalise_type(pii_type)),
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
                _number(vocabulary.tags, span.tag),
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
                for each in traces_of(sample, rewriting.rewritten) or ()
            ],
        ]
    return said


def prompt_of(card: SystemCard) -> str:
    """Return the prompt of a chat model, with placeholders for the sample.

    Empty for a system without a prompt, and where today's prompt is another.
    """
    name = card.prompt.partition("+")[0]
    strategy = DETECTION if name == DETECTION.name else STRATEGIES.get(name)
    if not card.prompt_sha256 or strategy is None:
        return ""
    try:
        prompt = load_prompt(strategy, output=card.output, taxonomy=card.taxonomy or "paper")
    except PiiBenchError:  # a taxonomy of its own that is no longer there
        return ""
    if prompt.sha256 != card.prompt_sha256:
        return ""
    return "\n\n".join(message.content for message in prompt.messages(_PLACES))


def calls_of(run: Run) -> dict[str, list[str | int | float | None]]:
    """Return sample id to raw answer, input and output tokens, seconds, and cost at current prices.

    Empty for what has no prompt: its answer is what the page shows as found and chosen.
    """
    if run.files is None or not run.manifest.system.prompt_sha256:
        return {}
    price = price_of(run.manifest.system.model)
    found: dict[str, list[str | int | float | None]] = {}
    for _, record in read_lines(run.files.responses, unreadable=[]):
        said = record.completions
        if not said:
            continue
        counted = [(each.usage, each.batched) for each in said if each.usage is not None]
        whole = len(counted) == len(said)
        seconds = [each.seconds for each in said if each.seconds is not None]
        usd = None if price is None else sum(cost(usage, price, by) for usage, by in counted)
        found[record.id] = [
            _BETWEEN_DRAWS.join(each.text for each in said),
            sum(usage.input_tokens for usage, _ in counted) if whole else None,
            sum(usage.output_tokens for usage, _ in counted) if whole else None,
            # Draws are asked for at the same time.
            round(max(seconds), 2) if seconds else None,
            None if usd is None or not whole else round(usd, 6),
        ]
    return found
