"""The adapters of HTTP services, and the replies of their servers in one form for all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.anthropic_messages import AnthropicModel
from pii_bench.models.base import (
    AnswerSchema,
    CallError,
    Finish,
    Message,
    Request,
    Sampling,
)
from pii_bench.models.mistral_chat import MistralModel
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests import anthropic_replies, mistral_replies, protocol_server
from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.models.base import Completion, Model
    from pii_bench.models.service import ServiceModel

KEY: Final = "planted-key-0123456789"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The replies of a protocol's server.

    Attributes:
        path: of a call.
        answer: a complete answer with a text, 11 tokens of input and 7 of output.
        ends: by reason why an answer ended, one with the text `part`; only the reasons that the
            protocol has.
        empty: an answer without text.
        counted: an answer with these tokens of input and output.
        cached: an answer with so many of the 11 tokens of input read from a cache.
        uncounted: an answer without usage.
        reasoned: an answer `Halifax` with the reasoning `A place.`.
        error: an error with a status, a code, a message, and `headers`.
    """

    path: str
    answer: Callable[[str], Reply]
    ends: Mapping[Finish, Reply]
    empty: Reply
    counted: Callable[[object, object], Reply]
    cached: Callable[[object], Reply]
    uncounted: Reply
    reasoned: Reply
    error: Callable[..., Reply]


@dataclass(frozen=True, slots=True)
class Adapter:
    """The adapter of one provider.

    Attributes:
        name: of the provider.
        connect: returns a model for a base URL and a timeout in seconds.
        dialect: the replies of its server.
    """

    name: str
    connect: Callable[[str, float], Model]
    dialect: Dialect


def _chat_completions() -> Dialect:
    completion = protocol_server.completion
    return Dialect(
        path="/v1/chat/completions",
        answer=completion,
        ends={
            Finish.LENGTH: completion("part", finish_reason="length"),
            Finish.FILTER: completion("part", finish_reason="content_filter"),
            Finish.REFUSAL: completion(None, refusal="part"),
            Finish.UNKNOWN: completion("part", finish_reason="of a later version"),
        },
        empty=completion(""),
        counted=lambda sent, written: completion(
            "Halifax", counts={"prompt_tokens": sent, "completion_tokens": written}
        ),
        cached=lambda cached: completion(
            "Halifax", counts={"prompt_tokens_details": {"cached_tokens": cached}}
        ),
        uncounted=completion("Halifax", usage=None),
        reasoned=completion("Halifax", extra={"reasoning_content": "A place."}),
        error=protocol_server.api_error,
    )


def _messages() -> Dialect:
    message, blocks = anthropic_replies.message, anthropic_replies.message_body
    thinking = anthropic_replies.thinking_block("A place.")
    answer = anthropic_replies.text_block("Halifax")
    return Dialect(
        path="/v1/messages",
        answer=message,
        ends={
            Finish.LENGTH: message("part", stop_reason="max_tokens"),
            Finish.REFUSAL: message("part", stop_reason="refusal"),
            Finish.UNKNOWN: message("part", stop_reason="of a later version"),
        },
        empty=Reply(body=blocks(usage={"output_tokens": 2})),
        counted=lambda sent, written: message(
            "Halifax", usage={"input_tokens": sent, "output_tokens": written}
        ),
        cached=lambda cached: message(
            "Halifax",
            usage={
                "input_tokens": 11 - cached if isinstance(cached, int) else 11,
                "cache_read_input_tokens": cached,
            },
        ),
        uncounted=Reply(body={**blocks(answer), "usage": None}),
        reasoned=Reply(body=blocks(thinking, answer)),
        error=anthropic_replies.failure,
    )


def _mistral() -> Dialect:
    answer, chunk = mistral_replies.answer, mistral_replies.text_chunk
    return Dialect(
        path="/v1/chat/completions",
        answer=answer,
        ends={
            Finish.LENGTH: answer("part", finish_reason="model_length"),
            Finish.UNKNOWN: answer("part", finish_reason="of a later version"),
        },
        empty=answer(""),
        counted=lambda sent, written: answer(
            "Halifax", usage={"prompt_tokens": sent, "completion_tokens": written}
        ),
        cached=lambda cached: answer(
            "Halifax", usage={"prompt_tokens_details": {"cached_tokens": cached}}
        ),
        uncounted=Reply(body={**mistral_replies.answer_body("Halifax"), "usage": {}}),
        reasoned=answer([mistral_replies.thinking_chunk("A place."), chunk("Halifax")]),
        error=mistral_replies.failure,
    )


def _adapter(name: str, kind: type[ServiceModel[Any]], path: str, dialect: Dialect) -> Adapter:
    def connect(url: str, timeout: float) -> Model:
        return kind(name, "model-test", api_key=KEY, base_url=f"{url}{path}", timeout=timeout)

    return Adapter(name, connect, dialect)


# OpenAI's adapter is also that of DeepSeek and of the user's own servers.
SERVICES: Final[Mapping[str, Adapter]] = {
    adapter.name: adapter
    for adapter in (
        _adapter("openai", OpenAICompatibleModel, "/v1", _chat_completions()),
        _adapter("anthropic", AnthropicModel, "", _messages()),
        _adapter("mistral", MistralModel, "", _mistral()),
    )
}

SAMPLE_TEXT: Final = "Rosalind Achebe lives at 14 Marlowe Court"
MESSAGES: Final = (Message("system", "Be brief."), Message("user", SAMPLE_TEXT))
REQUEST: Final = Request(
    sample_id="multi-0001",
    prompt="naive",
    messages=MESSAGES,
    sampling=Sampling(temperature=0.0, max_tokens=321),
    draw=3,
)
SCHEMA: Final = AnswerSchema(
    "answer",
    {
        "type": "object",
        "properties": {"answer": {"type": "array", "items": {"type": "string"}}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes calls, each with a new model.

    Attributes:
        connect: returns a model for a base URL and a timeout in seconds.
    """

    connect: Callable[[str, float], Model]

    def ask(
        self, url: str, request: Request = REQUEST, *, timeout: float = 5.0, times: int = 1
    ) -> Completion:
        """Send a request so many times at once; return the first answer."""

        async def run() -> Completion:
            model = self.connect(url, timeout)
            try:
                answers = await asyncio.gather(*[model.complete(request) for _ in range(times)])
            finally:
                await model.close()
            return answers[0]

        return asyncio.run(run())

    def failure_of(self, url: str, *, timeout: float = 5.0) -> Exception:
        with pytest.raises((CallError, ProviderRefusedError)) as caught:
            self.ask(url, timeout=timeout)
        return caught.value
