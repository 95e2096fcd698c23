"""Calls to models: retries, pace, and a cap on cost."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.errors import ProviderRefusedError, ProviderUnavailableError
from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError
from pii_bench.models.budget import NOTHING, UNCHARGED, Ledger, input_tokens, output_tokens

if TYPE_CHECKING:
    from pii_bench.models.base import Completion, Model, Request, Usage
    from pii_bench.models.catalog import Price

MOST_CALLS: Final = 1000
"""Maximum number of concurrent calls."""

LONGEST_WAIT: Final = 120.0
"""Seconds that a server may ask to wait; a call that would have to wait longer fails."""


def asked_wait(detail: str) -> int:
    """Return the seconds too long to wait for, from the detail of a failure of `GuardedModel`.

    It is 0 for any other failure.
    """
    found = re.search(r"the server asks to wait (\d+) s", detail)
    return int(found[1]) if found else 0


_ATTEMPTS: Final = 5


def next_wait(attempt: int, error: CallError, random: Random) -> float | CallError:
    """Return the seconds to wait after a failed attempt, or the error that ends the call.

    A request gets at most five attempts, numbered from 1. The wait after attempt n is drawn
    uniformly from 0 to 2 ** n seconds (exponential backoff with full jitter; source: M. Brooker,
    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). A wait that the server asks
    for is added to it.
    """
    if error.kind not in TRANSIENT:
        return error
    asked = error.retry_after or 0.0
    if asked > LONGEST_WAIT:
        reason = f"the server asks to wait {asked:.0f} s, longer than {LONGEST_WAIT:.0f} s"
    elif attempt >= _ATTEMPTS:
        reason = f"{attempt} attempts"
    else:
        return asked + random.uniform(0.0, 2.0**attempt)
    detail = f"{error.detail}; {reason}" if error.detail else reason
    return CallError(error.kind, detail, retry_after=error.retry_after)


# Consecutive calls without a connection, and seconds without one, that end a run.
_MOST_FAILED_CALLS: Final = 3
_PATIENCE: Final = 30.0


class ConnectionWatch:
    """Ends a run whose server cannot be reached, instead of retrying for hours."""

    def __init__(self) -> None:
        self._failed_calls = 0
        self._since: float | None = None

    def connected(self) -> None:
        """Record that the server responded, with whatever result."""
        self._failed_calls, self._since = 0, None

    def failed(self, error: CallError, endpoint: str | None, now: float, *, last: bool) -> None:
        """Record a failed attempt, whether or not the last one of its call.

        The endpoint is None on this machine; `now` is in seconds of a monotonic clock.

        Raises:
            ProviderUnavailableError: there was no connection for too many calls or too long.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.connected()
            return
        if self._since is None:
            self._since = now
        if last:
            self._failed_calls += 1
        if now - self._since >= _PATIENCE:
            when = f"for {now - self._since:.0f} s"
        elif self._failed_calls >= _MOST_FAILED_CALLS:
            when = f"in {self._failed_calls} calls in a row"
        else:
            return
        raise ProviderUnavailableError(
            f"no connection to {endpoint or 'the model'} {when}: check that it is up and that the "
            "base URL is right, then run again to go on"
        )


# Refusals without a wait hold all calls for 1, 2, 4, ... seconds, at most this often in a row.
_MOST_HOLDS: Final = 7

# Shorter waits are rounding errors.
_NO_WAIT: Final = 1e-6


class _Bucket:
    """A token bucket; without a rate it has no limit.

    Up to one second's worth, and at least 1, can be saved. More than that may be taken when all
    are saved: then the level is negative, and the next call waits longer.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._per_second = (per_minute or 0.0) / 60
        self._size = self._level = max(1.0, self._per_second)
        self._filled_at = 0.0

    def wait(self, amount: float, now: float) -> float:
        if not self._per_second:
            return 0.0
        inflow = (now - self._filled_at) * self._per_second
        self._level, self._filled_at = min(self._size, self._level + inflow), now
        return max(0.0, (min(amount, self._size) - self._level) / self._per_second)

    def add(self, amount: float) -> None:
        self._level += amount


@dataclass(frozen=True, slots=True)
class Slot:
    """The permission to make one call: the round in which it starts, and the expected tokens."""

    round: int
    tokens: int


class Pace:
    """Lets calls start, first come, first served; `in_flight` is the number that have a slot.

    At most `allowed` calls have one: `maximum` at first. A refusal halves it and starts a new
    round; then as many answers as are allowed raise it by 1. Calls of an earlier round do not
    change it, so that the refusals of one round trip halve it once.

    Calls and tokens, of input and output together, are limited per minute and evenly spaced; None
    is no limit.
    """

    def __init__(
        self, maximum: int, requests: float | None = None, tokens: float | None = None
    ) -> None:
        self._maximum = self.allowed = maximum
        self._requests, self._tokens = _Bucket(requests), _Bucket(tokens)
        self.in_flight = self.round = self._successes = self._holds = 0
        self._held_until = 0.0
        # The call with the turn starts next; the others wait for it in the order of arrival.
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    def close(self) -> None:
        """Leave the event loop, when no call is in flight."""
        # Locks and events belong to the first event loop in which a call waits for them.
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    async def enter(self, tokens: int) -> Slot:
        """Wait for a slot for a call with so many expected tokens; the caller must `leave` it.

        Raises:
            CallError: the server asks to wait longer than `LONGEST_WAIT`.
        """
        async with self._turn:
            # Each request is sent before the next is prepared: if all were prepared first, each
            # would wait for the last.
            await asyncio.sleep(0)
            while (wait := self._seconds_to_wait(tokens)) is None or wait > _NO_WAIT:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
            self.in_flight += 1
            self._requests.add(-1)
            self._tokens.add(-tokens)
            return Slot(self.round, tokens)

    def leave(self, slot: Slot, outcome: Completion | CallError | None) -> None:
        """Free a slot; there is no outcome if the call was cancelled, or every call would fail."""
        self.in_flight -= 1
        if isinstance(outcome, CallError):
            # The provider says that there are too many calls.
            if outcome.kind in {"rate_limit", "overloaded"}:
                self._refused(slot, outcome.retry_after)
        elif outcome is not None:
            self._answered(slot, outcome.usage)
        self._changed.set()

    def _refused(self, slot: Slot, wait: float | None) -> None:
        """Hold all calls for `wait` seconds, if the provider names them, and lower the limit."""
        if slot.round == self.round:
            if wait is None and self.allowed == 1:
                self._holds += 1
                wait = 2.0 ** (self._holds - 1) if self._holds <= _MOST_HOLDS else 0.0
            self.allowed = max(1, self.allowed // 2)
            self.round, self._successes = self.round + 1, 0
        now = asyncio.get_running_loop().time()
        self._held_until = max(self._held_until, now + (wait or 0.0))

    def _answered(self, slot: Slot, usage: Usage | None) -> None:
        """Raise the limit after enough answers, and give back the tokens that were not used."""
        self._holds = 0
        if slot.round == self.round and self.allowed < self._maximum:
            self._successes += 1
            if self._successes >= self.allowed:
                self.allowed, self._successes = self.allowed + 1, 0
        if usage is not None:
            self._tokens.add(slot.tokens - usage.input_tokens - usage.output_tokens)

    def _seconds_to_wait(self, tokens: int) -> float | None:
        """Return the seconds until the next call may start; None if another has to end first."""
        now = asyncio.get_running_loop().time()
        held = self._held_until - now
        if held > LONGEST_WAIT:
            raise CallError("rate_limit", "not sent", retry_after=held)
        if self.in_flight >= self.allowed:
            return None
        return max(held, self._requests.wait(1, now), self._tokens.wait(tokens, now))


class GuardedModel:
    """A `Model` that adds retries, pace and a budget to another; name and answers are the same.

    All systems that use the model share it.
    """

    def __init__(
        self, model: Model, pace: Pace, ledger: Ledger, random: Random | None = None
    ) -> None:
        self.model, self.pace, self.ledger = model, pace, ledger
        # Retries and pace do not change the answers.
        self.name, self.identity, self.endpoint = model.name, model.identity, model.endpoint
        self._connection, self._random = ConnectionWatch(), random or Random()

    async def complete(self, request: Request) -> Completion:
        """Answer one request with as many attempts as needed and allowed.

        Raises:
            CallError: the last attempt failed, or `SKIPPED_BUDGET`: the next attempt might have
                exceeded the cap.
            ProviderRefusedError: every call would fail, or the server cannot be reached.
        """
        attempt = 1
        while True:
            try:
                completion = await self._attempt(request)
            except CallError as error:
                decision = next_wait(attempt, error, self._random)
                now = asyncio.get_running_loop().time()
                last = isinstance(decision, CallError)
                self._connection.failed(error, self.endpoint, now, last=last)
            else:
                self._connection.connected()
                return completion
            if isinstance(decision, CallError):
                raise decision
            await asyncio.sleep(decision)
            attempt += 1

    async def close(self) -> None:
        """Close the inner model; the next calls may be in another event loop."""
        await self.model.close()
        self.pace.close()
        self.ledger.close()

    async def _attempt(self, request: Request) -> Completion:
        # The budget comes first: a call over the cap takes no slot from calls within it.
        reserved = await self.ledger.admit(request)
        try:
            expected = input_tokens(request).expected + output_tokens(request).expected
            slot = await self.pace.enter(expected)
        except BaseException:
            self.ledger.release(reserved)
            raise
        usage: Usage | None = None
        outcome: Completion | CallError | None = None
        try:
            clock = asyncio.get_running_loop().time
            start = clock()
            answer = await self.model.complete(request)
            outcome = replace(answer, seconds=clock() - start)
            usage = outcome.usage
        except CallError as error:
            outcome = error
            usage = NOTHING if error.kind in UNCHARGED else None
            raise
        except ProviderRefusedError:
            usage = NOTHING
            raise
        finally:
            self.ledger.settle(reserved, usage)
            self.pace.leave(slot, outcome)
        return outcome


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The user's settings of calls; none of them changes the requests. None is no limit.

    The price overrides the one in the table of models.
    """

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_usd: float | None = None
    price: Price | None = None

    def guard(self, model: Model, listed: Price | None) -> GuardedModel:
        """Return a model whose calls follow these settings; `listed` is its price in the table.

        Raises:
            PiiBenchError: a cap without a price.
        """
        pace = Pace(self.concurrency, self.requests_per_minute, self.tokens_per_minute)
        return GuardedModel(model, pace, Ledger(self.price or listed, self.max_usd))
