"""Chats without the personal information that their last question does not need, and back."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import PiiBenchError
from pii_bench.masking import mask, unmask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from pii_bench.runs.mask_text import Answers

FORWARDED: Final = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "n", "stop", "seed"),
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity"),
        *("response_format", "tools", "tool_choice", "parallel_tool_calls", "service_tier"),
    }
)
"""The fields of a request that go on. Tools and formats are the developer's, and not masked."""

DROPPED: Final = frozenset(
    {"user", "safety_identifier", "prompt_cache_key", "metadata", "store", "prompt_cache_retention"}
)
"""The fields that say who asks, or what is kept: they are left out."""

_ANSWER_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_BETWEEN: Final = "\n\n"


class ChatError(PiiBenchError):
    """A chat that cannot be masked whole, so that nothing of it goes on."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a message, and where it is: `holder[key]`."""

    holder: MutableMapping[str, Any]
    key: str
    is_json: bool = False

    @property
    def text(self) -> str:
        value: str = self.holder[self.key]
        return value


@dataclass(frozen=True, slots=True)
class Chat:
    """A request whose texts can be masked.

    Attributes:
        text: all its texts, one after the other.
        query: the last message of the user.
    """

    body: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)
    query: str = field(repr=False)


def read_chat(request: Mapping[str, Any]) -> Chat:
    """Take a request apart; it is not changed.

    Raises:
        ChatError: no message of the user, something else than text in it, or a field that
            we do not know and that might hold one.
    """
    unknown = sorted(set(request) - FORWARDED - DROPPED)
    if unknown:
        raise ChatError(f"field {unknown[0]!r} is not forwarded: it might hold unmasked text")
    body = copy.deepcopy({key: value for key, value in request.items() if key in FORWARDED})
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ChatError("'messages' must be a list of messages")
    by_message = [list(_texts(message)) for message in messages]
    asked = [
        texts
        for message, texts in zip(messages, by_message, strict=True)
        if message.get("role") == "user" and texts
    ]
    query = _BETWEEN.join(each.text for each in asked[-1]) if asked else ""
    if not query.strip():
        raise ChatError("there is no message of the user: what is asked decides what is masked")
    text = _BETWEEN.join(each.text for texts in by_message for each in texts)
    return Chat(body, text, query)


def mask_chat(chat: Chat, answers: Answers) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """The request with tags, and what they stand for.

    One text has the same tag in all messages.
    """
    body = copy.deepcopy(chat.body)
    masked = mask(chat.text, answers.entities, answers.needed or ())
    start = 0
    for each in (text for message in body["messages"] for text in _texts(message)):
        end = start + len(each.text)
        parts, at = [], start
        for span in masked.spans:
            # A value that two messages share between them is a tag in both.
            if span.start < end and span.end > start:
                parts += [chat.text[at : max(span.start, start)], _written(span.tag, each)]
                at = min(span.end, end)
        each.holder[each.key] = "".join([*parts, chat.text[at:end]])
        start = end + len(_BETWEEN)
    return body, dict(masked.mapping)


def _written(tag: str, where: _Text) -> str:
    return json.dumps(tag)[1:-1] if where.is_json else tag


def _texts(message: object) -> Iterator[_Text]:
    if not isinstance(message, dict):
        raise ChatError("a message must be an object")
    known = {"role", "content", "tool_calls", "tool_call_id", "refusal", *_ANSWER_TEXTS}
    if unknown := sorted(set(message) - known - {"name"}):
        raise ChatError(f"field {unknown[0]!r} of a message is not forwarded")
    # Whose message it is would stay unmasked.
    message.pop("name", None)
    for key in _ANSWER_TEXTS:
        value = message.get(key)
        if isinstance(value, str):
            yield _Text(message, key)
        elif isinstance(value, list) and key == "content":
            yield from map(_part, value)
        elif value is not None:
            raise ChatError(f"{key!r} of a message must be text")
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
            raise ChatError("a tool call must be of a function with arguments")
        yield _Text(function, "arguments", is_json=True)


def _part(part: object) -> _Text:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind != "text" or not isinstance(part.get("text"), str):
        raise ChatError("a message holds something else than text, which cannot be masked")
    return _Text(part, "text")


def unmask_answer(
    answer: Mapping[str, Any], mapping: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """A whole answer with what the tags stand for.

    Raises:
        AttributeError, KeyError, TypeError: it is no chat completion.
    """
    whole = copy.deepcopy(dict(answer))
    in_json = escaped(mapping)
    for choice in whole["choices"]:
        message = choice.get("message") or {}
        for key in _ANSWER_TEXTS:
            if isinstance(message.get(key), str):
                message[key] = unmask(message[key], mapping)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            if isinstance(function.get("arguments"), str):
                function["arguments"] = unmask(function["arguments"], in_json)
        # The tokens hold tags.
        choice.pop("logprobs", None)
    return whole


def escaped(mapping: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """A mapping whose texts fit into a string of JSON."""
    return {
        tag: tuple(json.dumps(text, ensure_ascii=False)[1:-1] for text in texts)
        for tag, texts in mapping.items()
    }


class StreamUnmasker:
    """Puts back tags in a text that comes in pieces, also where a tag is split over them.

    A tag that stands for several writings of one text is the first of them: how often it will
    come is not known yet.

    Args:
        mapping: each tag with what it stands for.
    """

    # What may become a tag when more comes.
    _OPEN: Final = re.compile(
        r"[<\[][^<>\[\]&]*$|&lt;[^<>\[\]&]*(?:&(?:gt?)?)?$|&(?:lt?)?$",
    )

    def __init__(self, mapping: Mapping[str, tuple[str, ...]]) -> None:
        self._mapping = {tag: texts[:1] for tag, texts in mapping.items()}
        # Models space tags out, and escape them; more than that is no tag.
        self._longest = 2 * max(map(len, mapping), default=0) + 16
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be said for sure after one more piece."""
        self._held += piece
        found = self._OPEN.search(self._held)
        cut = len(self._held) if found is None else found.start()
        if len(self._held) - cut > self._longest:
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return unmask(ready, self._mapping)

    def finish(self) -> str:
        """What is left at the end."""
        ready, self._held = self._held, ""
        return unmask(ready, self._mapping)


class ChunkUnmasker:
    """Puts back tags in the chunks of an answer that streams.

    Args:
        mapping: each tag with what it stands for.
    """

    def __init__(self, mapping: Mapping[str, tuple[str, ...]]) -> None:
        self._mapping = mapping
        self._texts: dict[tuple[int, str], StreamUnmasker] = {}

    def feed(self, chunk: Mapping[str, Any]) -> dict[str, Any]:
        """A chunk with what the tags stand for; where one may be split, its text comes later."""
        whole = copy.deepcopy(dict(chunk))
        for choice in whole.get("choices") or ():
            index = choice.get("index", 0)
            delta = choice.setdefault("delta", {}) or {}
            for key in _ANSWER_TEXTS:
                if isinstance(delta.get(key), str):
                    delta[key] = self._of(index, key, self._mapping).feed(delta[key])
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                if isinstance(function.get("arguments"), str):
                    key = f"call {call.get('index', 0)}"
                    own = self._of(index, key, escaped(self._mapping))
                    function["arguments"] = own.feed(function["arguments"])
            choice.pop("logprobs", None)
            if choice.get("finish_reason") is not None:
                choice["delta"] = self._finished(index, delta)
        return whole

    def _of(self, index: int, key: str, mapping: Mapping[str, tuple[str, ...]]) -> StreamUnmasker:
        return self._texts.setdefault((index, key), StreamUnmasker(mapping))

    def _finished(self, index: int, delta: dict[str, Any]) -> dict[str, Any]:
        """The last chunk of a choice, with what was held back."""
        for (own, key), text in self._texts.items():
            left = text.finish() if own == index else ""
            if not left:
                continue
            if key in _ANSWER_TEXTS:
                delta[key] = (delta.get(key) or "") + left
            else:
                number = int(key.removeprefix("call "))
                calls = delta.setdefault("tool_calls", [])
                calls.append({"index": number, "function": {"arguments": left}})
        return delta
