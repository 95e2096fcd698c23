"""The adapters of HTTP services, and the replies of their servers in one form for all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.anthropic_messages import AnthropicModel
from pii_bench.models.base import AnswerSchema, CallError, Finish, Message, Request, Sampling
from pii_bench.models.mistral_chat import MistralModel
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests import anthropic_replies, mistral_replies, protocol_server
from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pii_bench.models.base import Completion, Model, Outcome
    from pii_bench.models.service import ServiceModel
    from tests.protocol_server import ProtocolServer

    Connect = Callable[[str, float], Model]

KEY: Final = "planted-key-0123456789"

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

# Parts of the bodies for `REQUEST` and `SCHEMA`.
_CHAT: Final = {"model": "model-test", "temperature": 0.0, "max_tokens": 321}
_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_USER: Final = {"role": "user", "content": SAMPLE_TEXT}
_STRICT: Final = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA.schema},
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The replies of a protocol's server.

    Attributes:
        path: of a call.
        body: of a call with `REQUEST`.
        schema: the part of the body that asks for `SCHEMA`.
        answer: a complete answer with a text, 11 tokens of input and 7 of output.
        ended: the answer `part`, which ended for this reason.
        ends: the meaning of these reasons.
        empty: an answer without text.
        counted: an answer with these tokens of input and output.
        cached: an answer with so many of the 11 tokens of input read from a cache.
        uncounted: an answer without usage.
        reasoned: an answer `Halifax` with the reasoning `A place.`.
        error: an error with a status, a code, a message, and `headers`.
    """

    path: str
    body: Mapping[str, object]
    schema: Mapping[str, object]
    answer: Callable[[str], Reply]
    ended: Callable[[str], Reply]
    ends: Mapping[str, Finish]
    empty: Reply
    counted: Callable[[object, object], Reply]
    cached: Callable[[object], Reply]
    uncounted: Reply
    reasoned: Reply
    error: Callable[..., Reply]


@dataclass(frozen=True, slots=True)
class Adapter:
    """The adapter of one provider; `path` is that of its base URL."""

    name: str
    kind: type[ServiceModel[Any]]
    path: str
    dialect: Dialect

    def connect(self, url: str, timeout: float) -> Model:
        base_url = f"{url}{self.path}"
        return self.kind(self.name, "model-test", api_key=KEY, base_url=base_url, timeout=timeout)


def _chat_completions() -> Dialect:
    completion = protocol_server.completion
    return Dialect(
        path="/v1/chat/completions",
        body={**_CHAT, "messages": [_SYSTEM, _USER]},
        schema={"response_format": _STRICT},
        answer=completion,
        ended=lambda reason: completion("part", finish_reason=reason),
        ends={
            "stop": Finish.STOP,
            "length": Finish.LENGTH,
            "content_filter": Finish.FILTER,
            "of a later version": Finish.UNKNOWN,
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
        body={**_CHAT, "system": "Be brief.", "messages": [_USER]},
        schema={"output_config": {"format": {"type": "json_schema", "schema": SCHEMA.schema}}},
        answer=message,
        ended=lambda reason: message("part", stop_reason=reason),
        ends={
            "end_turn": Finish.STOP,
            "stop_sequence": Finish.STOP,
            "max_tokens": Finish.LENGTH,
            "model_context_window_exceeded": Finish.LENGTH,
            "refusal": Finish.REFUSAL,
            "pause_turn": Finish.UNKNOWN,
            "of a later version": Finish.UNKNOWN,
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
        body={**_CHAT, "messages": [_SYSTEM, _USER], "top_p": 1.0, "stream": False},
        schema={"response_format": _STRICT},
        answer=answer,
        ended=lambda reason: answer("part", finish_reason=reason),
        ends={
            "stop": Finish.STOP,
            "length": Finish.LENGTH,
            "model_length": Finish.LENGTH,
            "of a later version": Finish.UNKNOWN,
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


# OpenAI's adapter is also that of DeepSeek and of the user's own servers.
SERVICES: Final[Mapping[str, Adapter]] = {
    adapter.name: adapter
    for adapter in (
        Adapter("openai", OpenAICompatibleModel, "/v1", _chat_completions()),
        Adapter("anthropic", AnthropicModel, "", _messages()),
        Adapter("mistral", MistralModel, "", _mistral()),
    )
}


def ask(
    connect: Connect, url: str, request: Request = REQUEST, *, timeout: float = 5.0, times: int = 1
) -> Completion:
    """Send a request so many times at once with a new model; return the first answer."""

    async def run() -> Completion:
        model = connect(url, timeout)
        try:
            answers = await asyncio.gather(*[model.complete(request) for _ in range(times)])
        finally:
            await model.close()
        return answers[0]

    return asyncio.run(run())


def failure_of(connect: Connect, url: str, *, timeout: float = 5.0) -> Exception:
    with pytest.raises((CallError, ProviderRefusedError)) as caught:
        ask(connect, url, timeout=timeout)
    return caught.value


@dataclass(frozen=True, slots=True)
class Asker:
    """Calls the models of an adapter against a scripted server."""

    connect: Connect
    server: ProtocolServer

    def __call__(
        self, reply: Reply, *, request: Request = REQUEST, timeout: float = 5.0, times: int = 1
    ) -> Completion:
        self.server.script(reply)
        return ask(self.connect, self.server.url, request, timeout=timeout, times=times)

    def failure(self, reply: Reply, *, timeout: float = 5.0) -> str:
        self.server.script(reply)
        return str(failure_of(self.connect, self.server.url, timeout=timeout))

    def outcomes(self, replies: Iterable[Reply]) -> list[Outcome]:
        """Return the outcomes of one model for several replies."""

        async def run() -> list[Outcome]:
            model = self.connect(self.server.url, 5.0)
            outcomes: list[Outcome] = []
            try:
                for reply in replies:
                    self.server.script(reply)
                    try:
                        outcomes.append(await model.complete(REQUEST))
                    except (CallError, ProviderRefusedError) as error:
                        outcomes.append(error)
            finally:
                await model.close()
            return outcomes

        return asyncio.run(run())

    def failures(self, replies: Iterable[Reply]) -> list[str]:
        """Return the errors for several replies, with the wait that the server asks for."""
        return [
            f"{outcome} {outcome.retry_after or ''}".rstrip()
            if isinstance(outcome, CallError)
            else str(outcome)
            for outcome in self.outcomes(replies)
        ]
