"""Systems made of a chat model and a prompt: asked once, several times, or piece by piece."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Draws, Request
from pii_bench.models.catalog import is_loopback
from pii_bench.systems.base import THIS_MACHINE, SystemCard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion, Model, Sampling
    from pii_bench.prompting.strategies import Prompt

DEFAULT_VOTES: Final = 5
"""The paper draws 40 times; most of the gain comes with the first few, and each one costs."""

VOTE_TEMPERATURE: Final = 0.7
"""The paper's for PaLM-540B and GPT-3; it truncates to the top 40 tokens for the first alone."""

_ENDS: Final = tuple(map(re.compile, (r"\n\s*\n\s*", r"\n\s*", r"[.!?。]\s+", r"\s+")))


@dataclass(frozen=True, slots=True)
class PromptedSystem:
    """A chat model asked through one prompt (`System`)."""

    model: Model
    prompt: Prompt
    sampling: Sampling

    @property
    def card(self) -> SystemCard:
        """The model's name and identity, the prompt's hash, settings and sampling."""
        strategy = self.prompt.strategy
        # Said only where it is a schema: the settings of other runs stay what they were.
        output = {"output": "schema"} if self.prompt.schema else {}
        return SystemCard(
            model=self.model.name,
            prompt=self.prompt.name,
            prompt_sha256=self.prompt.sha256,
            task=strategy.task,
            oracle=strategy.oracle,
            settings={
                **self.model.identity,
                **asdict(self.sampling),
                **output,
                **self.prompt.settings,
            },
            names_subjects=not strategy.labelled,
            unmasked_text_to=recipient(self.model),
            output="schema" if self.prompt.schema else "text",
            taxonomy=self.prompt.taxonomy,
        )

    def request(self, sample: Sample) -> Request:
        """What the model is asked about a sample."""
        return Request(
            sample_id=sample.id,
            prompt=self.prompt.name,
            messages=self.prompt.messages(sample),
            sampling=self.sampling,
            schema=self.prompt.schema,
        )

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """All that the model is asked about a sample: one request."""
        return (self.request(sample),)

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over model, identity, messages, sampling and schema."""
        request = self.request(sample)
        identity = {
            "model": self.model.name,
            "identity": dict(self.model.identity),
            "messages": [asdict(message) for message in request.messages],
            "sampling": asdict(request.sampling),
        }
        if request.schema is not None:
            # As text, because sorting would hide the order of its keys, which tells.
            identity["schema"] = json.dumps(asdict(request.schema))
        canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Completion:
        """Ask the model."""
        return await self.model.complete(self.request(sample))

    async def close(self) -> None:
        """Close the model; systems of one run share it, closing twice is harmless."""
        await self.model.close()


def recipient(model: Model) -> str:
    """The recipient of a model's prompts: `provider (URL)`, or this machine."""
    if model.endpoint is None or is_loopback(model.endpoint):
        return THIS_MACHINE
    return f"{model.name.partition('/')[0]} ({model.endpoint})"


@dataclass(frozen=True, slots=True)
class VotedSystem:
    """One prompt asked several times (`System`).

    Self-consistency as Wang et al. (2022, arXiv:2203.11171) define it: a chain-of-thought prompt
    is asked several times at a temperature above 0. The reasoning differs from draw to draw; what
    most of them end in is the answer. Their answers are single values, ours are sets: so each
    entity is voted on by itself (`pii_bench.runs.responses.vote`). Every draw is
    stored as it came, and the vote is taken when responses are read.

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
        """The chat model."""
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


@dataclass(frozen=True, slots=True)
class ChunkedSystem:
    """One prompt asked about each piece of a long text (`System`).

    The pieces of a sample are asked about at the same time, and the answers are put together.
    Where a value is, is looked for in the whole text.

    Attributes:
        prompted: what is asked, and how; it answers detection in the labels of a taxonomy.
        chunk: the most characters of a piece, at least 1.
    """

    prompted: PromptedSystem
    chunk: int

    @property
    def model(self) -> Model:
        """The chat model."""
        return self.prompted.model

    @property
    def card(self) -> SystemCard:
        """The prompted system's, with the size of a piece in its settings."""
        card = self.prompted.card
        return replace(card, settings={**card.settings, "chunk": self.chunk})

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample, piece by piece."""
        return tuple(
            replace(self.prompted.request(replace(sample, description=piece)), draw=number)
            for number, piece in enumerate(pieces(sample.description, self.chunk))
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the request about the whole and the size of a piece."""
        identity = f"{self.prompted.request_hash(sample)}:chunk {self.chunk}"
        return hashlib.sha256(identity.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Draws:
        """Ask about every piece; where one fails, those in flight are given up.

        Raises:
            CallError: a piece got no answer: the sample is asked about again whole.
            ProviderRefusedError: none of any sample will get an answer.
        """
        return await ask_all(self.model, self.requests(sample))

    async def close(self) -> None:
        """Close the model."""
        await self.prompted.close()


def pieces(text: str, most: int) -> list[str]:
    """A text cut into pieces of `most` characters or fewer, which joined are the text.

    A piece ends behind a paragraph, else a line, a sentence or a word, so that few values are
    cut. It is at least half as long as allowed, but for the last.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > most:
        least, limit = start + (most + 1) // 2, start + most
        ends = ([each.end() for each in end.finditer(text, least, limit)] for end in _ENDS)
        cut = next((each[-1] for each in ends if each), limit)
        found.append(text[start:cut])
        start = cut
    return [*found, text[start:]]
