"""Estimates of tokens and cost, and the cap on the cost of calls."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import SKIPPED_BUDGET, CallError, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.models.base import Request
    from pii_bench.models.catalog import Price


Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Range(Generic[Number]):
    """An estimate: lowest, expected and highest value."""

    low: Number
    expected: Number
    high: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)


# Bytes of a request per token.
_BYTES: Final = Range(low=5.0, expected=3.5, high=1.0)
# Tokens besides the texts: marks of roles and turns, and a provider's text about a schema.
_OVERHEAD: Final = Range(low=0, expected=10, high=500)

# Bytes of a detection's answer per byte of the request, (lowest, expected), and per token: JSON
# is dense. Measured on gold answers: 0.08 in `single`, 0.16 in `multi`, 0.23 in `distract`.
_DETECTION_SHARE: Final = (0.05, 0.15)
_ANSWER_BYTES: Final = 2.5
# The same for a rewritten text, which is prose; the request contains a page of rules.
_REWRITE_SHARE: Final = (0.05, 0.4)

# Tokens of an answer, (lowest, expected). Assumptions: a gold list has 20 to 50 tokens, a
# demonstration's reasoning 160; the rest follows from the parts that a prompt asks for.
_ANSWERS: Final[Mapping[str, tuple[int, int]]] = {
    "naive": (5, 40),
    "naive-choice": (5, 40),
    "self-cot": (50, 250),
    "auto-cot": (50, 200),
    "ps-cot": (100, 400),
    "self-consistency": (150, 700),
    "self-consistency-vote": (50, 250),
    "json": (10, 150),
}
_OTHER_ANSWER: Final = (1, 500)
# Tokens of reasoning before the answer. An assumption: models differ more than prompts do.
_REASONING: Final = (100, 1000)


def input_tokens(request: Request) -> Range[int]:
    """Estimate the tokens of a request; `high` is an upper bound."""
    return text_tokens(_texts(request)) + _OVERHEAD


def text_tokens(texts: Iterable[str]) -> Range[int]:
    """Estimate the tokens of texts, without marks of roles and turns; `high` is an upper bound."""
    size = sum(map(_bytes, texts))
    return Range(
        low=math.ceil(size / _BYTES.low),
        expected=math.ceil(size / _BYTES.expected),
        high=math.ceil(size / _BYTES.high),
    )


def output_tokens(request: Request, *, reasons: bool = False) -> Range[int]:
    """Estimate the tokens of the answer to a request; `high` is the request's `max_tokens`.

    The prompt determines the length of the answer. Reasoning before it counts.
    """
    # The answer to `naive+schema` is that to `naive`.
    name = request.prompt.partition("+")[0]
    size = sum(map(_bytes, _texts(request)))
    if name == "detection":
        low, expected = (math.ceil(size * share / _ANSWER_BYTES) for share in _DETECTION_SHARE)
    elif name == "rewrite":
        low, expected = (math.ceil(size * share / _BYTES.expected) for share in _REWRITE_SHARE)
    else:
        low, expected = _ANSWERS.get(name, _OTHER_ANSWER)
    if reasons:
        low, expected = low + _REASONING[0], expected + _REASONING[1]
    longest = request.sampling.max_tokens
    return Range(min(low, longest), min(expected, longest), longest)


def _texts(request: Request) -> list[str]:
    """Return all that is sent as text."""
    texts = [message.content for message in request.messages]
    if request.schema is not None:
        texts.append(json.dumps(dict(request.schema.schema)))
    return texts


def _bytes(text: str) -> int:
    # A lone surrogate, which UTF-8 cannot encode, is sent as three bytes or as an escape.
    return len(text.encode("utf-8", "surrogatepass"))


NOTHING: Final = Usage(input_tokens=0, output_tokens=0)
"""The usage of a call that was refused before any work was done."""

UNCHARGED: Final = frozenset({"rate_limit", "overloaded", "bad_request"})
"""Kinds of failure that no provider charges for."""


def cost(usage: Usage, price: Price, batched: bool = False) -> float:
    """Return the cost of one call in USD.

    Cached tokens are at most the input, as in a `Completion`.

    If a price is unknown, the higher one is used: cached input costs as much as other input, a
    batch as much as single calls. If cache writes have a price, all uncached input is charged as
    written to the cache.
    """
    cached_price = price.input if price.cached_input is None else price.cached_input
    usd = (
        (usage.input_tokens - usage.cached_tokens) * max(price.input, price.cache_write or 0.0)
        + usage.cached_tokens * cached_price
        + usage.output_tokens * price.output
    ) / 1e6
    return usd * price.batch_factor if batched and price.batch_factor is not None else usd


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated tokens and cost of calls, without failed attempts.

    Output includes reasoning; `high` is an upper bound. The cost is None if the price is unknown.
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
    """Estimate the tokens and cost of requests, each of which is one call."""
    calls = 0
    sent, written = Range(0, 0, 0), Range(0, 0, 0)
    for request in requests:
        calls += 1
        sent += input_tokens(request)
        written += output_tokens(request, reasons=reasons)
    usd = None
    if price is not None:
        usd = Range(
            low=cost(Usage(sent.low, written.low), price, batched),
            expected=cost(Usage(sent.expected, written.expected), price, batched),
            high=cost(Usage(sent.high, written.high), price, batched),
        )
    return Estimate(calls, sent, written, usd)


class Ledger:
    """Adds up the cost of calls, and refuses those that might exceed the cap.

    A call of unknown usage counts as the most that it may cost: a token of input per byte, and
    the longest answer allowed. This includes answers without usage, and failures that may have
    been charged: timeouts, broken connections, server errors, unreadable answers, cancelled
    calls. So the cap is never exceeded, and the amount shown may be above the provider's bill.

    `cap_usd`: None for no cap. `reserved_usd` is the most that calls in flight may cost.

    Raises:
        PiiBenchError: a cap without a price.
    """

    def __init__(self, price: Price | None, cap_usd: float | None = None) -> None:
        if price is None and cap_usd is not None:
            raise PiiBenchError(
                f"--max-usd {cap_usd:g}: the model's price is unknown; "
                "give it with --price IN,OUT (USD per million tokens)"
            )
        self.price, self._cap = price, cap_usd
        self._spent = self.reserved_usd = 0.0
        self._open = 0
        self._changed = asyncio.Event()

    @property
    def spent_usd(self) -> float | None:
        """The cost of ended calls, see above for unknown usage; None without a price."""
        return None if self.price is None else self._spent

    def reserve(self, request: Request, *, batched: bool = False) -> float:
        """Reserve the most that a call may cost; the caller must `settle` or `release` it.

        Returns USD, 0 if the price is unknown. The requests of a batch are never settled.

        Raises:
            CallError: `SKIPPED_BUDGET`: together with the calls in flight it might exceed the cap.
        """
        most = self._most(request, batched)
        if not self._fits(most, self.reserved_usd):
            raise CallError(
                SKIPPED_BUDGET,
                f"may cost up to {most:.4f} USD, spent or in flight are "
                f"{self._spent + self.reserved_usd:.4f} of {self._cap:g} USD",
            )
        self._open += 1
        self.reserved_usd += most
        return most

    async def admit(self, request: Request) -> float:
        """Reserve like `reserve`, but wait while calls in flight may still leave room.

        Raises:
            CallError: `SKIPPED_BUDGET`: it might exceed the cap whatever they cost.
        """
        most = self._most(request, batched=False)
        while self._fits(most, 0.0) and not self._fits(most, self.reserved_usd):
            await self._changed.wait()
        return self.reserve(request)

    def settle(self, reserved: float, usage: Usage | None) -> None:
        """Record the end of a call; its usage is `NOTHING` if it was refused, None if unknown."""
        if self.price and usage is not None:
            self._spent += cost(usage, self.price)
        else:
            self._spent += reserved
        self.release(reserved)

    def release(self, reserved: float) -> None:
        """Cancel the reservation of a call that was not made."""
        self._open -= 1
        # Rounding errors would leave a remainder.
        self.reserved_usd = self.reserved_usd - reserved if self._open else 0.0
        self._changed.set()
        self._changed.clear()

    def close(self) -> None:
        """Leave the event loop, when no call is in flight."""
        self._changed = asyncio.Event()

    def _most(self, request: Request, batched: bool) -> float:
        if self.price is None:
            return 0.0
        most = Usage(input_tokens(request).high, request.sampling.max_tokens)
        return cost(most, self.price, batched)

    def _fits(self, usd: float, reserved: float) -> bool:
        return self._cap is None or self._spent + reserved + usd <= self._cap
