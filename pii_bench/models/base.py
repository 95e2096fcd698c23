"""The types between the suite and a language model.

A `Model` turns a `Request` into a `Completion`, or raises `CallError` where the
call itself failed: a failed call is no answer, and never scored as one.

As JSON, a completion's keys are in the record itself; several draws are the list `draws` of such
objects. `ReplayModel` answers from a file of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeGuard

from pii_bench.errors import InputFileError, ProviderRefusedError
from pii_bench.files import RecordError, get, get_objects, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_TOKENS: Final = 2**53
"""The highest count of tokens that is believed: JSON's largest safe integer (RFC 8259, 6)."""

Role = Literal["system", "user", "assistant"]


class Finish(StrEnum):
    """Why a model stopped writing, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    FILTER = "filter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the completion is drawn; every field is part of a request's identity.

    Attributes:
        temperature: 0 everywhere in the paper; None to send none, for models that refuse it.
        max_tokens: the longest completion, in tokens of the model; reasoning counts.
    """

    temperature: float | None = 0.0
    max_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The shape that an answer must have, where the provider enforces one.

    Attributes:
        name: of the schema: letters, digits and `_`.
        schema: JSON Schema of an object whose properties are all required, without others.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Attributes:
        sample_id: whose question it is. Never sent; it lets a replay find its answer.
        prompt: name of the prompt (`detection` or a strategy). Never sent.
        messages: what is sent.
        sampling: how the answer is drawn.
        schema: what the answer must look like; None for free text.
        draw: which of several questions about one sample, from 0. Never sent.
    """

    sample_id: str
    prompt: str
    messages: tuple[Message, ...]
    sampling: Sampling
    schema: AnswerSchema | None = None
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counted them.

    Attributes:
        input_tokens: all of the request, cached ones too.
        output_tokens: all that was written, reasoning too.
        reasoning_tokens: those of the output that were reasoning; 0 where none is reported.
        cached_tokens: those of the input that were read from a cache; 0 where none is reported.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int = 0


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value can be a count of tokens: an integer from 0 to `MOST_TOKENS`, no boolean."""
    return type(value) is int and 0 <= value <= MOST_TOKENS


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered, stored raw.

    Usage that cannot be true becomes None: input or output that is no count (see `is_count`), no
    input at all, or no output although there is an answer. Reasoning that is no count, and cached
    tokens that are none or more than the input, become 0, as if they were not reported.

    Attributes:
        text: the answer, untouched; empty where the model said nothing.
        finish: why it ended.
        model: the model that the provider says it used, None where it says nothing.
        usage: None where the provider does not count, or its counts cannot be true.
        reasoning: what the provider gives apart as the model's reasoning; never parsed.
        batched: whether a batch brought it, which costs another price.
        seconds: that the attempt which brought it took; None where no one is called. Two
            completions that differ in it alone are equal.
    """

    text: str
    finish: Finish = Finish.UNKNOWN
    model: str | None = None
    usage: Usage | None = None
    reasoning: str | None = None
    batched: bool = False
    seconds: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "usage", _possible(self.usage, bool(self.text or self.reasoning)))


def _possible(usage: Usage | None, wrote: bool) -> Usage | None:
    if usage is None or not (is_count(usage.input_tokens) and is_count(usage.output_tokens)):
        return None
    if usage.input_tokens == 0 or (wrote and usage.output_tokens == 0):
        return None
    cached, reasoning = usage.cached_tokens, usage.reasoning_tokens
    return replace(
        usage,
        cached_tokens=cached if is_count(cached) and cached <= usage.input_tokens else 0,
        reasoning_tokens=reasoning if is_count(reasoning) else 0,
    )


@dataclass(frozen=True, slots=True)
class Draws:
    """What a model answered when it was asked several times about a sample, by `Request.draw`.

    It was asked the same each time, or about one piece of the text after another.
    """

    completions: tuple[Completion, ...]


ModelResponse: TypeAlias = Completion | Draws
"""What is stored of a sample about which a model was asked."""


TRANSIENT: Final = frozenset({"timeout", "connection", "rate_limit", "server_error", "overloaded"})
"""Kinds of failure that may pass: the same call may succeed later."""

SKIPPED_BUDGET: Final = "skipped_budget"
"""The kind of a call that was not made, because it might have passed the cap on cost."""


class CallError(Exception):
    """A call that brought no completion (network, rate limit, server): `infra_error`.

    Args:
        kind: a short name of the failure: one of `TRANSIENT`, `SKIPPED_BUDGET`, `bad_request`,
            `bad_response`, `expired` (of a batch), or one that an adapter documents.
        detail: facts without any text of the request or the answer, such as `HTTP 503`.
        retry_after: seconds that the server asks to wait; None where it says nothing.
    """

    def __init__(self, kind: str, detail: str = "", *, retry_after: float | None = None) -> None:
        self.kind, self.detail, self.retry_after = kind, detail, retry_after
        super().__init__(f"{kind}: {detail}" if detail else kind)


Outcome: TypeAlias = Completion | CallError | ProviderRefusedError
"""What became of one request, as a value: the errors are raised by the caller."""


class Model(Protocol):
    """Anything that completes a chat."""

    @property
    def name(self) -> str:
        """How results name it, `provider/name`."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells this model from any other, apart from its name (endpoint, weights' hash).

        Part of every request's hash; holds no key.
        """
        ...

    @property
    def endpoint(self) -> str | None:
        """The URL that messages are sent to; None where they stay in this process."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request with one attempt: who tries again is `pii_bench.models.calls`.

        Raises:
            CallError: this call failed; the run goes on.
            ProviderRefusedError: every call would fail; the run stops.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


_COUNTED: Final = ("input_tokens", "output_tokens")
_FINISHES: Final = {str(finish): finish for finish in Finish}


def encode_response(response: ModelResponse) -> dict[str, Any]:
    """The keys of a response."""
    if isinstance(response, Draws):
        return {"draws": [encode_completion(each) for each in response.completions]}
    return encode_completion(response)


def decode_response(record: dict[str, Any]) -> ModelResponse:
    """Read a response's keys.

    Raises:
        RecordError: naming the key at fault.
    """
    if "draws" not in record:
        return decode_completion(record)
    draws = get_objects(record, "draws")
    if not draws:
        raise RecordError("'draws' must not be empty")
    return Draws(
        tuple(decode_completion(each, f"draws[{number}]") for number, each in enumerate(draws))
    )


def encode_completion(completion: Completion) -> dict[str, Any]:
    """The keys of a completion; what is not known, or is 0 by default, is left out."""
    known: dict[str, Any] = {"text": completion.text, "finish": completion.finish}
    if completion.model is not None:
        known["model"] = completion.model
    if completion.usage is not None:
        known["usage"] = {
            key: value
            for key, value in asdict(completion.usage).items()
            if value or key in _COUNTED
        }
    if completion.reasoning is not None:
        known["reasoning"] = completion.reasoning
    if completion.batched:
        known["batched"] = True
    if completion.seconds is not None:
        known["seconds"] = round(completion.seconds, 3)
    return known


def decode_completion(record: dict[str, Any], owner: str = "record") -> Completion:
    """Read a completion's keys; only `text` is required, so that stored answers are easy to write.

    Raises:
        RecordError: naming the key at fault and what it belongs to.
    """
    finish = get(record, "finish", str, owner) if "finish" in record else Finish.UNKNOWN
    if finish not in _FINISHES:
        raise RecordError(f"{owner}: 'finish' is {finish!r} (allowed: {', '.join(Finish)})")
    usage = _decode_usage(get(record, "usage", dict, owner)) if "usage" in record else None
    return Completion(
        text=get(record, "text", str, owner),
        finish=_FINISHES[finish],
        model=get(record, "model", str, owner) if "model" in record else None,
        usage=usage,
        reasoning=get(record, "reasoning", str, owner) if "reasoning" in record else None,
        batched="batched" in record and get(record, "batched", bool, owner),
        seconds=get(record, "seconds", float, owner) if "seconds" in record else None,
    )


def _decode_usage(usage: dict[str, Any]) -> Usage:
    for key in _COUNTED:
        if key not in usage:
            raise RecordError(f"usage: {key!r} is missing")
    # What is no count is unknown, see `Completion`, and no reason to refuse the answer.
    return Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("reasoning_tokens", 0),
        usage.get("cached_tokens", 0),
    )


class ReplayModel:
    """Answers each sample with the response that a file has for it (`Model`).

    A line holds `id` and `text`, and may hold `prompt`, `finish`, `model` and `usage`. A
    line with a `prompt` answers that prompt only; one without answers every other. So
    the file of a run is a replay file as it is.

    A line may hold, instead of `text` and what belongs to it, `draws`, a list of such
    objects: each answers the draw of its place. A line without `draws` answers the first
    draw alone: one answer is no vote. A prompt that is asked once is answered by the first.

    Args:
        path: the file.

    Attributes:
        name: `replay/<file's stem>`.
        identity: the hash of what the file answers.

    Raises:
        InputFileError: a broken line, or two lines for one sample and prompt.
    """

    endpoint = None

    def __init__(self, path: Path) -> None:
        self._answers: dict[tuple[str, str | None], tuple[Completion, ...]] = {}
        digest = hashlib.sha256()
        for line, record in read_records(path):
            if "error" in record:
                continue
            try:
                sample_id = get(record, "id", str)
                prompt = get(record, "prompt", str) if "prompt" in record else None
                response = decode_response(record)
            except RecordError as error:
                raise InputFileError(path, str(error), line=line) from None
            if (sample_id, prompt) in self._answers:
                raise InputFileError(path, f"a second answer for id {sample_id!r}", line=line)
            draws = response.completions if isinstance(response, Draws) else (response,)
            self._answers[sample_id, prompt] = draws
            digest.update(f"{sample_id}\0{prompt}\0{response!r}\0".encode(errors="replace"))
        self.name = f"replay/{path.stem}"
        self.identity: Mapping[str, str] = {"answers": f"sha256:{digest.hexdigest()}"}

    async def complete(self, request: Request) -> Completion:
        """The stored response.

        Raises:
            CallError: the file has none for this sample, prompt and draw.
        """
        for prompt in (request.prompt, None):
            draws = self._answers.get((request.sample_id, prompt), ())
            if request.draw < len(draws):
                return draws[request.draw]
        raise CallError("no_stored_response")

    async def close(self) -> None:
        """Nothing to release."""
