"""The types between the suite and a language model.

A `Model` turns a `Request` into a `Completion`, or raises `CallError` where the
call itself failed: a failed call is no answer, and never scored as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        temperature: 0 everywhere in the paper.
        max_tokens: the longest completion, in tokens of the model.
    """

    temperature: float = 0.0
    max_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Attributes:
        sample_id: whose question it is. Never sent; it lets a replay find its answer.
        prompt: name of the prompt (`detection` or a strategy). Never sent.
        messages: what is sent.
        sampling: how the answer is drawn.
    """

    sample_id: str
    prompt: str
    messages: tuple[Message, ...]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counted them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered, stored raw.

    Attributes:
        text: the answer, untouched; empty where the model said nothing.
        finish: why it ended.
        model: the model that the provider says it used, None where it says nothing.
        usage: None where the provider does not count.
    """

    text: str
    finish: Finish = Finish.UNKNOWN
    model: str | None = None
    usage: Usage | None = None


class CallError(Exception):
    """A call that brought no completion (network, rate limit, server): `infra_error`.

    Args:
        kind: a short name of the failure, such as `timeout` or `rate_limit`.
        detail: facts without any text of the request or the answer, such as `HTTP 503`.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind, self.detail = kind, detail
        super().__init__(f"{kind}: {detail}" if detail else kind)


class Model(Protocol):
    """Anything that completes a chat."""

    @property
    def name(self) -> str:
        """How results name it, `provider/name`."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What tells this model from any other beside its name (endpoint, weights' hash).

        Part of every request's hash; holds no key.
        """
        ...

    async def complete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            CallError: this call failed; the run goes on.
            ProviderRefusedError: every call would fail; the run stops.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...
