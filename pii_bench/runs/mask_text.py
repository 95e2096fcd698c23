"""Masking texts with a system, or rewriting them with a chat model.

Many texts are masked one after another in this process, or by the workers of a Ray cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pii_bench.datasets.sample import Sample
from pii_bench.errors import PiiBenchError
from pii_bench.masking.masked import Masked, mask
from pii_bench.models.base import CallError, Completion, Finish
from pii_bench.runs.responses import read_response
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator, reading
from pii_bench.scorer.masked_text import GoldTexts, TextTrace, Trace, find_traces
from pii_bench.systems.base import THIS_MACHINE, fault_of
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.plug_ins import PlugIn
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence

    from pii_bench.systems.base import Response, System
    from pii_bench.systems.predictions import Prediction, Subjects

    Asked = tuple[str | None, str]
    """A text (None for an empty cell) and its query."""
    Work = Callable[[str, str], Coroutine[Any, Any, "MaskedText"]]

OnFailure = Literal["refuse", "mask-all"]

SAMPLE_ID: Final = "text"
"""The sample id of the text; a replay file refers to it."""


class MaskingError(PiiBenchError):
    """A system gave no usable answer, so the text cannot be masked."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a system about a text.

    Attributes:
        entities: (text, type) pairs of all subjects.
        needed: texts that the query needs; None if the system failed to answer, in which case
            everything is masked.
    """

    entities: tuple[tuple[str, str], ...] = field(repr=False)
    needed: tuple[str, ...] | None = field(repr=False)

    @property
    def needed_readings(self) -> set[str]:
        """The needed texts, as `reading` compares them."""
        return {reading(value) for value in self.needed or ()}


@dataclass(slots=True)
class MaskingCounts:
    """Counts over masked texts; they contain no part of a text.

    Attributes:
        places: number of masked places.
        masked: tags by type.
        readable: values by type that stay readable because a query needs them.
        inside: values by type that stay readable inside a value that a query needs.
        not_found: number of texts that the system named and that do not occur in the text.
        in_query: values by type that occur in the queries themselves, without the needed ones; a
            query that is asked about many texts counts once.
        undecided: number of texts masked completely because the system gave no relevance.
    """

    places: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    readable: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)
    not_found: int = 0
    in_query: Counter[str] = field(default_factory=Counter)
    undecided: int = 0

    def include(self, others: MaskingCounts) -> None:
        """Add the counts of other texts."""
        self.places += others.places
        self.masked += others.masked
        self.readable += others.readable
        self.inside += others.inside
        self.not_found += others.not_found
        self.in_query += others.in_query
        self.undecided += others.undecided

    def add(self, locator: Locator, answers: Answers, masked: Masked) -> None:
        """Count the text of a locator, but not the values in its query."""
        needed = answers.needed_readings
        left: dict[str, str] = {}
        for value, pii_type in dict.fromkeys(answers.entities):
            if any(masked.tag_over(*span) is None for span in locator.spans(value)):
                left.setdefault(reading(value), pii_type)
        for key, pii_type in left.items():
            counter = self.readable if key in needed else self.inside
            counter[pii_type] += 1
        types = {span.tag: span.type for span in masked.spans}
        self.masked.update(types.values())
        self.places += len(masked.spans)
        self.not_found += len(masked.not_found)
        self.undecided += answers.needed is None

    def add_query(self, values: Iterable[tuple[str, str]]) -> None:
        """Count the values of a query, the result of `find_in_query`."""
        self.in_query.update(pii_type for _, pii_type in values)


@dataclass(slots=True)
class Traces:
    """Counts over rewritten texts; they contain no part of a text.

    They cover the values that a detector found in the texts and that the queries do not need.

    Attributes:
        values: number of values.
        revealed: number of values that the rewritten text reveals, by the kind of trace.
        types: the same by type.
    """

    values: int = 0
    revealed: Counter[Trace] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    def add(self, rewriting: Rewriting) -> None:
        """Count one text."""
        types = {normalise(text): pii_type for text, pii_type in rewriting.found.entities}
        for value in rewriting.traces:
            self.values += not value.text.needed
            if value.leaks:
                self.revealed[value.trace] += 1
                self.types[types[value.text.text]] += 1


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rewritten text, and what it still reveals of the values found in the original one."""

    text: str = field(repr=False)
    found: Answers = field(repr=False)
    traces: tuple[TextTrace, ...] = field(repr=False)


async def rewrite(text: str, query: str, rewriter: System, checkers: Iterable[System]) -> Rewriting:
    """Rewrite a text with a chat model, and search the result for the values a detector found.

    All systems see the text unmasked. Values that the checkers, systems for detection and
    relevance, miss are not searched for. The systems are not closed, so that more texts can follow
    in the same event loop.

    Raises:
        MaskingError: there is no rewritten text, or it cannot be checked.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: the query is blank.
    """
    found = await ask(text, query, checkers)
    written = (await _ask(rewriter, Sample(SAMPLE_ID, text, query, (), ()))).rewritten or ""
    locator = Locator(text)
    entities = [(value, locator.spans(value)) for value, _ in found.entities]
    gold = GoldTexts(text, entities, found.needed or ())
    return Rewriting(written, found, find_traces(text, written, gold, query))


def rewriting_system(systems: Iterable[System]) -> System:
    """Return the system for `Task.REWRITE`.

    Raises:
        PiiBenchError: there is none.
    """
    systems = tuple(systems)
    for system in systems:
        if system.card.task is Task.REWRITE:
            return system
    names = ", ".join(sorted({system.card.model for system in systems}))
    raise PiiBenchError(f"system {names!r} writes no text: --rewrite needs a chat model, --model")


async def mask_for_query(text: str, query: str, systems: Iterable[System]) -> Masked:
    """Mask the PII that a query does not need: `ask`, then `mask`. The query is not masked.

    The systems are not closed, so that more texts can follow in the same event loop.

    Raises:
        PiiBenchError: see `ask`.
    """
    answers = await ask(text, query, systems)
    return mask(text, answers.entities, answers.needed or ())


async def ask(
    text: str, query: str, systems: Iterable[System], *, on_failure: OnFailure = "refuse"
) -> Answers:
    """Detect the PII of a text, then select the values that the query needs.

    Failed calls, unusable answers and answers that were cut off all count as failures, so that no
    text passes unmasked because a system broke. If only the relevance answer is missing, `refuse`
    raises, and `mask-all` treats nothing as needed; a missing detection always raises.

    Raises:
        MaskingError: a system gave no usable answer.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: the query is blank, or the systems do not answer both tasks or use gold.
    """
    check_query(query)
    detection, related = masking_systems(systems)
    sample = Sample(SAMPLE_ID, text, query, subjects=(), related=())
    found = await _ask(detection, sample)
    entities = tuple(pair for subject in found.subjects or () for pair in subject)
    try:
        needed = (await _ask(related, sample)).related
    except MaskingError:
        if on_failure == "refuse":
            raise
        needed = None
    return Answers(entities, needed)


def check_query(query: str) -> None:
    """Refuse a blank query.

    Raises:
        PiiBenchError: the query is blank.
    """
    if not query.strip():
        raise PiiBenchError("the query is blank: give the question about the text")


async def find(text: str, systems: Iterable[System]) -> Subjects:
    """Detect the PII of a text without a query: (text, type) pairs per subject.

    Raises:
        MaskingError: the system gave no usable answer.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: there is no system for detection, or it uses gold.
    """
    detection = _answering(Task.DETECTION, systems)
    return (await _ask(detection, Sample(SAMPLE_ID, text, None, (), ()))).subjects or ()


async def find_in_query(
    query: str, answers: Answers, systems: Iterable[System]
) -> frozenset[tuple[str, str]]:
    """Return the PII of a query itself that it does not need, as (`reading`, type) pairs.

    A value has one type, the first that was found.

    It is found in the query, unless the detector is a chat model or runs on another machine, where
    a further call costs, or gives no answer; and in the text that the query is about.
    """
    detection = _answering(Task.DETECTION, systems)
    found = list(answers.entities)
    if not detection.card.prompt_sha256 and detection.card.unmasked_text_to == THIS_MACHINE:
        with suppress(MaskingError):
            found += [pair for each in await find(query, [detection]) for pair in each]
    needed = answers.needed_readings
    locator = Locator(query)
    types: dict[str, str] = {}
    for value, pii_type in dict.fromkeys(found):
        if reading(value) not in needed and locator.spans(value):
            types.setdefault(reading(value), pii_type)
    return frozenset(types.items())


def masking_systems(systems: Iterable[System]) -> tuple[System, System]:
    """Return the systems for detection and for query-related PII.

    Raises:
        PiiBenchError: one is missing, or uses gold annotations, which a user's text has not.
    """
    systems = tuple(systems)
    return _answering(Task.DETECTION, systems), _answering(Task.QUERY_RELATED, systems)


def _answering(task: Task, systems: Iterable[System]) -> System:
    by_task = {system.card.task: system for system in systems}
    if task not in by_task:
        names = ", ".join(sorted({system.card.model for system in by_task.values()})) or "none"
        raise PiiBenchError(
            f"system {names!r} does not answer {task}; masking needs detection and "
            "query-related (a detector alone: DETECTOR+none masks all that it finds)"
        )
    card = by_task[task].card
    if card.oracle:
        raise PiiBenchError(
            f"system {card.model!r} ({card.prompt}) uses the gold annotation of a "
            "dataset: it cannot mask other texts"
        )
    return by_task[task]


async def _ask(system: System, sample: Sample) -> Prediction:
    card = system.card
    try:
        response = await system.respond(sample)
    except CallError as error:
        reason = f"the call failed ({error})"
    else:
        prediction = read_response(
            card.task, response, card.output, card.taxonomy, sample.description
        )
        reason = _failure(system, response, prediction)
        if not reason:
            return prediction
    # Outside the handler: the chained exception may contain the text.
    raise MaskingError(f"system {card.model!r} ({card.prompt}): {reason}; nothing is masked")


def _failure(system: System, response: Response, prediction: Prediction) -> str:
    """Return the reason why an answer cannot be used; empty if it can."""
    if not prediction.status.answered:
        # The answer of a chat model may look like a fault and quote the text.
        fault = fault_of(response) if isinstance(system, PlugIn) else None
        return fault or f"its answer is {prediction.status}"
    # The missing entities of a truncated answer would stay unmasked.
    cut = isinstance(response, Completion) and response.finish is Finish.LENGTH
    if system.card.task is Task.DETECTION and (cut or prediction.cut):
        return "its answer was cut off"
    return ""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """The result for one text.

    Attributes:
        text: the masked text; None if there was no text or the system failed.
        in_query: the result of `find_in_query`; `counts` do not include it.
        failure: why the text could not be masked, without quoting it; empty on success.
    """

    text: str | None = field(repr=False)
    counts: MaskingCounts = field(default_factory=MaskingCounts)
    in_query: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    failure: str = ""


class TextMasker:
    """Masks one text after another with `work`; a context manager that closes its systems."""

    def __init__(self, systems: Iterable[System], work: Work) -> None:
        self._systems, self._work = tuple(systems), work
        # One event loop for all texts, so that clients reuse their connections.
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            for system in self._systems:
                self._runner.run(system.close())

    def __call__(self, asked: Asked) -> MaskedText:
        """Mask a text; a missing or blank one is returned unchanged."""
        text, query = asked
        if text is None or not text.strip():
            return MaskedText(text)
        try:
            return self._runner.run(self._work(text, query))
        except PiiBenchError as error:
            return MaskedText(None, failure=str(error))


def mask_each(
    systems: Sequence[System], on_failure: OnFailure, texts: Iterable[Asked]
) -> Iterator[MaskedText]:
    """Mask texts, read lazily, one after another (`ask`), and close the systems at the end."""
    with TextMasker(systems, partial(_mask, systems, on_failure)) as masker:
        yield from map(masker, texts)


def rewrite_each(
    systems: Sequence[System],
    rewriting: Callable[[str, str], Coroutine[Any, Any, Rewriting]],
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Rewrite texts, read lazily, one after another, and close the systems at the end."""

    async def rewritten(text: str, query: str) -> MaskedText:
        return MaskedText((await rewriting(text, query)).text)

    with TextMasker(systems, rewritten) as masker:
        yield from map(masker, texts)


async def _mask(
    systems: Sequence[System], on_failure: OnFailure, text: str, query: str
) -> MaskedText:
    answers = await ask(text, query, systems, on_failure=on_failure)
    locator = Locator(text)
    masked = mask(text, answers.entities, answers.needed or (), locator=locator)
    counts = MaskingCounts()
    counts.add(locator, answers, masked)
    return MaskedText(masked.text, counts, await find_in_query(query, answers, systems))


def mask_each_on_ray(
    name: str,
    options: SystemOptions,
    on_failure: OnFailure,
    workers: int,
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Like `mask_each`, in the worker processes of a Ray cluster; each builds its own system.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    from pii_bench.runs.on_ray import map_on_ray

    return map_on_ray(partial(_build, name, options, on_failure), texts, workers)


def _build(name: str, options: SystemOptions, on_failure: OnFailure) -> TextMasker:
    systems = masking_systems(build_systems(name, options))
    return TextMasker(systems, partial(_mask, systems, on_failure))
