"""What calls will cost and have cost, and the cap that they may not pass."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import SKIPPED_BUDGET, CallError, Usage
from pii_bench.models.calls.tokens import Range, input_tokens, output_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.models.base import Request
    from pii_bench.models.table import Price

NOTHING: Final = Usage(input_tokens=0, output_tokens=0)
"""What a call uses that was refused before any work was done."""

UNCHARGED: Final = frozenset({"rate_limit", "overloaded", "bad_request"})
"""Kinds of failure that no provider charges for: the call was turned away."""


def cost(usage: Usage, price: Price, batched: bool = False) -> float:
    """USD for the tokens of one call.

    What is not known costs the more: cached input without a price of its own is taken as any
    other, a batch without one as a single call, and input that may have been written to a
    cache, which no provider counts alike, as if it had been.
    """
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    usd = (
        (usage.input_tokens - cached) * max(price.input, price.cache_write or 0.0)
        + cached * cached_price
        + usage.output_tokens * price.output
    ) / 1e6
    return usd * price.batch_factor if batched and price.batch_factor is not None else usd


@dataclass(frozen=True, slots=True)
class Estimate:
    """What calls will take, failed attempts aside.

    Attributes:
        calls: one for each request.
        input_tokens: of all requests; `high` is a bound.
        output_tokens: of all answers, reasoning included; `high` is a bound.
        usd: None where no price is known.
    """

    calls: int
    input_tokens: Range[int]
    output_tokens: Range[int]
    usd: Range[float] | None


def estimate(
    requests: Iterable[Request],
    price: Price | None,
    *,
    reasons: bool = False,
    batched: bool = False,
) -> Estimate:
    """Add up what requests will take.

    Args:
        requests: each is one call.
        price: None where it is unknown.
        reasons: whether the model reasons before it answers.
        batched: whether they go into a batch, which costs another price.
    """
    calls = 0
    taken, written = Range(0, 0, 0), Range(0, 0, 0)
    for request in requests:
        calls += 1
        taken += input_tokens(request)
        written += output_tokens(request, reasons=reasons)
    return Estimate(calls, taken, written, _usd(taken, written, price, batched))


def _usd(
    taken: Range[int], written: Range[int], price: Price | None, batched: bool
) -> Range[float] | None:
    if price is None:
        return None
    return Range(
        low=cost(Usage(taken.low, written.low), price, batched),
        expected=cost(Usage(taken.expected, written.expected), price, batched),
        high=cost(Usage(taken.high, written.high), price, batched),
    )


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one call may cost at most, set aside until it has ended.

    Attributes:
        usd: 0 where no price is known.
        worst: the most tokens that it may take.
        batched: whether it goes into a batch.
    """

    usd: float
    worst: Usage
    batched: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """What calls have used.

    Attributes:
        calls: attempts, failed ones too.
        uncounted: those of them whose usage is unknown.
        usage: sum over the others.
        usd: of all calls, `uncounted` ones at their worst; None where no price is known.
        assumed_usd: the part of `usd` that stands for `uncounted` calls.
    """

    calls: int
    uncounted: int
    usage: Usage
    usd: float | None
    assumed_usd: float | None


class Ledger:
    """Counts what calls cost, and refuses those that might pass the cap.

    A call whose usage is not known counts as the most that it may cost: as many tokens of
    input as it has bytes, and the longest answer allowed. This holds for answers without
    usage and for failures that may have been charged: timeouts, broken connections, errors
    of the server, answers that cannot be read, calls that were given up. So the cap holds,
    and what is shown as spent may be more than the provider's bill.

    Args:
        price: None where it is unknown.
        cap_usd: the most that may be spent; None for no cap.

    Raises:
        PiiBenchError: a cap without a price.
    """

    def __init__(self, price: Price | None, cap_usd: float | None = None) -> None:
        if price is None and cap_usd is not None:
            raise PiiBenchError(
                f"--max-usd {cap_usd:g}: the model's price is unknown; "
                "give it with --price IN,OUT (USD per million tokens)"
            )
        self._price, self._cap = price, cap_usd
        self._spent = self._assumed = self._reserved = 0.0
        self._open = self._calls = self._uncounted = 0
        self._input = self._output = self._reasoning = self._cached = 0
        self._changed = asyncio.Event()

    @property
    def price(self) -> Price | None:
        """What is reckoned with."""
        return self._price

    @property
    def spent_usd(self) -> float | None:
        """What ended calls cost, those of unknown usage at their worst; None without a price."""
        return None if self._price is None else self._spent

    @property
    def reserved_usd(self) -> float:
        """What calls in flight may cost at most."""
        return self._reserved

    @property
    def totals(self) -> Totals:
        """What ended calls have used."""
        return Totals(
            calls=self._calls,
            uncounted=self._uncounted,
            usage=Usage(self._input, self._output, self._reasoning, self._cached),
            usd=self.spent_usd,
            assumed_usd=None if self._price is None else self._assumed,
        )

    def reserve(self, request: Request, *, batched: bool = False) -> Reservation:
        """Set aside what a call may cost; the caller must `settle` or `release` it.

        Raises:
            CallError: `SKIPPED_BUDGET`: with all that is in flight it might pass the cap.
        """
        return self._reserve(self._worst(request, batched))

    async def admit(self, request: Request, *, batched: bool = False) -> Reservation:
        """Like `reserve`, but wait where calls in flight may turn out to leave room.

        Raises:
            CallError: `SKIPPED_BUDGET`: it might pass the cap whatever they cost.
        """
        reservation = self._worst(request, batched)
        while self._fits(reservation, 0.0) and not self._fits(reservation, self._reserved):
            await self._changed.wait()
        return self._reserve(reservation)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """A call has ended.

        Args:
            reservation: what was set aside for it.
            usage: what it used; None where that is unknown, `NOTHING` where it was refused.
        """
        self._calls += 1
        counted = reservation.worst if usage is None else usage
        usd = cost(counted, self._price, reservation.batched) if self._price else 0.0
        self._spent += usd
        if usage is None:
            self._uncounted += 1
            self._assumed += usd
        else:
            self._input += usage.input_tokens
            self._output += usage.output_tokens
            self._reasoning += usage.reasoning_tokens
            self._cached += usage.cached_tokens
        self.release(reservation)

    def release(self, reservation: Reservation) -> None:
        """Give back what was set aside for a call that was not made."""
        self._open -= 1
        # Sums and differences of floats leave a remainder.
        self._reserved = self._reserved - reservation.usd if self._open else 0.0
        self._changed.set()
        self._changed.clear()

    def _worst(self, request: Request, batched: bool) -> Reservation:
        worst = Usage(input_tokens(request).high, request.sampling.max_tokens)
        usd = cost(worst, self._price, batched) if self._price else 0.0
        return Reservation(usd, worst, batched)

    def _fits(self, reservation: Reservation, reserved: float) -> bool:
        return self._cap is None or self._spent + reserved + reservation.usd <= self._cap

    def _reserve(self, reservation: Reservation) -> Reservation:
        if not self._fits(reservation, self._reserved):
            raise CallError(
                SKIPPED_BUDGET,
                f"may cost up to {reservation.usd:.4f} USD, spent or in flight are "
                f"{self._spent + self._reserved:.4f} of {self._cap:g} USD",
            )
        self._open += 1
        self._reserved += reservation.usd
        return reservation
