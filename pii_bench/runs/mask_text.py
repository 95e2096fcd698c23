"""Asking a system what of texts to mask, or a chat model to write them anew.

Many texts are masked here, one after the other, or in the processes of a Ray cluster.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pii_bench.datasets.sample import Sample
from pii_bench.errors import PiiBenchError
from pii_bench.masking.masked import Masked, mask
from pii_bench.models.base import CallError, Completion, Finish
from pii_bench.prompting.parsing.answers import Stage
from pii_bench.runs.responses import read_response
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator
from pii_bench.scorer.masked_text import GoldTexts, TextTrace, Trace, find_traces
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence

    from pii_bench.systems.base import Response, System
    from pii_bench.systems.predictions import Prediction, Subjects

    Asked = tuple[str | None, str]
    """A text, where there is one, and what will be asked about it."""
    Work = Callable[[str, str], Coroutine[Any, Any, "MaskedText"]]

OnFailure = Literal["refuse", "mask-all"]

SAMPLE_ID: Final = "text"
"""How the text is called; a replay file answers it by this name."""


class MaskingError(PiiBenchError):
    """A system gave no answer on which a text can be masked: nothing of the text goes on."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a system said of a text.

    Attributes:
        entities: (text, type) pairs of all subjects.
        needed: texts that the query needs; None where the system failed to say, so that
            everything is masked.
    """

    entities: tuple[tuple[str, str], ...] = field(repr=False)
    needed: tuple[str, ...] | None = field(repr=False)


@dataclass(slots=True)
class Counts:
    """What became of any number of texts, without a word of them.

    Attributes:
        values: how many tags there are, and `places` where they are.
        masked: found values by type, without those left `readable` because a query needs them.
        not_found: texts that the system named and that are nowhere in the text.
        in_query: values by type that a query itself holds, without those left readable.
        undecided: texts of which everything is masked, as the system did not tell the need.
    """

    values: int = 0
    places: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    readable: Counter[str] = field(default_factory=Counter)
    not_found: int = 0
    in_query: Counter[str] = field(default_factory=Counter)
    undecided: int = 0

    def include(self, others: Counts) -> None:
        """Add the counts of other texts."""
        self.values += others.values
        self.places += others.places
        self.masked += others.masked
        self.readable += others.readable
        self.not_found += others.not_found
        self.in_query += others.in_query
        self.undecided += others.undecided

    def add(
        self,
        answers: Answers,
        masked: Masked,
        query: str,
        in_query: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Count one text more; `in_query` is what `find_in_query` says."""
        needed = {normalise(text) for text in answers.needed or ()}
        absent = {normalise(text) for text in masked.not_found}
        found = {(normalise(text), pii_type) for text, pii_type in answers.entities}
        left, asked = Locator(masked.text), Locator(query)
        for text, pii_type in found:
            if text in needed:
                self.readable[pii_type] += bool(left.spans(text))
            elif text not in absent:
                self.masked[pii_type] += 1
        self.values += len(masked.mapping)
        self.places += masked.places
        self.not_found += len(masked.not_found)
        for text, pii_type in found | {(normalise(text), each) for text, each in in_query}:
            self.in_query[pii_type] += text not in needed and bool(asked.spans(text))
        self.undecided += answers.needed is None


@dataclass(slots=True)
class Traces:
    """What became of any number of texts that were written anew, without a word of them.

    Judged are the values that a detector found in the texts and that the queries do not need.

    Attributes:
        values: how many there are.
        told: how many are told still, and how.
        types: of those that are told still.
    """

    values: int = 0
    told: Counter[Trace] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    def add(self, rewriting: Rewriting) -> None:
        """Count one text more."""
        types = {normalise(text): pii_type for text, pii_type in rewriting.found.entities}
        for each in rewriting.told:
            self.values += not each.text.needed
            if each.leaks:
                self.told[each.trace] += 1
                self.types[types[each.text.text]] += 1


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A text that was written anew, and what it still tells.

    Attributes:
        text: the new one.
        found: what the detector says of the text as it was.
        told: what the new one tells of that.
    """

    text: str = field(repr=False)
    found: Answers = field(repr=False)
    told: tuple[TextTrace, ...] = field(repr=False)


async def rewrite(text: str, query: str, rewriter: System, checkers: Iterable[System]) -> Rewriting:
    """Let a chat model write a text anew, and look for what is left of what a detector found.

    Systems are not closed: the next text may follow, in the same event loop.

    Args:
        text: as it is; all systems see it so.
        query: what will be asked about it.
        rewriter: answers `Task.REWRITE`.
        checkers: a detector and what tells the need; what they do not find is not looked for.

    Raises:
        MaskingError: there is no new text, or it cannot be checked.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: a blank query.
    """
    found = await ask(text, query, checkers)
    written = (await _ask(rewriter, Sample(SAMPLE_ID, text, query, (), ()))).rewritten or ""
    locator = Locator(text)
    entities = [(value, locator.spans(value)) for value, _ in found.entities]
    gold = GoldTexts(text, entities, found.needed or ())
    return Rewriting(written, found, find_traces(text, written, gold, query))


def rewriting_system(systems: Iterable[System]) -> System:
    """The one that writes texts anew.

    Raises:
        PiiBenchError: there is none.
    """
    made = list(systems)
    for system in made:
        if system.card.task is Task.REWRITE:
            return system
    names = ", ".join(sorted({each.card.model for each in made}))
    raise PiiBenchError(f"system {names!r} writes no text: --rewrite needs a chat model, --model")


async def mask_for_query(
    text: str, query: str, systems: Iterable[System], *, on_failure: OnFailure = "refuse"
) -> Masked:
    """Mask what a query does not need, as a system tells it.

    The same as `ask` and then `mask`. Systems are not closed: the next text may follow, in the
    same event loop.

    Args:
        text: what is masked.
        query: what will be asked about it; it is not masked.
        systems: those of one name (`systems.catalog.build_systems`).
        on_failure: see `ask`.

    Raises:
        PiiBenchError: see `ask`.
    """
    answers = await ask(text, query, systems, on_failure=on_failure)
    return mask(text, answers.entities, answers.needed or ())


async def ask(
    text: str, query: str, systems: Iterable[System], *, on_failure: OnFailure = "refuse"
) -> Answers:
    """Ask what a text holds, then what of it the query needs.

    A call that failed, an answer that says nothing or was refused, and one that may lack
    entities because it was cut off, are failures: a text never passes because a system broke.

    Args:
        text: what is to be masked; the systems see it as it is.
        query: what will be asked about it.
        systems: one that detects and one that tells what a query needs, in any order.
        on_failure: what follows when only the second of the two answers is missing: `refuse`
            raises, `mask-all` takes nothing as needed. Without the first nothing can be masked.

    Raises:
        MaskingError: no answer on which the text can be masked.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: a blank query; systems that do not answer both tasks, or are told gold.
    """
    if not query.strip():
        raise PiiBenchError("the query is blank: what will be asked about the text?")
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


async def find(text: str, systems: Iterable[System]) -> Subjects:
    """Ask what a text holds, without a query: (text, type) pairs of each person.

    Raises:
        MaskingError: no answer that can be used.
        ProviderRefusedError: the provider refuses every call.
        PiiBenchError: no system detects, or it is told gold.
    """
    (detection,) = _answering([Task.DETECTION], systems)
    return (await _ask(detection, Sample(SAMPLE_ID, text, None, (), ()))).subjects or ()


async def find_in_query(query: str, systems: Iterable[System]) -> tuple[tuple[str, str], ...]:
    """What the detector finds in a query itself, as (text, type) pairs.

    Nothing where it is a chat model or on another machine, where a further call costs, or where
    it gives no answer.
    """
    (detection,) = _answering([Task.DETECTION], systems)
    if detection.card.prompt_sha256 or detection.card.unmasked_text_to != THIS_MACHINE:
        return ()
    try:
        found = await find(query, [detection])
    except MaskingError:
        return ()
    return tuple(pair for subject in found for pair in subject)


def masking_systems(systems: Iterable[System]) -> tuple[System, System]:
    """Those that detect and that tell what a query needs.

    Raises:
        PiiBenchError: one is missing, or is told the annotation, which no text of a user has.
    """
    detection, related = _answering([Task.DETECTION, Task.QUERY_RELATED], systems)
    return detection, related


def _answering(tasks: Iterable[Task], systems: Iterable[System]) -> list[System]:
    by_task = {system.card.task: system for system in systems}
    for task in tasks:
        if task not in by_task:
            names = ", ".join(sorted({each.card.model for each in by_task.values()})) or "none"
            raise PiiBenchError(
                f"system {names!r} does not answer {task}; masking needs detection and "
                "query-related (a detector alone: DETECTOR+none masks all that it finds)"
            )
        card = by_task[task].card
        if card.oracle:
            raise PiiBenchError(
                f"system {card.model!r} ({card.prompt}) is told the annotation of a dataset: "
                "it can mask no other text"
            )
    return [by_task[task] for task in tasks]


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
        reason = _failure(card.task, response, prediction)
        if not reason:
            return prediction
    # Outside of the handler: what is chained may hold the text.
    raise MaskingError(f"system {card.model!r} ({card.prompt}): {reason}; nothing is masked")


def _failure(task: Task, response: Response, prediction: Prediction) -> str:
    """Why an answer cannot be used; empty where it can."""
    if not prediction.status.answered:
        return f"its answer is {prediction.status}"
    # An answer may be cut off between two entities or mended; what lacks would stay unmasked.
    cut = isinstance(response, Completion) and response.finish is Finish.LENGTH
    if task is Task.DETECTION and (cut or Stage.CLOSE_OPEN in prediction.repairs):
        return "its answer was cut off"
    return ""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """What became of a text.

    Attributes:
        text: it is masked; None where there was none, and where the system failed.
        counts: what was masked in it.
        failure: why it could not be masked, without a word of it; empty where it could.
    """

    text: str | None = field(repr=False)
    counts: Counts = field(default_factory=Counts)
    failure: str = ""


class TextMasker:
    """Works on one text after the other; a context manager, at whose end the systems are closed.

    Args:
        systems: those that are asked.
        work: masks a text for a query.
    """

    def __init__(self, systems: Iterable[System], work: Work) -> None:
        self._systems, self._work = tuple(systems), work
        # One loop for all texts: the clients of chat models keep their connections in it.
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            for system in self._systems:
                self._runner.run(system.close())

    def __call__(self, asked: Asked) -> MaskedText:
        """Mask a text; one that is empty or blank stays as it is."""
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
    """Mask texts in this process, one after the other; the systems are closed at the end.

    Args:
        systems: those of one name, for detection and for what a query needs.
        on_failure: see `ask`.
        texts: read as they are needed.
    """
    with TextMasker(systems, partial(_mask, systems, on_failure)) as masker:
        yield from map(masker, texts)


def rewrite_each(
    systems: Sequence[System],
    rewriting: Callable[[str, str], Coroutine[Any, Any, Rewriting]],
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Let texts be written anew, one after the other; the systems are closed at the end.

    Args:
        systems: those that `rewriting` asks.
        rewriting: writes a text anew for a query.
        texts: read as they are needed.
    """

    async def rewritten(text: str, query: str) -> MaskedText:
        return MaskedText((await rewriting(text, query)).text)

    with TextMasker(systems, rewritten) as masker:
        yield from map(masker, texts)


async def _mask(
    systems: Sequence[System], on_failure: OnFailure, text: str, query: str
) -> MaskedText:
    answers = await ask(text, query, systems, on_failure=on_failure)
    masked = mask(text, answers.entities, answers.needed or ())
    counts = Counts()
    counts.add(answers, masked, query, await find_in_query(query, systems))
    return MaskedText(masked.text, counts)


def mask_each_on_ray(
    name: str,
    options: SystemOptions,
    on_failure: OnFailure,
    workers: int,
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Mask texts in the processes of a Ray cluster; the same results, in the same order.

    Args:
        name: of the system, which each process builds for itself.
        options: of the system.
        on_failure: see `ask`.
        workers: how many processes.
        texts: read as they are needed.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    from pii_bench.runs.on_ray import map_on_ray

    return map_on_ray(partial(_build, name, options, on_failure), texts, workers)


def _build(name: str, options: SystemOptions, on_failure: OnFailure) -> TextMasker:
    systems = masking_systems(build_systems(name, options))
    return TextMasker(systems, partial(_mask, systems, on_failure))
