"""Systems that ask a chat model: once, several times, or about each piece of a text."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.files import sha256_of_value
from pii_bench.models.base import CallError, Draws, Request, Sampling
from pii_bench.models.catalog import (
    LOCAL,
    build_model,
    find_card,
    is_loopback,
    listed_price,
    resolve,
)
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, get_strategy, load_prompt
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.systems.catalog import DEFAULT_STRATEGY, refuse_call_limits, refuse_options
from pii_bench.tasks import Task
from pii_bench.taxonomy import PAPER

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion, Model
    from pii_bench.models.catalog import ModelCard
    from pii_bench.prompting.strategies import Prompt, Strategy
    from pii_bench.systems.base import System
    from pii_bench.systems.catalog import SystemOptions

DEFAULT_VOTES: Final = 5
"""The paper draws 40 times, but most of the gain comes from the first few draws."""

VOTE_TEMPERATURE: Final = 0.7
"""The paper's temperature for PaLM-540B (with top-40 truncation) and GPT-3 (without)."""

_ENDS: Final = (
    re.compile(r"\n\s*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?。]\s+"),
    re.compile(r"\s+"),
)
"""Ends of paragraphs, lines, sentences and words: the preferred places to cut first."""


@dataclass(frozen=True, slots=True)
class PromptedSystem:
    """A system that asks a chat model once per sample."""

    model: Model
    prompt: Prompt
    sampling: Sampling

    @property
    def card(self) -> SystemCard:
        """The card, with the model's identity, the prompt's settings and the sampling."""
        strategy = self.prompt.strategy
        # Only with a schema, so that the settings of older runs still match.
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
        """Return the only request about a sample."""
        return Request(
            sample_id=sample.id,
            prompt=self.prompt.name,
            messages=self.prompt.messages(sample),
            sampling=self.sampling,
            schema=self.prompt.schema,
        )

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return the request as a tuple, as `DrawnSystem` does."""
        return (self.request(sample),)

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 of model, identity, messages, sampling and schema."""
        request = self.request(sample)
        identity = {
            "model": self.model.name,
            "identity": dict(self.model.identity),
            "messages": [asdict(message) for message in request.messages],
            "sampling": asdict(request.sampling),
        }
        if request.schema is not None:
            # As text: the order of its keys matters, and `sort_keys` would hide it.
            identity["schema"] = json.dumps(asdict(request.schema))
        return sha256_of_value(identity)

    async def respond(self, sample: Sample) -> Completion:
        """Ask the model."""
        return await self.model.complete(self.request(sample))

    async def close(self) -> None:
        """Close the model; the systems of a run share it, and closing it twice is harmless."""
        await self.model.close()


def recipient(model: Model) -> str:
    """Return the recipient of a model's prompts: `provider (URL)`, or this machine."""
    if model.endpoint is None or is_loopback(model.endpoint):
        return THIS_MACHINE
    return f"{model.name.partition('/')[0]} ({model.endpoint})"


@dataclass(frozen=True, slots=True)
class DrawnSystem:
    """A system that makes several concurrent requests about a sample with one prompt.

    With `votes`, the prompt is repeated, and the majority wins. This is self-consistency (Wang et
    al. 2022, arXiv:2203.11171): the model answers a chain-of-thought prompt several times at a
    temperature above 0. Their answers are single values, ours are sets, so each entity gets its own
    vote (`pii_bench.runs.responses.vote`). All draws are stored; the vote takes place on reading.

    With `chunk`, each piece of a long text gets a request, and the answers are merged. The detected
    values are located in the whole text.

    With N concurrent samples, N times as many calls are in flight as a sample has requests.
    `number` is that of the draws, or the maximum characters per piece.

    Raises:
        PiiBenchError: `number` is less than 1.
    """

    prompted: PromptedSystem
    setting: Literal["votes", "chunk"]
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise PiiBenchError(f"{self.setting} must be at least 1, not {self.number}")

    @property
    def model(self) -> Model:
        """The chat model."""
        return self.prompted.model

    @property
    def card(self) -> SystemCard:
        """The prompted system's card, with the setting added."""
        card = self.prompted.card
        return replace(card, settings={**card.settings, self.setting: self.number})

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Return equal requests, or one for each piece, numbered by `draw`."""
        if self.setting == "votes":
            requests = [self.prompted.request(sample)] * self.number
        else:
            requests = [
                self.prompted.request(replace(sample, description=piece))
                for piece in pieces(sample.description, self.number)
            ]
        return tuple(replace(request, draw=draw) for draw, request in enumerate(requests))

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 of the request about the whole text and the setting."""
        setting = f"{self.number}" if self.setting == "votes" else f"chunk {self.number}"
        identity = f"{self.prompted.request_hash(sample)}:{setting}"
        return hashlib.sha256(identity.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Draws:
        """Make all requests; if one fails, cancel the others.

        Raises:
            CallError: a request got no answer; a later run repeats all of them.
            ProviderRefusedError: no sample will get an answer.
        """
        try:
            async with asyncio.TaskGroup() as group:
                draws = [
                    group.create_task(self.model.complete(request))
                    for request in self.requests(sample)
                ]
        except ExceptionGroup as failed:
            error = _most_severe(failed)
        else:
            return Draws(tuple(draw.result() for draw in draws))
        # Outside the handler, so that the group does not become the error's context.
        raise error

    async def close(self) -> None:
        """Close the model."""
        await self.prompted.close()


def _most_severe(failed: ExceptionGroup[Exception]) -> Exception:
    # A refusal stops the whole run, so it takes precedence over a failed call.
    for kind in (ProviderRefusedError, CallError):
        if errors := failed.subgroup(kind):
            return errors.exceptions[0]
    return failed


def pieces(text: str, most: int) -> list[str]:
    """Split a text into pieces of at most `most` characters.

    A piece ends after a paragraph if possible, else after a line, a sentence or a word, so that
    few values are cut. All pieces but the last are at least `most / 2` long.
    """
    parts: list[str] = []
    start = 0
    while len(text) - start > most:
        end = _cut(text, start + (most + 1) // 2, start + most)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _cut(text: str, least: int, limit: int) -> int:
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, least, limit)]
        if ends:
            return ends[-1]
    return limit


def build_prompted(name: str, options: SystemOptions) -> tuple[System, ...]:
    """Build the systems of a chat model for both tasks, or for the strategy's task alone.

    Raises:
        PiiBenchError: as `build_systems`.
    """
    strategy = get_strategy(options.strategy or DEFAULT_STRATEGY)
    if options.label_map is not None:
        raise PiiBenchError(f"model {name!r} is no detector: --label-map does not apply to it")
    if options.keep is not None:
        raise PiiBenchError(f"model {name!r} has no dial: --keep does not apply to it")
    if options.votes is not None and not strategy.voted:
        voted = ", ".join(known.name for known in STRATEGIES.values() if known.voted)
        what = f"strategy {strategy.name!r} has no vote"
        raise PiiBenchError(f"{what}: leave --votes out (allowed with: {voted})")
    if not strategy.labelled:
        refuse_options(f"strategy {strategy.name!r}", options.label_options)
    prompt = _load_prompt(strategy, options)
    provider, _, model_id = resolve(name).partition("/")
    card = find_card(provider, model_id)
    model = build_model(name, options.model)
    if model.endpoint is None:
        refuse_call_limits(name, options.calls)
    else:
        model = options.calls.guard(model, listed_price(name, options.model.base_url))
    sampling = Sampling(
        temperature=_temperature(name, options.temperature, card),
        max_tokens=_max_tokens(name, options.max_tokens, provider, card),
    )
    prompted = PromptedSystem(model, prompt, sampling)
    system: System = prompted
    if strategy.voted:
        system = _voted(prompted, options)
    elif options.chunk is not None:
        system = DrawnSystem(prompted, "chunk", options.chunk)
    if strategy.labelled or strategy.task is Task.REWRITE:
        return (system,)
    return PromptedSystem(model, _load_prompt(DETECTION, options), sampling), system


def _load_prompt(strategy: Strategy, options: SystemOptions) -> Prompt:
    return load_prompt(
        strategy, output=options.output, taxonomy=options.taxonomy or PAPER, shots=options.shots
    )


def _voted(prompted: PromptedSystem, options: SystemOptions) -> DrawnSystem:
    if options.temperature is None and prompted.sampling.temperature is not None:
        sampling = replace(prompted.sampling, temperature=VOTE_TEMPERATURE)
        prompted = replace(prompted, sampling=sampling)
    votes = DEFAULT_VOTES if options.votes is None else options.votes
    return DrawnSystem(prompted, "votes", votes)


def _temperature(
    name: str, requested: Literal["default"] | float | None, card: ModelCard | None
) -> float | None:
    accepted = card is None or card.accepts_temperature
    if requested == "default" or (requested is None and not accepted):
        return None
    if not accepted:
        raise PiiBenchError(f"model {name!r} takes no temperature: leave --temperature out")
    return requested or 0.0


def _max_tokens(name: str, requested: int | None, provider: str, card: ModelCard | None) -> int:
    limit = card.max_output if card is not None else None
    if requested:
        if limit is not None and requested > limit:
            what = f"model {name!r} writes at most {limit:,} tokens"
            raise PiiBenchError(f"{what}, but --max-tokens is {requested:,}")
        return requested
    if provider == LOCAL:
        # A confused small model writes to the limit.
        return 512
    # Reasoning counts as part of the answer.
    default = 16384 if card is not None and card.reasons else 2048
    return min(default, limit or default)
