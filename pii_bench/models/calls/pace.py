"""How many calls are made at a time and in a minute, which are tried again, and when to stop."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import SKIPPED_BUDGET, TRANSIENT, CallError

if TYPE_CHECKING:
    from pii_bench.models.base import Completion


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
            return CallError(error.kind, _join(error.detail, why), retry_after=asked)
        if attempt >= self.attempts:
            return CallError(error.kind, _join(error.detail, f"{attempt} attempts"))
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return asked + self.random.uniform(0.0, backoff)


def _join(detail: str, more: str) -> str:
    return f"{detail}; {more}" if detail else more


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

    def attempted(self, error: CallError, endpoint: str | None, now: float) -> None:
        """An attempt has failed.

        Args:
            error: how.
            endpoint: the base URL; None on this machine.
            now: seconds of a clock that only goes on.

        Raises:
            ProviderRefusedError: there was no connection, and has been none for long.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.heard()
            return
        if self._since is None:
            self._since = now
        if now - self._since >= self.patience:
            raise self._unreachable(endpoint, f"for {now - self._since:.0f} s")

    def failed(self, error: CallError, endpoint: str | None) -> None:
        """A call has failed for good.

        Args:
            error: its last attempt's.
            endpoint: the base URL; None on this machine.

        Raises:
            ProviderRefusedError: there was no connection, as for the calls before it.
        """
        if error.kind == SKIPPED_BUDGET:
            return
        if error.kind != "connection":
            self.heard()
            return
        self._lost += 1
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
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = self._allowed = maximum
        self._round = self._successes = 0

    @property
    def allowed(self) -> int:
        """Calls at a time."""
        return self._allowed

    @property
    def round(self) -> int:
        """How often the limit was halved: to be noted when a call starts."""
        return self._round

    def succeeded(self, started_in: int) -> None:
        """A call that started in a round was answered: as many as the limit raise it by 1."""
        if started_in != self._round or self._allowed == self._maximum:
            return
        self._successes += 1
        if self._successes >= self._allowed:
            self._allowed, self._successes = self._allowed + 1, 0

    def pushed_back(self, started_in: int) -> None:
        """A call that started in a round was one too many."""
        if started_in == self._round:
            self._allowed = max(1, self._allowed // 2)
            self._round, self._successes = self._round + 1, 0


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
    """

    def __init__(self, limit: AdaptiveLimit, rate: RateLimit | None = None) -> None:
        self._limit, self._rate = limit, rate
        self._in_flight = self._holds = 0
        self._held_until = 0.0
        self._queue: deque[tuple[int, asyncio.Future[Place]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._next: asyncio.Handle | None = None

    @property
    def in_flight(self) -> int:
        """Calls that have a place."""
        return self._in_flight

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
                self._in_flight -= 1
            self._admit()
            raise

    def leave(self, place: Place, outcome: Completion | CallError | None) -> None:
        """Give a place back.

        Args:
            place: what `enter` gave.
            outcome: what the call brought; None where it was given up, or refused for good.
        """
        self._in_flight -= 1
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
        while self._queue and (held > LONGEST_WAIT or self._in_flight < self._limit.allowed):
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
            self._in_flight += 1
            if self._rate:
                self._rate.take(tokens)
            turn.set_result(Place(self._limit.round, tokens))
            # One in each turn of the loop, so that a request is on its way before the next is
            # made: of those made together, each would wait for the last.
            self._next = loop.call_soon(self._admit_next)
            return
