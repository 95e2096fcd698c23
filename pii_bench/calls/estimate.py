"""What a run will take, told without one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.calls.budget import cost
from pii_bench.calls.tokens import Range, input_tokens, output_tokens
from pii_bench.models.base import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.models.base import Request
    from pii_bench.models.table import Price


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
