"""Money and time to mask many documents, with a system and reviewers or by hand.

A figure that is neither measured nor given is None, and so is every sum that it is part of.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.base import CallError
from pii_bench.models.budget import cost
from pii_bench.models.catalog import find_card
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.rows import rank, system_name
from pii_bench.ranking.stored import rows_of
from pii_bench.runs.store import read_responses
from pii_bench.systems import ENCODER
from pii_bench.systems.base import THIS_MACHINE, close_all
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.catalog import Price
    from pii_bench.ranking.rows import Row, Source
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.records import RunRecord
    from pii_bench.systems.base import System

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions about documents and people.

    Attributes:
        documents: number of documents.
        wage: USD per hour.
        hand_seconds: time a person needs to mask a document by hand.
        review_seconds: time a person needs to check a document that a system masked.
    """

    documents: int
    wage: float
    hand_seconds: float
    review_seconds: float


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of all documents.

    Attributes:
        model_hours: time of the system, one document after another.
        people_hours: time of people who check, and who mask what the system failed on.
        people_usd: their pay.
        total_usd: cost of system and people.
        by_hand_usd: pay of people who mask everything by hand.
        saved_usd: `by_hand_usd` minus `total_usd`.
    """

    model_usd: float | None
    model_hours: float | None
    people_hours: float
    people_usd: float
    total_usd: float | None
    by_hand_usd: float
    saved_usd: float | None


def bill(
    assumed: Assumptions,
    *,
    usd_per_document: float | None,
    seconds_per_document: float | None,
    review_share: float = 1.0,
    failed: float = 0.0,
) -> Bill:
    """Compute the cost of masking all documents, given the cost and time of the system.

    People mask the share `failed`, on which the system has no answer, and check `review_share` of
    the other documents.
    """
    documents = assumed.documents
    checking = (1 - failed) * review_share * assumed.review_seconds
    people_hours = documents * (checking + failed * assumed.hand_seconds) / _HOUR
    by_hand = documents * assumed.hand_seconds / _HOUR * assumed.wage
    people = people_hours * assumed.wage
    model = None if usd_per_document is None else documents * usd_per_document
    hours = None if seconds_per_document is None else documents * seconds_per_document / _HOUR
    total = None if model is None else model + people
    return Bill(
        model_usd=model,
        model_hours=hours,
        people_hours=people_hours,
        people_usd=people,
        total_usd=total,
        by_hand_usd=by_hand,
        saved_usd=None if total is None else by_hand - total,
    )


def price_of(model: str) -> Price | None:
    """Return the price of the model `provider/id`, if the catalog has one."""
    provider, _, model_id = model.partition("/")
    card = find_card(provider, model_id)
    return None if card is None else card.price


def usd_per_document(records: Iterable[RunRecord], price: Price | None) -> float | None:
    """Return the mean price of the responses with counted tokens; None if there are none."""
    if price is None:
        return None
    return _mean_sum(
        (
            cost(done.usage, price, done.batched) if done.usage else None
            for done in record.completions
        )
        for record in records
    )


def stored_seconds_per_document(records: Iterable[RunRecord]) -> float | None:
    """Return the mean duration of the calls of a response, one after another, in seconds.

    None if no response has the durations of all its calls: those of batches and predictions have
    none.
    """
    return _mean_sum((done.seconds for done in record.completions) for record in records)


def _mean_sum(groups: Iterable[Iterable[float | None]]) -> float | None:
    """Return the mean over the sums of the groups, without empty ones and those with a None."""
    sums = []
    for group in groups:
        figures = list(group)
        total = _total(figures)
        if figures and total is not None:
            sums.append(total)
    return sum(sums) / len(sums) if sums else None


async def seconds_per_document(
    systems: Sequence[System], samples: Sequence[Sample], others: Iterable[System] = ()
) -> float | None:
    """Time systems that answer each sample one after the other, and close them and the others.

    The systems are those that a document needs, such as detection and relevance. The first sample
    only warms up.

    Returns:
        Mean wall time in seconds; None for fewer than two samples, or if a call failed.
    """
    started = 0.0
    try:
        for number, sample in enumerate(samples):
            if number == 1:
                started = time.perf_counter()
            for system in systems:
                await system.respond(sample)
    except CallError:
        return None
    finally:
        await close_all([*systems, *others])
    return (time.perf_counter() - started) / (len(samples) - 1) if len(samples) > 1 else None


@dataclass(frozen=True, slots=True)
class Given:
    """Figures that the user gives, which take precedence over those of stored runs.

    The first three are pairs of a system's name and its figure. The name is as in the
    leaderboard, or a model, or "" for all systems; the most specific one counts, and the last of
    several for the same name.

    Attributes:
        usd: USD per document.
        seconds: seconds per document.
        review_share: see `bill`; 1 by default.
        machine: USD per hour of this machine, for systems that run on it.
        measure: number of samples on which such systems are timed now; None for no timing.
    """

    usd: Sequence[tuple[str, float]] = ()
    seconds: Sequence[tuple[str, float]] = ()
    review_share: Sequence[tuple[str, float]] = ()
    machine: float = 0.0
    measure: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CostedSystem:
    """A row of the leaderboard with its cost and time per document, and the origin of both."""

    row: Row
    usd: float | None
    usd_from: str
    seconds: float | None
    seconds_from: str
    review_share: float

    @property
    def name(self) -> str:
        """The name of the system in the leaderboard."""
        return system_name(self.row.model, self.row.strategy)


def costed_systems(
    runs: Sequence[Run], dataset: str, task: Task, given: Given
) -> list[CostedSystem]:
    """Return the ranked rows of a dataset and task with the cost and time of each system.

    Oracles are left out. The dataset is given by its name or source.

    Raises:
        PiiBenchError: there is no row of the task.
        UnknownNameError: there is no run on the dataset, or no row of a system in `given`.
    """
    runs_of: dict[tuple[Source, str], tuple[Run, ...]] = {}
    rows, names = [], set[str]()
    for run in runs:
        reference = run.manifest.dataset
        names |= {reference.name, reference.source}
        if dataset not in {reference.name, reference.source} or run.manifest.system.oracle:
            continue
        for row in rows_of(run):
            if row.task is task:
                parts = (run.detection, run) if task is Task.MASKING else (run,)
                runs_of[row.source, row.signature] = tuple(part for part in parts if part)
                rows.append(row)
    if not rows:
        if dataset not in names:
            raise UnknownNameError("dataset", dataset, sorted(names), among="the stored runs")
        raise PiiBenchError(f"no {task} on {dataset} is stored")
    known = {name for row in rows for name in (system_name(row.model, row.strategy), row.model)}
    for name, _ in (*given.usd, *given.seconds, *given.review_share):
        if name and name not in known:
            raise UnknownNameError("system", name, sorted(known), among="the rows")
    result = []
    for row in rank(rows):
        own = runs_of[row.source, row.signature]
        seconds, seconds_from = _time(row, own, _given(given.seconds, row), given.measure)
        usd, usd_from = _money(own, _given(given.usd, row), seconds, given.machine)
        share = _given(given.review_share, row)
        share = 1.0 if share is None else share
        result.append(CostedSystem(row, usd, usd_from, seconds, seconds_from, share))
    return result


def _money(
    runs: Sequence[Run], given: float | None, seconds: float | None, machine: float
) -> tuple[float | None, str]:
    """Return USD per document and the origin of the figure."""
    if given is not None:
        return given, "--usd"
    if _all_local(runs):
        if machine and seconds is None:
            return None, "unknown: --machine needs its time"
        return machine * (seconds or 0.0) / _HOUR, "its time at --machine"
    parts, sources = [], []
    for run in runs:
        price = price_of(run.manifest.system.model)
        parts.append(usd_per_document(_records(run), price))
        if price is not None:
            sources.append(f"{price.rates} per million tokens, {price.date}, {price.source}")
    usd = _total(parts)
    if usd is None:
        return None, "unknown: no price or no counted tokens; give --usd"
    return usd, "stored tokens at " + "; ".join(dict.fromkeys(sources))


def _total(parts: Sequence[float | None]) -> float | None:
    """Return the sum; None if a part is unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _records(run: Run) -> Iterator[RunRecord]:
    if run.files is not None:
        yield from read_responses(run.files.responses, unreadable=[])


def _all_local(runs: Sequence[Run]) -> bool:
    return all(run.unmasked_text_to == THIS_MACHINE for run in runs)


def _time(
    row: Row, runs: Sequence[Run], given: float | None, measured: int | None
) -> tuple[float | None, str]:
    """Return seconds per document and the origin of the figure."""
    if given is not None:
        return given, "--seconds"
    if _all_local(runs) and measured is not None:
        return _measure(row, runs, measured)
    seconds = _total([stored_seconds_per_document(_records(run)) for run in runs])
    if seconds is None:
        timeable = " or --measure" if _all_local(runs) else ""
        return None, f"unknown: no times are stored; give --seconds{timeable}"
    return seconds, "stored durations of its calls"


def _measure(row: Row, runs: Sequence[Run], measured: int) -> tuple[float | None, str]:
    """Time the systems of a row now; return seconds per document and the origin of the figure."""
    prompted = row.strategy in STRATEGIES
    does_all = prompted or row.task is Task.DETECTION or row.model.partition(":")[0] == ENCODER
    name = row.model if does_all else f"{row.model}+{row.strategy}"
    options = SystemOptions(strategy=row.strategy if prompted else None)
    try:
        built = {
            (system.card.model, system.card.prompt): system
            for system in build_systems(name, options)
        }
    except PiiBenchError as error:
        return None, f"not measured: {error}"
    wanted = [(run.manifest.system.model, run.manifest.system.prompt) for run in runs]
    if not built.keys() >= set(wanted):
        asyncio.run(close_all(built.values()))
        return None, "not measured: today its name means another system"
    samples = applicable(row.task, runs[-1].dataset.samples)[: measured + 1]
    systems = [built[key] for key in wanted]
    others = [system for key, system in built.items() if key not in wanted]
    seconds = asyncio.run(seconds_per_document(systems, samples, others))
    if seconds is None:
        return None, "not measured: too few samples, or one without an answer"
    return seconds, f"measured now on this machine, {len(samples) - 1} samples of {row.dataset}"


def _given(pairs: Sequence[tuple[str, float]], row: Row) -> float | None:
    """Return the last figure for a system, else for its model, else for all systems."""
    numbers = dict(pairs)
    names = (system_name(row.model, row.strategy), row.model, "")
    return next((numbers[name] for name in names if name in numbers), None)
