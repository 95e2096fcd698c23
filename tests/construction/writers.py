"""Texts that a fake chat model writes from a commission."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import FREE, ORDERS, commission
from pii_bench.models.base import Completion, Finish

if TYPE_CHECKING:
    from pii_bench.models.base import Request

_WORDS: Final = ("amber", "brisk", "cedar", "delta", "ember", "frost", "grove", "heron", "kelp")
_QUERY: Final = "a courteous reply to the office about this, please, not too long."


def written(request: Request) -> str:
    """A text that nobody would write, but with everything in it, and unlike any other."""
    order, number = request.sample_id.rsplit("-", 1)
    asked = commission(ORDERS[order], int(number))
    random = Random(request.sample_id)

    def words(count: int) -> str:
        return " ".join(random.choice(_WORDS) for _ in range(count))

    told = ""
    for tag, fact in asked.facts.items():
        value = words(3).title() if fact.category in FREE else fact.value
        told += f"{words(2)} {{{tag}|{value}}}. "
    while len(told) < asked.chars + 6 * len(asked.facts):
        told += f"{words(1)} "
    head = f"=== {request.sample_id}\nregister: letter\n--- text\n{told}\n"
    return head + "".join(
        "--- query: A2 | implied | legal | desk\n"
        f"For {request.sample_id} wants {words(2)}, {_QUERY}\n"
        for _ in asked.queries
    )


def good(request: Request) -> Completion:
    return Completion(f"```\n{written(request)}```", Finish.STOP)
