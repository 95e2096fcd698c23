"""What the stored responses of a run took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.models.calls.budget import cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.models.table import Price
    from pii_bench.runs.records import RunRecord


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the completions that are stored; attempts that failed are in none of them.

    Attributes:
        completions: one per response, several where draws vote.
        uncounted: those whose tokens are unknown; they are in no sum.
        input_tokens: cached ones too.
        output_tokens: reasoning too.
        reasoning_tokens: a part of the output.
        cached_tokens: a part of the input.
        usd: of those that were counted; None where no price is known.
        price: what was reckoned with: USD per million tokens in and out, its day and source;
            None where no price is known.
    """

    completions: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    price: str | None = None


def total(records: Iterable[RunRecord], price: Price | None) -> Totals:
    """Add up the completions of a run's records."""
    completions = [completion for record in records for completion in record.completions]
    counted = [(each.usage, each.batched) for each in completions if each.usage is not None]
    usages = [usage for usage, _ in counted]
    return Totals(
        completions=len(completions),
        uncounted=len(completions) - len(counted),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        usd=None
        if price is None
        else round(sum(cost(usage, price, batched) for usage, batched in counted), 6),
        price=None
        if price is None
        else f"{price.input:g} in, {price.output:g} out, {price.date}, {price.source}",
    )
