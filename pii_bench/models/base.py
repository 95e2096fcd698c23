"""The types between the suite and a language model.

A `Model` turns a `Request` into a `Completion`, or raises `CallError` if the call itself failed: a
failed call is not an answer, and is never scored as one.

In JSON, a completion's keys are part of the record; several draws are a list `draws` of objects
with these keys. `ReplayModel` answers from a file of such records.
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
"""The largest valid count of tokens: JSON's largest safe integer (RFC 8259, 6)."""

Role = Literal["system", "user", "assistant"]


class Finish(StrEnum):
    """Why a model stopped writing, in the same words for all providers."""

    STOP = "stop"
    LENGTH = "length"
    REFUSAL = "refusal"
    FILTER = "filter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of sampling; every field is part of a request's identity.

    Attributes:
        temperature: 0 everywhere in the paper; None to send none, for models that refuse it.
        max_tokens: the longest completion, in tokens of the model, reasoning included.
    """

    temperature: float | None = 0.0
    max_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A schema that the provider makes an answer conform to.

    The name has letters, digits and `_`. The JSON Schema is that of an object whose properties are
    all required, without others.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Attributes:
        sample_id: never sent; a replay finds its answer by it.
        prompt: name of the prompt (`detection` or a strategy). Never sent.
        schema: of the answer; None for free text.
        draw: number of this request among several about one sample, from 0. Never sent.
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
        input_tokens: all of the request, cached ones included.
        output_tokens: all of the response, reasoning included.
        reasoning_tokens: the part of the output that is reasoning; 0 if not reported.
        cached_tokens: the part of the input that was read from a cache; 0 if not reported.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int = 0


def is_count(value: object) -> TypeGuard[int]:
    """Return True for a valid count: an integer from 0 to `MOST_TOKENS`, not a boolean."""
    return type(value) is int and 0 <= value <= MOST_TOKENS


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer, stored raw.

    Impossible usage becomes None: input or output that is not a count (see `is_count`), no input,
    or no output although there is an answer. Reasoning tokens that are not a count, and cached
    tokens that are not a count or exceed the input, become 0, as if they were not reported.

    Attributes:
        text: the answer, unchanged; may be empty.
        model: the one that the provider reports.
        reasoning: the model's reasoning, where the provider separates it; never parsed.
        batched: whether it comes from a batch, which has a different price.
        seconds: duration of the attempt; None if no server was called. Ignored in comparisons.
    """

    text: str
    finish: Finish = Finish.UNKNOWN
    model: str | None = None
    usage: Usage | None = None
    reasoning: str | None = None
    batched: bool = False
    seconds: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        answered = bool(self.text or self.reasoning)
        object.__setattr__(self, "usage", _valid_usage(self.usage, answered))


def _valid_usage(usage: Usage | None, answered: bool) -> Usage | None:
    if usage is None or not (is_count(usage.input_tokens) and is_count(usage.output_tokens)):
        return None
    if usage.input_tokens == 0 or (answered and usage.output_tokens == 0):
        return None
    cached, reasoning = usage.cached_tokens, usage.reasoning_tokens
    return replace(
        usage,
        cached_tokens=cached if is_count(cached) and cached <= usage.input_tokens else 0,
        reasoning_tokens=reasoning if is_count(reasoning) else 0,
    )


@dataclass(frozen=True, slots=True)
class Draws:
    """A model's answers to several requests about one sample, in the order of `Request.draw`.

    The requests are equal, or each is about one piece of the text.
    """

    completions: tuple[Completion, ...]


ModelResponse: TypeAlias = Completion | Draws
"""What a run stores of a model for one sample."""


TRANSIENT: Final = frozenset({"timeout", "connection", "rate_limit", "server_error", "overloaded"})
"""Kinds of failure after which the same call may succeed later."""

SKIPPED_BUDGET: Final = "skipped_budget"
"""The kind of a call that was not made because it might have exceeded the cap on cost."""


class CallError(Exception):
    """A call without a completion (network, rate limit, server): `infra_error`.

    Args:
        kind: a short name of the failure: one of `TRANSIENT`, `SKIPPED_BUDGET`, `bad_request`,
            `bad_response`, `expired` (of a batch), or one that an adapter documents.
        detail: facts without any text of the request or the answer, such as `HTTP 503`.
        retry_after: seconds that the server asks to wait; None if it does not.
        unsent: whether no model was asked for certain, so that a repetition pays nothing twice.
    """

    def __init__(
        self, kind: str, detail: str = "", *, retry_after: float | None = None, unsent: bool = False
    ) -> None:
        self.kind, self.detail, self.retry_after, self.unsent = kind, detail, retry_after, unsent
        super().__init__(f"{kind}: {detail}" if detail else kind)


Outcome: TypeAlias = Completion | CallError | ProviderRefusedError
"""The outcome of one request as a value: the caller raises the errors."""


class Model(Protocol):
    """Anything that completes a chat."""

    @property
    def name(self) -> str:
        """The name in results, `provider/name`."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What distinguishes this model besides its name (endpoint, hash of the weights).

        Part of every request's hash; contains no key.
        """
        ...

    @property
    def endpoint(self) -> str | None:
        """The URL that messages are sent to; None if they stay in this process."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request with one attempt; `pii_bench.models.calls` does the retries.

        Raises:
            CallError: If this call failed; the run continues.
            ProviderRefusedError: If every call would fail; the run stops.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


_COUNTED: Final = ("input_tokens", "output_tokens")


def encode_response(response: ModelResponse) -> dict[str, Any]:
    """Return the keys of a response."""
    if isinstance(response, Draws):
        return {"draws": [encode_completion(draw) for draw in response.completions]}
    return encode_completion(response)


def decode_response(record: dict[str, Any]) -> ModelResponse:
    """Read the keys of a response.

    Raises:
        RecordError: a key is missing or not valid.
    """
    if "draws" not in record:
        return decode_completion(record)
    draws = get_objects(record, "draws")
    if not draws:
        raise RecordError("'draws' must not be empty")
    return Draws(
        tuple(decode_completion(draw, f"draws[{number}]") for number, draw in enumerate(draws))
    )


def encode_completion(completion: Completion) -> dict[str, Any]:
    """Return the keys of a completion, without those that are unknown or 0 by default."""
    record: dict[str, Any] = {"text": completion.text, "finish": completion.finish}
    if completion.model is not None:
        record["model"] = completion.model
    if completion.usage is not None:
        record["usage"] = {
            key: value
            for key, value in asdict(completion.usage).items()
            if value or key in _COUNTED
        }
    if completion.reasoning is not None:
        record["reasoning"] = completion.reasoning
    if completion.batched:
        record["batched"] = True
    if completion.seconds is not None:
        record["seconds"] = round(completion.seconds, 3)
    return record


def decode_completion(record: dict[str, Any], owner: str = "record") -> Completion:
    """Read the keys of a completion; only `text` is required, so that replays are easy to write.

    Raises:
        RecordError: a key is missing or not valid.
    """
    finish = get(record, "finish", str, owner) if "finish" in record else Finish.UNKNOWN
    if finish not in set(Finish):
        raise RecordError(f"{owner}: 'finish' is {finish!r} (allowed: {', '.join(Finish)})")
    usage = _decode_usage(get(record, "usage", dict, owner)) if "usage" in record else None
    return Completion(
        text=get(record, "text", str, owner),
        finish=Finish(finish),
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
    # `Completion` treats values that are not counts as unknown.
    return Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("reasoning_tokens", 0),
        usage.get("cached_tokens", 0),
    )


class ReplayModel:
    """A model that reads its answers from a file (`Model`).

    A line has `id` and `text`, and may have `prompt`, `finish`, `model` and `usage`. A line with
    a `prompt` answers that prompt only; one without answers every other prompt. So the responses
    file of a run is a replay file.

    Instead of the keys of a completion, a line may have `draws`, a list of completions: each
    answers the draw with its number. A line without `draws` answers only the first draw.

    Raises:
        InputFileError: a line is not valid, or a second line for one sample and prompt.
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
        """Return the stored answer.

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
