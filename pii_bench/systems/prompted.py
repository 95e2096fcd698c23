"""Systems made of a chat model and a prompt: asked once, several times, or piece by piece."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Draws, Request, Sampling
from pii_bench.models.catalog import LOCAL, build_model, find_card, is_loopback, resolve
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, get_strategy, load_prompt
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from pii_bench.systems.catalog import DEFAULT_STRATEGY, refuse, refuse_caps
from pii_bench.tasks import Task
from pii_bench.taxonomy import PAPER

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion, Model
    from pii_bench.models.catalog import ModelCard
    from pii_bench.prompting.strategies import Prompt
    from pii_bench.systems.base import System
    from pii_bench.systems.catalog import SystemOptions

DEFAULT_VOTES: Final = 5
"""The paper draws 40 times; most of the gain comes with the first few, and each one costs."""

VOTE_TEMPERATURE: Final = 0.7
"""The paper's for PaLM-540B and GPT-3; it truncates to the top 40 tokens for the first alone."""

_REMOTE_TOKENS: Final = 2048
# A small model that has lost the thread writes to the limit.
_LOCAL_TOKENS: Final = 512
# Reasoning counts as part of the answer.
_REASONING_TOKENS: Final = 16384

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
class _Several:
    """One prompt asked about a sample in several requests at the same time.

    Attributes:
        prompted: what is asked, and how.
    """

    prompted: PromptedSystem

    @property
    def model(self) -> Model:
        """The chat model."""
        return self.prompted.model

    @property
    def number(self) -> dict[str, int]:
        """The setting that tells how many requests there are."""
        raise NotImplementedError

    @property
    def card(self) -> SystemCard:
        """The prompted system's, with `number` in its settings."""
        card = self.prompted.card
        return replace(card, settings={**card.settings, **self.number})

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample, told apart by `draw`."""
        raise NotImplementedError

    async def respond(self, sample: Sample) -> Draws:
        """Make all requests; where one fails, those in flight are given up.

        Raises:
            CallError: one got no answer: the sample is asked about again whole.
            ProviderRefusedError: none of any sample will get an answer.
        """
        try:
            async with asyncio.TaskGroup() as group:
                draws = [
                    group.create_task(self.model.complete(request))
                    for request in self.requests(sample)
                ]
        except ExceptionGroup as failed:
            error = _one_of(failed)
        else:
            return Draws(tuple(draw.result() for draw in draws))
        # Outside of the handler: the group would travel along as context.
        raise error

    async def close(self) -> None:
        """Close the model."""
        await self.prompted.close()


def _one_of(failed: ExceptionGroup[Exception]) -> Exception:
    # A refusal stops the run, so it goes before a call that merely failed.
    for kind in (ProviderRefusedError, CallError):
        if found := failed.subgroup(kind):
            return found.exceptions[0]
    return failed


@dataclass(frozen=True, slots=True)
class VotedSystem(_Several):
    """One prompt asked several times (`System`).

    Self-consistency as Wang et al. (2022, arXiv:2203.11171) define it: a chain-of-thought prompt
    is asked several times at a temperature above 0. The reasoning differs from draw to draw; what
    most of them end in is the answer. Their answers are single values, ours are sets: so each
    entity is voted on by itself (`pii_bench.runs.responses.vote`). Every draw is
    stored as it came, and the vote is taken when responses are read.

    The draws of a sample are asked for at the same time: at N samples at a time, `votes` times
    N calls are in flight.

    Attributes:
        votes: draws per sample, at least 1.

    Raises:
        PiiBenchError: fewer votes than that.
    """

    votes: int = DEFAULT_VOTES

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise PiiBenchError(f"votes: {self.votes} draws came (allowed: 1 and more)")

    @property
    def number(self) -> dict[str, int]:
        """The number of draws."""
        return {"votes": self.votes}

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample: the same, once per draw."""
        request = self.prompted.request(sample)
        return tuple(replace(request, draw=draw) for draw in range(self.votes))

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the request and the number of its draws."""
        identity = f"{self.prompted.request_hash(sample)}:{self.votes}"
        return hashlib.sha256(identity.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ChunkedSystem(_Several):
    """One prompt asked about each piece of a long text (`System`).

    The answers are put together. Where a value is, is looked for in the whole text.

    Attributes:
        prompted: it answers detection in the labels of a taxonomy.
        chunk: the most characters of a piece, at least 1.
    """

    chunk: int

    @property
    def number(self) -> dict[str, int]:
        """The size of a piece."""
        return {"chunk": self.chunk}

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


def build_prompted(name: str, options: SystemOptions) -> tuple[System, ...]:
    """The systems of a chat model: those of both tasks, or the one that its strategy is for.

    Raises:
        PiiBenchError: as `build_systems`.
    """
    strategy = get_strategy(options.strategy or DEFAULT_STRATEGY)
    if options.label_map is not None:
        raise PiiBenchError(f"model {name!r} is no detector: --label-map does not apply to it")
    if options.keep is not None:
        raise PiiBenchError(f"model {name!r} has no dial: --keep does not apply to it")
    if options.votes is not None and not strategy.voted:
        voted = ", ".join(each.name for each in STRATEGIES.values() if each.voted)
        what = f"strategy {strategy.name!r} has no vote"
        raise PiiBenchError(f"{what}: leave --votes out (allowed with: {voted})")
    if not strategy.labelled:
        refuse(f"strategy {strategy.name!r}", options.of_labels)
    alone = strategy.labelled or strategy.task is Task.REWRITE
    labels = options.taxonomy or PAPER
    prompts = [
        load_prompt(each, output=options.output, taxonomy=labels, shots=options.shots)
        for each in ((strategy,) if alone else (DETECTION, strategy))
    ]
    provider, _, model_id = resolve(name).partition("/")
    card = find_card(provider, model_id)
    model = _guarded(name, options, card)
    sampling = Sampling(
        temperature=_temperature(name, options.temperature, card),
        max_tokens=_most_tokens(name, options.max_tokens, provider, card),
    )
    *detection, system = (PromptedSystem(model, prompt, sampling) for prompt in prompts)
    if strategy.voted:
        return (*detection, _vote(system, options))
    if options.chunk is not None:
        return (*detection, ChunkedSystem(system, options.chunk))
    return (*detection, system)


def _guarded(name: str, options: SystemOptions, card: ModelCard | None) -> Model:
    model = build_model(name, options.model)
    if model.endpoint is None:
        refuse_caps(name, options.calls)
        return model
    # What another server takes is not what the provider does.
    listed = card.price if card is not None and options.model.base_url is None else None
    return options.calls.guard(model, listed)


def _vote(prompted: PromptedSystem, options: SystemOptions) -> VotedSystem:
    if options.temperature is None and prompted.sampling.temperature is not None:
        sampling = replace(prompted.sampling, temperature=VOTE_TEMPERATURE)
        prompted = replace(prompted, sampling=sampling)
    return VotedSystem(prompted, DEFAULT_VOTES if options.votes is None else options.votes)


def _temperature(
    name: str, asked: Literal["default"] | float | None, card: ModelCard | None
) -> float | None:
    refuses = card is not None and not card.accepts_temperature
    if asked == "default" or (asked is None and refuses):
        return None
    if refuses:
        raise PiiBenchError(f"model {name!r} takes no temperature: leave --temperature out")
    return asked or 0.0


def _most_tokens(name: str, asked: int | None, provider: str, card: ModelCard | None) -> int:
    most = card.max_output if card is not None else None
    if asked:
        if most is not None and asked > most:
            what = f"model {name!r} writes at most {most:,} tokens"
            raise PiiBenchError(f"{what}, and --max-tokens came as {asked:,}")
        return asked
    if provider == LOCAL:
        return _LOCAL_TOKENS
    default = _REASONING_TOKENS if card is not None and card.reasons else _REMOTE_TOKENS
    return min(default, most or default)
