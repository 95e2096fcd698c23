"""How the calls of one run are made: what the user set, put around a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.calls.budget import Ledger
from pii_bench.calls.guarded import GuardedModel
from pii_bench.calls.pace import AdaptiveLimit, Pace, RateLimit
from pii_bench.calls.retry import Retry

if TYPE_CHECKING:
    from pii_bench.models.base import Model
    from pii_bench.models.table import Price


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What the user set; nothing of it changes what is asked.

    Attributes:
        concurrency: the most calls at a time, at least 1.
        requests_per_minute: None where no limit is known.
        tokens_per_minute: None where no limit is known.
        max_usd: the most that the calls may cost; None for no cap.
        price: in the place of the one in the table of models; None for that one.
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
