"""What masking many documents takes in money and time, with people who review, or by hand.

Nothing is guessed: what is neither measured nor given is None, and so is every sum of it.
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
from pii_bench.runs.store import read_lines
from pii_bench.systems import ENCODER
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.catalog import Price
    from pii_bench.ranking.rows import Row, Source
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.records import RunRecord
    from pii_bench.systems.base import System
    from pii_bench.tasks import Status

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What no run can tell.

    Attributes:
        documents: how many there are.
        wage: of the people, USD per hour.
        hand_seconds: what a person takes to mask one document by hand.
        review_seconds: what a person takes to check one that a system masked.
        review_share: of the documents that a system masked, those that a person checks because
            the system is not confident enough, 0 to 1.
    """

    documents: int
    wage: float
    hand_seconds: float
    review_seconds: float
    review_share: float


@dataclass(frozen=True, slots=True)
class Bill:
    """What a system and the people around it take for all documents.

    Attributes:
        model_usd: of the system; None where it is unknown.
        model_hours: of the system, one document after another; None where it is unknown.
        people_hours: of those who check, and who mask by hand what the system failed on.
        people_usd: for them.
        total_usd: of system and people; None where that of the system is unknown.
        by_hand_usd: what people take who mask all of it.
        saved_usd: what is left of that; below 0 where the system makes it dearer.
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
    failed: float = 0.0,
) -> Bill:
    """What masking all documents takes.

    Args:
        assumed: documents and people.
        usd_per_document: of the system; None where it is unknown.
        seconds_per_document: of the system; None where it is unknown.
        failed: share of the documents that the system gives no answer to, which people mask.
    """
    documents = assumed.documents
    checking = (1 - failed) * assumed.review_share * assumed.review_seconds
    people_hours = documents * (checking + failed * assumed.hand_seconds) / _HOUR
    by_hand = documents * assumed.hand_seconds / _HOUR * assumed.wage
    people = people_hours * assumed.wage
    model = None if usd_per_document is None else documents * usd_per_document
    total = None if model is None else model + people
    return Bill(
        model_usd=model,
        model_hours=None
        if seconds_per_document is None
        else documents * seconds_per_document / _HOUR,
        people_hours=people_hours,
        people_usd=people,
        total_usd=total,
        by_hand_usd=by_hand,
        saved_usd=None if total is None else by_hand - total,
    )


def price_of(model: str) -> Price | None:
    """The price in the table of models of `provider/name`; None where none is known."""
    provider, _, model_id = model.partition("/")
    card = find_card(provider, model_id)
    return None if card is None else card.price


def usd_per_document(records: Iterable[RunRecord], price: Price | None) -> float | None:
    """The mean price of a response whose tokens are all counted; None where there is none."""
    if price is None:
        return None
    counted = [
        sum(cost(each.usage, price, each.batched) for each in record.completions if each.usage)
        for record in records
        if record.completions and all(each.usage for each in record.completions)
    ]
    return sum(counted) / len(counted) if counted else None


def failed_share(rates: Mapping[Status, float] | None) -> float:
    """Of the samples that a system was scored on, the share that it gave no answer to."""
    scored = {status: rate for status, rate in (rates or {}).items() if status.scored}
    whole = sum(scored.values())
    failed = sum(rate for status, rate in scored.items() if not status.answered)
    return failed / whole if whole else 0.0


async def seconds_per_document(
    systems: Sequence[System], samples: Sequence[Sample]
) -> float | None:
    """Time systems that answer each document one after the other.

    Args:
        systems: all that one document takes, such as detection and relevance.
        samples: the first only warms up; None comes back where no other is left.

    Returns:
        Mean wall time, in seconds; None where a sample got no answer.
    """
    begun = 0.0
    try:
        for number, sample in enumerate(samples):
            if number == 1:
                begun = time.perf_counter()
            for system in systems:
                await system.respond(sample)
    except CallError:
        return None
    finally:
        for system in systems:
            await system.close()
    return (time.perf_counter() - begun) / (len(samples) - 1) if len(samples) > 1 else None


@dataclass(frozen=True, slots=True)
class Given:
    """What stored runs do not tell, or what counts instead of it.

    The first three are pairs of a system, as the leaderboard names it, and its figure; the last
    of a system counts, else that of its model, else that of "".

    Attributes:
        usd: per document.
        seconds: per document.
        review_share: see `Assumptions`; 1 where none is given.
        machine: USD per hour of this machine, for systems that run on it.
        measure: on how many samples such systems are timed now; None for none.
    """

    usd: Sequence[tuple[str, float]] = ()
    seconds: Sequence[tuple[str, float]] = ()
    review_share: Sequence[tuple[str, float]] = ()
    machine: float = 0.0
    measure: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CostedSystem:
    """A row of the leaderboard, and what one document takes: each with where that is from."""

    row: Row
    usd: float | None
    usd_from: str
    seconds: float | None
    seconds_from: str
    review_share: float

    @property
    def name(self) -> str:
        """As the leaderboard names it."""
        return system_name(self.row.model, self.row.strategy)


def costed_systems(
    runs: Sequence[Run], dataset: str, task: Task, given: Given
) -> list[CostedSystem]:
    """The rows of a dataset and task as the leaderboard ranks them, with what each takes.

    Args:
        runs: that are stored, oracles among them are left out.
        dataset: its name or path.
        task: of the rows; masking takes detection and the query's answer.
        given: what is not read from the runs.

    Raises:
        PiiBenchError: no row is of that dataset and task.
        UnknownNameError: none is of that dataset, or something is given of a system without row.
    """
    behind: dict[tuple[Source, str], tuple[Run, ...]] = {}
    rows, sets = [], set[str]()
    for each in runs:
        reference = each.manifest.dataset
        sets |= {reference.name, reference.source}
        if dataset not in {reference.name, reference.source} or (each.manifest.system.oracle):
            continue
        for row in rows_of(each):
            if row.task is task:
                asked = (each.detection, each) if task is Task.MASKING else (each,)
                behind[row.source, row.signature] = tuple(part for part in asked if part)
                rows.append(row)
    if not rows:
        if dataset not in sets:
            raise UnknownNameError("dataset among the stored runs", dataset, sets)
        raise PiiBenchError(f"no {task} on {dataset} is stored")
    ranked = rank(rows)
    _require_known([*given.usd, *given.seconds, *given.review_share], ranked)
    result = []
    for row in ranked:
        own = behind[row.source, row.signature]
        time, time_from = _time(row, own, _given(given.seconds, row), given.measure)
        money, money_from = _money(own, _given(given.usd, row), time, given.machine)
        share = _given(given.review_share, row)
        share = 1.0 if share is None else share
        result.append(CostedSystem(row, money, money_from, time, time_from, share))
    return result


def _money(
    runs: Sequence[Run], given: float | None, seconds: float | None, machine: float
) -> tuple[float | None, str]:
    """USD per document, and where that is from."""
    if given is not None:
        return given, "--usd"
    if all(_is_local(run) for run in runs):
        if machine and seconds is None:
            return None, "unknown: --machine needs its time"
        return machine * (seconds or 0.0) / 3600, "its time at --machine"
    parts, sources = [], []
    for run in runs:
        price = price_of(run.manifest.system.model)
        records = [] if run.files is None else read_lines(run.files.responses, unreadable=[])
        parts.append(usd_per_document((record for _, record in records), price))
        if price is not None:
            sources.append(
                f"{price.input:g} in, {price.output:g} out per million tokens, {price.date}, "
                f"{price.source}"
            )
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None, "unknown: no price or no counted tokens; give --usd"
    return sum(known), "stored tokens at " + "; ".join(dict.fromkeys(sources))


def _is_local(run: Run) -> bool:
    return run.manifest.system.unmasked_text_to == THIS_MACHINE


def _time(
    row: Row, runs: Sequence[Run], given: float | None, measured: int | None
) -> tuple[float | None, str]:
    """Seconds per document, and where that is from."""
    if given is not None:
        return given, "--seconds"
    if measured is None or not all(_is_local(run) for run in runs):
        return None, "unknown: stored runs hold no times; give --seconds or --measure"
    prompted = row.strategy in STRATEGIES
    alone = prompted or row.task is Task.DETECTION or row.model.partition(":")[0] == ENCODER
    name = row.model if alone else f"{row.model}+{row.strategy}"
    options = SystemOptions(strategy=row.strategy if prompted else None)
    try:
        built = {(each.card.model, each.card.prompt): each for each in build_systems(name, options)}
    except PiiBenchError as error:
        return None, f"not measured: {error}"
    cards = [run.manifest.system for run in runs]
    systems = [built[key] for card in cards if (key := (card.model, card.prompt)) in built]
    if len(systems) < len(cards):
        return None, "not measured: today its name means another system"
    samples = applicable(row.task, runs[-1].dataset.samples)[: measured + 1]
    seconds = asyncio.run(seconds_per_document(systems, samples))
    if seconds is None:
        return None, "not measured: too few samples, or one without an answer"
    return seconds, f"measured now on this machine, {len(samples) - 1} samples of {row.dataset}"


def _given(pairs: Sequence[tuple[str, float]], row: Row) -> float | None:
    """What was given last for a system, else for its model, else for all."""
    numbers = dict(pairs)
    names = (system_name(row.model, row.strategy), row.model, "")
    return next((numbers[name] for name in names if name in numbers), None)


def _require_known(pairs: Sequence[tuple[str, float]], rows: Sequence[Row]) -> None:
    known = {name for row in rows for name in (system_name(row.model, row.strategy), row.model)}
    for name, _ in pairs:
        if name and name not in known:
            raise UnknownNameError("system among the rows", name, sorted(known))
