"""Self-consistency as Wang et al. (2022, arXiv:2203.11171) define it: draws, then a majority.

A chain-of-thought prompt is asked several times at a temperature above 0. The reasoning differs
from draw to draw; what most of them end in is the answer. Their answers are single values, ours
are sets: so each entity is voted on by itself (`pii_bench.runs.predictions.prediction.vote`). Every
draw is stored as it came, and the vote is taken when responses are read.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Draws

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Model, Request
    from pii_bench.systems.base import SystemCard
    from pii_bench.systems.prompted import PromptedSystem

DEFAULT_VOTES: Final = 5
"""The paper draws 40 times; most of the gain comes with the first few, and each one costs."""

VOTE_TEMPERATURE: Final = 0.7
"""The paper's for PaLM-540B and GPT-3; it truncates to the top 40 tokens for the first alone."""


@dataclass(frozen=True, slots=True)
class VotedSystem:
    """One prompt asked several times (`System`).

    The draws of a sample are asked for at the same time: at N samples at a time, `votes` times
    N calls are in flight.

    Attributes:
        prompted: what is asked, and how each draw is made.
        votes: draws per sample, at least 1.

    Raises:
        PiiBenchError: fewer votes than that.
    """

    prompted: PromptedSystem
    votes: int = DEFAULT_VOTES

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise PiiBenchError(f"votes: {self.votes} draws came (allowed: 1 and more)")

    @property
    def model(self) -> Model:
        """Who is asked."""
        return self.prompted.model

    @property
    def card(self) -> SystemCard:
        """The prompted system's, with the number of draws in its settings."""
        card = self.prompted.card
        return replace(card, settings={**card.settings, "votes": self.votes})

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample: the same, once per draw."""
        request = self.prompted.request(sample)
        return tuple(replace(request, draw=draw) for draw in range(self.votes))

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the request and the number of its draws."""
        identity = f"{self.prompted.request_hash(sample)}:{self.votes}"
        return hashlib.sha256(identity.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Draws:
        """Ask for every draw; where one fails, those in flight are given up.

        Raises:
            CallError: a draw got no answer: the sample is asked again whole.
            ProviderRefusedError: no draw of any sample will get an answer.
        """
        return await ask_all(self.model, self.requests(sample))

    async def close(self) -> None:
        """Close the model."""
        await self.prompted.close()


async def ask_all(model: Model, requests: Iterable[Request]) -> Draws:
    """Ask at the same time; where one fails, those in flight are given up.

    Raises:
        CallError: one got no answer.
        ProviderRefusedError: none will get an answer.
    """
    try:
        async with asyncio.TaskGroup() as group:
            draws = [group.create_task(model.complete(request)) for request in requests]
    except ExceptionGroup as failed:
        error = _one_of(failed)
    else:
        return Draws(tuple(draw.result() for draw in draws))
    # Outside of the handler: the group would travel along as context.
    raise error


def _one_of(failed: ExceptionGroup[Exception]) -> Exception:
    # A refusal stops the run, so it goes before a call that merely failed.
    for kind in (ProviderRefusedError, CallError):
        if found := failed.subgroup(kind):
            return found.exceptions[0]
    return failed
