"""Calls to models: retried, paced, and paid for under a cap, as the user set it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError
from pii_bench.models.budget import NOTHING, UNCHARGED, Ledger, input_tokens, output_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.models.base import Completion, Model, Request, Usage
    from pii_bench.models.catalog import Price

MOST_CALLS: Final = 1000
"""At a time."""

LONGEST_WAIT: Final = 120.0
"""Seconds that a server may ask to wait; a call is not made after a longer wait, but fails."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Bounded attempts with exponential backoff and full jitter.

    The wait before attempt n + 1 is drawn evenly from 0 to `first_wait` * 2 ** (n - 1),
    at most `longest_wait`. Where the server says how long to wait, the draw comes on top.
    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Attributes:
        attempts: calls for one request in all, at least 1.
        first_wait: seconds, the longest first wait.
        longest_wait: seconds.
        random: where the jitter comes from.
    """

    attempts: int = 5
    first_wait: float = 2.0
    longest_wait: float = 60.0
    random: Random = field(default_factory=Random)

    def decide(self, attempt: int, error: CallError) -> float | CallError:
        """What follows on a failed attempt.

        Args:
            attempt: its number, from 1.
            error: how it failed.

        Returns:
            Seconds to wait before the next attempt, or the error that ends the call.
        """
        if error.kind not in TRANSIENT:
            return error
        asked = error.retry_after or 0.0
        if asked > LONGEST_WAIT:
            why = f"the server asks to wait {asked:.0f} s, longer than {LONGEST_WAIT:.0f} s"
        elif attempt >= self.attempts:
            why = f"{attempt} attempts"
        else:
            backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
            return asked + self.random.uniform(0.0, backoff)
        detail = f"{error.detail}; {why}" if error.detail else why
        return CallError(error.kind, detail, retry_after=error.retry_after)


@dataclass(slots=True)
class Reach:
    """Counts calls in a row that found no connection, each after all its attempts.

    Without it a run against a server that is down would wait for hours, call by call.

    Attributes:
        most: so many end the run, at least 1.
        patience: seconds without any connection that end it too, however few calls there were.
    """

    most: int = 3
    patience: float = 30.0
    _lost: int = field(default=0, init=False)
    _since: float | None = field(default=None, init=False)

    def heard(self) -> None:
        """Somebody answered, be it with a refusal."""
        self._lost, self._since = 0, None

    def failed(self, error: CallError, endpoint: str | None, now: float, *, for_good: bool) -> None:
        """An attempt has failed.

        Args:
            error: how.
            endpoint: the base URL; None on this machine.
            now: seconds of a clock that only goes on.
            for_good: whether it was the last of its call.

        Raises:
            ProviderRefusedError: there was no connection, as for the calls before it or for long.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.heard()
            return
        self._since = now if self._since is None else self._since
        self._lost += for_good
        if now - self._since >= self.patience:
            raise self._unreachable(endpoint, f"for {now - self._since:.0f} s")
        if self._lost >= self.most:
            raise self._unreachable(endpoint, f"in {self._lost} calls in a row")

    @staticmethod
    def _unreachable(endpoint: str | None, when: str) -> ProviderRefusedError:
        return ProviderRefusedError(
            f"no connection to {endpoint or 'the model'} {when}: check that it is up and that the "
            "base URL is right, then run again to go on"
        )


PUSHED_BACK: Final = frozenset({"rate_limit", "overloaded"})
"""Kinds of failure by which a provider says that there are too many calls."""

# Of 1, 2, 4, ... seconds, until there is an answer.
_MOST_HOLDS: Final = 7

# Shorter than a clock's tick: what is left of a wait by rounding.
_NO_WAIT: Final = 1e-6


class AdaptiveLimit:
    """How many calls may be in flight: from `maximum` down to 1, and up again.

    Calls that started before the limit was last halved tell nothing about the limit as it
    is now. They do not change it, so that one round trip halves it once.

    Args:
        maximum: calls at a time, at least 1; where it starts.

    Attributes:
        allowed: calls at a time.
        round: how often the limit was halved: to be noted when a call starts.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = self.allowed = maximum
        self.round = self._successes = 0

    def succeeded(self, started_in: int) -> None:
        """A call that started in a round was answered: as many as the limit raise it by 1."""
        if started_in != self.round or self.allowed == self._maximum:
            return
        self._successes += 1
        if self._successes >= self.allowed:
            self.allowed, self._successes = self.allowed + 1, 0

    def pushed_back(self, started_in: int) -> None:
        """A call that started in a round was one too many."""
        if started_in == self.round:
            self.allowed = max(1, self.allowed // 2)
            self.round, self._successes = self.round + 1, 0


class RateLimit:
    """How many calls and tokens may start in a minute, spaced evenly.

    At most what one second brings, and at least one call, is saved up. A call that needs
    more tokens than that starts when all is saved up, and what follows it waits longer.

    Args:
        requests: per minute, above 0; None for no limit.
        tokens: of input and output together per minute, above 0; None for no limit.
    """

    def __init__(self, requests: float | None = None, tokens: float | None = None) -> None:
        self._requests = _Bucket(requests) if requests is not None else None
        self._tokens = _Bucket(tokens) if tokens is not None else None

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until a call that takes so many tokens may start."""
        return max(
            self._requests.wait(1, now) if self._requests else 0.0,
            self._tokens.wait(tokens, now) if self._tokens else 0.0,
        )

    def take(self, tokens: int) -> None:
        """A call starts that takes so many tokens."""
        if self._requests:
            self._requests.add(-1)
        if self._tokens:
            self._tokens.add(-tokens)

    def correct(self, tokens: int) -> None:
        """A call took so many tokens fewer than was thought; more where it is below 0."""
        if self._tokens:
            self._tokens.add(tokens)


class _Bucket:
    """Something that comes in evenly and is saved up to a size; it may be owed."""

    def __init__(self, per_minute: float) -> None:
        self._per_second = per_minute / 60
        self._size = self._level = max(1.0, self._per_second)
        self._filled_at = 0.0

    def wait(self, amount: float, now: float) -> float:
        came = (now - self._filled_at) * self._per_second
        self._level, self._filled_at = min(self._size, self._level + came), now
        return max(0.0, (min(amount, self._size) - self._level) / self._per_second)

    def add(self, amount: float) -> None:
        self._level += amount


@dataclass(frozen=True, slots=True)
class Place:
    """The leave to make one call: the round of the limit, the tokens that were thought."""

    round: int
    tokens: int


class Pace:
    """Lets calls start, in the order in which they came.

    Args:
        limit: how many at a time.
        rate: how many in a minute, where it is known.

    Attributes:
        in_flight: calls that have a place.
    """

    def __init__(self, limit: AdaptiveLimit, rate: RateLimit | None = None) -> None:
        self._limit, self._rate = limit, rate
        self.in_flight = self._holds = 0
        self._held_until = 0.0
        self._queue: deque[tuple[int, asyncio.Future[Place]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._next: asyncio.Handle | None = None

    async def enter(self, tokens: int) -> Place:
        """Wait for a place; who gets one must `leave` it.

        Args:
            tokens: of input and output, as far as they are known before the call.

        Raises:
            CallError: the server asks to wait longer than `LONGEST_WAIT` before any call.
        """
        turn: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, turn))
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            # The place came after its taker had left.
            if not turn.cancelled() and turn.exception() is None:
                self.in_flight -= 1
            self._admit()
            raise

    def leave(self, place: Place, outcome: Completion | CallError | None) -> None:
        """Give a place back.

        Args:
            place: what `enter` gave.
            outcome: what the call brought; None where it was given up, or refused for good.
        """
        self.in_flight -= 1
        if isinstance(outcome, CallError):
            if outcome.kind in PUSHED_BACK:
                wait = self._hold(place) if outcome.retry_after is None else outcome.retry_after
                self._limit.pushed_back(place.round)
                now = asyncio.get_running_loop().time()
                self._held_until = max(self._held_until, now + wait)
        elif outcome is not None:
            self._holds = 0
            self._limit.succeeded(place.round)
            if self._rate and (usage := outcome.usage):
                self._rate.correct(place.tokens - usage.input_tokens - usage.output_tokens)
        self._admit()

    def _hold(self, place: Place) -> float:
        """Seconds to hold calls after a refusal that names none."""
        if self._limit.allowed > 1 or place.round != self._limit.round:
            return 0.0
        self._holds += 1
        return 2.0 ** (self._holds - 1) if self._holds <= _MOST_HOLDS else 0.0

    def _admit_next(self) -> None:
        self._next = None
        self._admit()

    def _admit(self) -> None:
        """Give a place to the first who waits, as soon as there is one."""
        if self._next:
            return
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if not self._queue:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        held = self._held_until - now
        while self._queue and (held > LONGEST_WAIT or self.in_flight < self._limit.allowed):
            tokens, turn = self._queue[0]
            if turn.done():
                self._queue.popleft()
                continue
            if held > LONGEST_WAIT:
                self._queue.popleft()
                turn.set_exception(CallError("rate_limit", "not sent", retry_after=held))
                continue
            if (wait := max(held, self._rate.wait(tokens, now) if self._rate else 0.0)) > _NO_WAIT:
                self._timer = loop.call_later(wait, self._admit)
                return
            self._queue.popleft()
            self.in_flight += 1
            if self._rate:
                self._rate.take(tokens)
            turn.set_result(Place(self._limit.round, tokens))
            # One in each turn of the loop, so that a request is on its way before the next is
            # made: of those made together, each would wait for the last.
            self._next = loop.call_soon(self._admit_next)
            return


@dataclass(frozen=True, slots=True)
class GuardedModel:
    """A `Model` around a `Model`: what it answers is the same, and so is its name.

    Attributes:
        model: makes one attempt a call.
        retry: whether there is another attempt.
        pace: when an attempt is made; one for all systems that share the model.
        ledger: what attempts cost; one for all of them too.
        reach: whether anybody answers; one for all of them too.
    """

    model: Model
    retry: Retry
    pace: Pace
    ledger: Ledger
    reach: Reach = field(default_factory=Reach)

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    @property
    def identity(self) -> Mapping[str, str]:
        """The model's: how a call is made does not change its answer."""
        return self.model.identity

    @property
    def endpoint(self) -> str | None:
        """The model's."""
        return self.model.endpoint

    async def complete(self, request: Request) -> Completion:
        """Answer one request with as many attempts as it takes and `retry` allows.

        Raises:
            CallError: the last attempt's failure, or `SKIPPED_BUDGET`: the next attempt might
                have passed the cap.
            ProviderRefusedError: every call would fail; or several calls in a row found no
                connection.
        """
        attempt = 1
        while True:
            try:
                completion = await self._attempt(request)
            except CallError as error:
                now = asyncio.get_running_loop().time()
                next_step = self.retry.decide(attempt, error)
                for_good = isinstance(next_step, CallError)
                self.reach.failed(error, self.endpoint, now, for_good=for_good)
            else:
                self.reach.heard()
                return completion
            if isinstance(next_step, CallError):
                raise next_step
            await asyncio.sleep(next_step)
            attempt += 1

    async def close(self) -> None:
        """Close the model."""
        await self.model.close()

    async def _attempt(self, request: Request) -> Completion:
        # Money first: a call that the cap forbids takes no place from those that it allows.
        reservation = await self.ledger.admit(request)
        try:
            expected = input_tokens(request).expected + output_tokens(request).expected
            place = await self.pace.enter(expected)
        except BaseException:
            self.ledger.release(reservation)
            raise
        usage: Usage | None = None
        outcome: Completion | CallError | None = None
        try:
            clock = asyncio.get_running_loop().time
            begun = clock()
            answer = await self.model.complete(request)
            outcome = replace(answer, seconds=clock() - begun)
            usage = outcome.usage
        except CallError as error:
            outcome = error
            usage = NOTHING if error.kind in UNCHARGED else None
            raise
        except ProviderRefusedError:
            usage = NOTHING
            raise
        finally:
            self.ledger.settle(reservation, usage)
            self.pace.leave(place, outcome)
        return outcome


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What the user set; nothing of it changes what is asked.

    Attributes:
        concurrency: the most calls at a time, at least 1.
        requests_per_minute: None where no limit is known.
        tokens_per_minute: None where no limit is known.
        max_usd: the most that the calls may cost; None for no cap.
        price: instead of the one in the table of models; None for that one.
    """

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_usd: float | None = None
    price: Price | None = None

    def guard(self, model: Model, listed: Price | None) -> GuardedModel:
        """A model whose calls keep to this.

        Args:
            model: makes one attempt a call.
            listed: what the table of models says that it costs; None where that is unknown.

        Raises:
            PiiBenchError: a cap without a price.
        """
        limits = RateLimit(self.requests_per_minute, self.tokens_per_minute)
        paced = Pace(
            AdaptiveLimit(self.concurrency),
            limits if self.requests_per_minute or self.tokens_per_minute else None,
        )
        return GuardedModel(model, Retry(), paced, Ledger(self.price or listed, self.max_usd))
