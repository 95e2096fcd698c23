"""Samples, answers and calls in the format of the page: distinct texts and their positions.

Positions are offsets in UTF-16 code units, as in JavaScript: start, end, start, end..., with
exclusive ends. Texts are compared after the scorer's normalisation and numbered per sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.diagnosis.errors import ErrorClass, Side, classify
from pii_bench.datasets.sample import Entity, Sample, Subject, applicable
from pii_bench.errors import PiiBenchError
from pii_bench.masking import mask
from pii_bench.models.budget import cost
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt
from pii_bench.ranking.costs import price_of
from pii_bench.runs.evaluation import score_sample, traces_of
from pii_bench.runs.store import read_responses
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


# A sample with placeholders, code points for private use, for description, query and choices.
_PLACEHOLDERS: Final = Sample(
    "", "\ue000", "\ue001", (Subject("A", (Entity("\ue002", "PER", spans=((0, 1),)),)),), ()
)
_BETWEEN_DRAWS: Final = "\n\n--- next draw ---\n\n"


class Vocabulary:
    """Numbers of the types, categories and tags of all samples, in the order of first use.

    The seven types come first.
    """

    def __init__(self) -> None:
        self.types: dict[str, int] = {kind: number for number, kind in enumerate(PiiType)}
        self.categories: dict[str, int] = {}
        self.tags: dict[str, int] = {}


def _number(names: dict[str, int], name: str) -> int:
    """Return the number of a name, assigning a new one if needed."""
    return names.setdefault(name, len(names))


@dataclass(frozen=True, slots=True)
class Answers:
    """The predictions of a system for the samples of a dataset.

    Attributes:
        names_subjects: True if the detection assigns entities to subjects.
        by_task: predictions by task and sample id; those for query-related also have the
            detected subjects if there are any.
    """

    names_subjects: bool
    by_task: Mapping[Task, Mapping[str, Prediction]]


def encode_sample(
    sample: Sample, runs: Sequence[Answers], vocabulary: Vocabulary | None
) -> tuple[Record, list[Record | None]]:
    """Encode a sample and the answers of several runs.

    Args:
        sample: sample with gold.
        runs: runs on its dataset.
        vocabulary: numbers of names; None leaves out all texts and positions.

    Returns:
        The sample: `id`, and with texts `d` (description), `q` (query), `s` (ids of subjects),
        `g` (gold: text, type, category or -1, subject, 1 if needed, positions), `t` (texts: their
        positions, or the text itself if it is not in the description).
        For each run None without an answer, else `s` (status for each task or None), `f` (for
        each task F1, precision, recall, RougeL-F; for detection then Ent-F1; for masking and
        rewriting then None, H, protection, retention and collateral; None if not scored), `e`
        (for query-related and masking alternating class, side and count), `l` (for rewriting:
        number of unneeded texts that it repeats, restates, and repeats in part), and with texts,
        as far as predicted, `d` (subjects: alternating text and type), `r` (texts chosen), `m`
        (alternating start, end and tag) and `w` (the rewritten text, and for each gold text its
        number, its trace and the positions of the trace).
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
                texts.offsets(entity.spans),
            ]
            for number, subject in enumerate(sample.subjects)
            for entity in subject.entities
        ],
    }
    answers = []
    for run in runs:
        answer = _figures(sample, run)
        if answer is not None:
            answer |= _encode_texts(sample, run, texts, vocabulary)
        answers.append(answer)
    return record | {"t": texts.encoded}, answers


class _Texts:
    """The distinct texts of a sample, numbered in order of first use.

    Attributes:
        encoded: for each text its positions in the description, or the text if there are none.
    """

    def __init__(self, description: str) -> None:
        self.locator = locator_of(description)
        self.encoded: list[list[int] | str] = []
        self._numbers: dict[str, int] = {}
        self._description = description

    def number(self, text: str) -> int:
        key = normalise(text)
        if key not in self._numbers:
            self._numbers[key] = len(self.encoded)
            self.encoded.append(self.offsets(self.locator.spans(text)) or key)
        return self._numbers[key]

    def offsets(self, spans: Iterable[Span]) -> list[int]:
        return _offsets(self._description, spans)


def _offsets(text: str, spans: Iterable[Span]) -> list[int]:
    """Convert spans in code points to alternating starts and ends in UTF-16 code units."""
    return [
        len(text[:place].encode("utf-16-le", "surrogatepass")) // 2
        for span in spans
        for place in span
    ]


def _figures(sample: Sample, run: Answers) -> Record | None:
    """Return statuses, metrics and errors, without texts."""
    answers = {task: _answer(task, sample, run) for task in Task}
    if not any(answers.values()):
        return None
    record: Record = {
        "s": [None if answer is None else _STATUSES[answer.status] for answer in answers.values()],
        "f": [_scores(task, sample, answer, run) for task, answer in answers.items()],
        "e": [_errors(task, sample, answers[task]) for task in (Task.QUERY_RELATED, Task.MASKING)],
    }
    rewriting = answers[Task.REWRITE]
    traces = None if rewriting is None else traces_of(sample, rewriting.rewritten)
    if traces is not None:
        leaks = [text_trace.trace for text_trace in traces if text_trace.leaks]
        record["l"] = [leaks.count(trace) for trace in Trace if trace is not Trace.GONE]
    return record


def _answer(task: Task, sample: Sample, run: Answers) -> Prediction | None:
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
    elif (masked := score.masked_text) is not None:
        h = harmonic_mean(masked.protection, masked.retention)
        figures += [None, h, masked.protection, masked.retention, masked.collateral]
    return [None if figure is None else _shorten(figure) for figure in figures]


def _shorten(figure: float) -> float:
    """Return a figure with at most four decimals, as an integer if it is whole."""
    rounded = round(figure, 4)
    return int(rounded) if rounded.is_integer() else rounded


def _errors(task: Task, sample: Sample, answer: Prediction | None) -> list[int]:
    if answer is None or not answer.status.scored:
        return []
    counts = classify(task, sample, answer)
    numbered = sorted((_CLASSES[kind], _SIDES[side], n) for (kind, side), n in counts.items())
    return [number for error in numbered for number in error]


def _encode_texts(sample: Sample, run: Answers, texts: _Texts, vocabulary: Vocabulary) -> Record:
    """Return the texts and positions of an answer."""
    record: Record = {}
    detection = _answer(Task.DETECTION, sample, run)
    if detection is not None and detection.subjects is not None:
        record["d"] = [_encode_subject(each, texts, vocabulary) for each in detection.subjects]
    query_related = _answer(Task.QUERY_RELATED, sample, run)
    if query_related is not None and query_related.related is not None:
        chosen = [texts.number(text) for text in query_related.related if text.strip()]
        record["r"] = list(dict.fromkeys(chosen))
    masking = _answer(Task.MASKING, sample, run)
    if masking is not None and masking.subjects is not None:
        entities = [pair for subject in masking.subjects for pair in subject]
        masked = mask(sample.description, entities, masking.related or (), locator=texts.locator)
        record["m"] = []
        for span in masked.spans:
            tag = _number(vocabulary.tags, span.tag)
            record["m"] += [*texts.offsets([(span.start, span.end)]), tag]
    rewriting = _answer(Task.REWRITE, sample, run)
    if rewriting is not None and rewriting.rewritten is not None:
        text = rewriting.rewritten
        traces = [
            [texts.number(trace.text.text), _TRACES[trace.trace], _offsets(text, trace.spans)]
            for trace in traces_of(sample, text) or ()
        ]
        record["w"] = [text, traces]
    return record


def _encode_subject(
    entities: Iterable[tuple[str, str]], texts: _Texts, vocabulary: Vocabulary
) -> list[int]:
    """Return alternating numbers of texts and types, without blank texts."""
    numbers: list[int] = []
    for text, pii_type in entities:
        if text.strip():
            numbers += (texts.number(text), _number(vocabulary.types, normalise_type(pii_type)))
    return numbers


def prompt_of(card: SystemCard) -> str:
    """Return the prompt of a chat model, with placeholders for the sample.

    Empty for a system without a prompt, and if the prompt has changed since the run.
    """
    name = card.prompt.partition("+")[0]
    strategy = DETECTION if name == DETECTION.name else STRATEGIES.get(name)
    if not card.prompt_sha256 or strategy is None:
        return ""
    try:
        prompt = load_prompt(strategy, output=card.output, taxonomy=card.taxonomy or "paper")
    except PiiBenchError:
        # The run used a taxonomy file that no longer exists.
        return ""
    if prompt.sha256 != card.prompt_sha256:
        return ""
    return "\n\n".join(message.content for message in prompt.messages(_PLACEHOLDERS))


def calls_of(run: Run) -> dict[str, list[str | int | float | None]]:
    """Return sample id to raw answer, input and output tokens, seconds, and cost at current prices.

    Empty for a system without a prompt, which has no raw answers.
    """
    if run.files is None or not run.manifest.system.prompt_sha256:
        return {}
    price = price_of(run.manifest.system.model)
    calls: dict[str, list[str | int | float | None]] = {}
    for record in read_responses(run.files.responses, unreadable=[]):
        draws = record.completions
        if not draws:
            continue
        counted = [(draw.usage, draw.batched) for draw in draws if draw.usage is not None]
        complete = len(counted) == len(draws)
        seconds = [draw.seconds for draw in draws if draw.seconds is not None]
        usd = None
        if complete and price is not None:
            usd = round(sum(cost(usage, price, batched) for usage, batched in counted), 6)
        calls[record.id] = [
            _BETWEEN_DRAWS.join(draw.text for draw in draws),
            sum(usage.input_tokens for usage, _ in counted) if complete else None,
            sum(usage.output_tokens for usage, _ in counted) if complete else None,
            # Draws run at the same time.
            round(max(seconds), 2) if seconds else None,
            usd,
        ]
    return calls
