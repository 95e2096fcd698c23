"""What masking many documents takes in money and time, with people who review, or by hand.

Nothing is guessed: what is neither measured nor given is None, and so is every sum of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.models.base import CallError
from pii_bench.models.budget import cost
from pii_bench.models.catalog import find_card

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.catalog import Price
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
