"""A model whose calls are retried, paced and paid for, as the user set it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError
from pii_bench.models.calls.budget import NOTHING, UNCHARGED, Ledger, input_tokens, output_tokens
from pii_bench.models.calls.pace import AdaptiveLimit, Pace, RateLimit, Reach, Retry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.models.base import Completion, Model, Request, Usage
    from pii_bench.models.catalog import Price


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
                self.reach.attempted(error, self.endpoint, now)
                next_step = self.retry.decide(attempt, error)
            else:
                self.reach.heard()
                return completion
            if isinstance(next_step, CallError):
                self.reach.failed(next_step, self.endpoint)
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
