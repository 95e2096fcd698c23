"""Mask the texts of a chat request, and put the masked texts back into the answer."""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from pii_bench.errors import PiiBenchError
from pii_bench.masking import mask, unmask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from pii_bench.masking import MaskedSpan
    from pii_bench.runs.mask_text import Answers

    # A list or an object, and the index or key of a text in it.
    _Place = tuple[Any, Any]

_NUMBERS: Final = frozenset(
    {
        *("stream", "n", "seed", "temperature", "top_p", "presence_penalty", "frequency_penalty"),
        *("max_tokens", "max_completion_tokens", "parallel_tool_calls"),
    }
)
_WORDS: Final = frozenset({"model", "reasoning_effort", "verbosity", "service_tier"})
_OBJECTS: Final = frozenset(
    {
        *("messages", "stream_options", "stop", "logit_bias"),
        # These are not masked: a model needs the names and descriptions in them.
        *("response_format", "tools", "tool_choice"),
    }
)
_FORWARDED: Final = _NUMBERS | _WORDS | _OBJECTS

DROPPED: Final = frozenset(
    {"user", "safety_identifier", "prompt_cache_key", "metadata", "store", "prompt_cache_retention"}
)
"""The request fields that identify the user or ask to store data: they are left out."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_ANSWER_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_BETWEEN: Final = "\n\n"
_WORD: Final = re.compile(r"[!-~]*")
_JSON_VALUE: Final = re.compile(r'"(?P<string>(?:[^"\\]|\\.)*)"|(?P<number>-?\d[\d.eE+-]*)')


@dataclass(frozen=True, slots=True)
class Chat:
    """A request whose texts can be masked.

    Attributes:
        body: the fields to forward.
        text: all texts, joined.
        query: the last message of the user.
    """

    body: dict[str, Any] = field(repr=False)
    text: str = field(repr=False)
    query: str = field(repr=False)


def read_chat(request: Mapping[str, Any]) -> Chat:
    """Parse a request, without changing it.

    Raises:
        PiiBenchError: it has no user message, content other than text, an unknown field, or text
            where a number or a word is allowed.
    """
    _check(request, "a request", numbers=_NUMBERS, words=_WORDS, others=_OBJECTS | DROPPED)
    body = copy.deepcopy({key: value for key, value in request.items() if key in _FORWARDED})
    if (options := body.get("stream_options")) is not None:
        _check(options, "'stream_options'", numbers={"include_usage", "include_obfuscation"})
    if (bias := body.get("logit_bias")) is not None:
        tokens = filter(str.isdecimal, bias) if isinstance(bias, dict) else ()
        _check(bias, "'logit_bias'", numbers=set(tokens))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise PiiBenchError("'messages' must be a list of messages")
    texts, query = [], ""
    for message in messages:
        own = [_read(holder[key]) for holder, key in _places(message)]
        texts += own
        if own and message["role"] == "user":
            query = _BETWEEN.join(own)
    if not query.strip():
        raise PiiBenchError("there is no message of the user: what is asked decides what is masked")
    texts += [_read(stops[n]) for stops, n in _stops(body)]
    return Chat(body, _BETWEEN.join(texts), query)


def mask_chat(chat: Chat, answers: Answers) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return the masked request and the mapping; a text has the same tag in all messages."""
    body = copy.deepcopy(chat.body)
    masked = mask(chat.text, answers.entities, answers.needed or ())
    tagger = _Tagger(masked.spans)
    for holder, key in chain(*map(_places, body["messages"]), _stops(body)):
        holder[key] = _edit(holder[key], tagger.take)
        tagger.take(_BETWEEN)
    return body, dict(masked.mapping)


class _Tagger:
    """Replaces spans of a whole text, in order, with their tags, part by part."""

    def __init__(self, spans: Sequence[MaskedSpan]) -> None:
        self._spans = spans
        self._next = 0
        self._end = 0

    def take(self, part: str) -> str:
        """Return the next part with tags; a span that crosses two parts is a tag in both."""
        start = self._end
        self._end += len(part)
        pieces, position = [], start
        while part and self._next < len(self._spans):
            span = self._spans[self._next]
            if span.start >= self._end:
                break
            pieces += [part[position - start : max(span.start, start) - start], span.tag]
            position = min(span.end, self._end)
            if span.end > self._end:
                break
            self._next += 1
        return "".join([*pieces, part[position - start :]])


def _edit(text: str, edit: Callable[[str], str]) -> str:
    """Return a text with `edit` applied to its parts, from the first to the last.

    The parts are the whole text; or, of JSON, its strings (without escapes; if they are JSON, the
    parts of that) and numbers, and what is between them, which stays as it is. An edited number
    becomes a string.
    """
    if not _is_json(text):
        return edit(text)
    parts, end = [], 0
    for match in _JSON_VALUE.finditer(text):
        is_string = match.lastgroup == "string"
        start, last = match.span(match.lastgroup or 0)
        edit(text[end:start])
        value = json.loads(match[0]) if is_string else match[0]
        edited = _edit(value, edit)
        encoded = json.dumps(edited, ensure_ascii=False)
        new = encoded[1:-1] if is_string else encoded
        parts += [text[end:start], text[start:last] if edited == value else new]
        end = last
    edit(text[end:])
    return "".join([*parts, text[end:]])


def _read(text: str) -> str:
    """Return a text without the escapes of JSON."""
    parts: list[str] = []

    def collect(part: str) -> str:
        parts.append(part)
        return part

    _edit(text, collect)
    return "".join(parts)


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object, array or string."""
    try:
        # Unlike `json`, it refuses halves of surrogate pairs, which a text cannot hold.
        return isinstance(from_json(text), dict | list | str)
    except ValueError:
        return False


def _places(message: object) -> Iterator[_Place]:
    """Yield the places of a message's texts, and remove the speaker's name from it."""
    others = {"name", "tool_calls", *_ANSWER_TEXTS}
    message = _check(message, "a message", words={"role", "tool_call_id"}, others=others)
    if message.get("role") not in _ROLES:
        raise PiiBenchError(f"the role of a message must be one of: {', '.join(_ROLES)}")
    message.pop("name", None)
    for key in _ANSWER_TEXTS:
        value = message.get(key)
        if isinstance(value, str):
            yield message, key
        elif isinstance(value, list) and key == "content":
            for part in value:
                yield _part(part), "text"
        elif value is not None:
            raise PiiBenchError(f"{key!r} of a message must be text")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise PiiBenchError("'tool_calls' of a message must be a list")
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
            raise PiiBenchError("a tool call must be of a function with arguments")
        _check(call, "a tool call", numbers={"index"}, words={"id", "type"}, others={"function"})
        _check(function, "the function of a tool call", words={"name"}, others={"arguments"})
        yield function, "arguments"


def _part(part: object) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind != "text" or not isinstance(part.get("text"), str):
        raise PiiBenchError("a message holds content other than text, which cannot be masked")
    return _check(part, "a part of a message", others={"type", "text"})


def _stops(body: dict[str, Any]) -> Iterator[_Place]:
    """Yield the places of the texts at which the answer stops, and make a list of a single one."""
    stop = body.get("stop")
    if isinstance(stop, str):
        stop = body["stop"] = [stop]
    if stop is None:
        return
    if not isinstance(stop, list) or not all(isinstance(each, str) for each in stop):
        raise PiiBenchError("'stop' must be text or a list of texts")
    for place in range(len(stop)):
        yield stop, place


def _check(
    value: object,
    what: str,
    *,
    numbers: Set[str] = frozenset(),
    words: Set[str] = frozenset(),
    others: Set[str] = frozenset(),
) -> dict[str, Any]:
    """Return an object that has these fields only; `what` is its name in messages.

    `numbers` are fields with a number, true or false; `words` are fields with ASCII characters
    without a space; `others` may have any value.

    Raises:
        PiiBenchError: it has another field, or text in place of a number or a word.
    """
    if not isinstance(value, dict):
        raise PiiBenchError(f"{what} must be an object")
    for key, each in value.items():
        if key not in numbers | words | others:
            raise PiiBenchError(
                f"field {key!r} of {what} is not forwarded: it might hold unmasked text"
            )
        if key in numbers and not isinstance(each, int | float | None):
            raise PiiBenchError(f"field {key!r} of {what} must be a number, true or false")
        if key in words and not (each is None or (isinstance(each, str) and _WORD.fullmatch(each))):
            raise PiiBenchError(f"field {key!r} of {what} must be ASCII text without a space")
    return value


def unmask_answer(
    answer: Mapping[str, Any], mapping: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Return a complete answer with its tags replaced by the masked texts.

    Raises:
        AttributeError, KeyError, TypeError: the answer is not a chat completion.
    """
    unmasked = copy.deepcopy(dict(answer))
    in_json = escaped(mapping)
    for choice in unmasked["choices"]:
        message = choice.get("message") or {}
        for key in _ANSWER_TEXTS:
            if isinstance(message.get(key), str):
                message[key] = unmask(message[key], mapping)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            if isinstance(function.get("arguments"), str):
                function["arguments"] = unmask(function["arguments"], in_json)
        # The tokens would still hold the tags.
        choice.pop("logprobs", None)
    return unmasked


def escaped(mapping: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return a mapping with its texts escaped for a JSON string."""
    return {
        tag: tuple(json.dumps(text, ensure_ascii=False)[1:-1] for text in texts)
        for tag, texts in mapping.items()
    }


class StreamUnmasker:
    """Replaces tags in a streamed text, also tags that are split over several pieces.

    A tag with several spellings becomes the first of them, because how often it will occur is
    not known yet.
    """

    # An unfinished tag at the end of a text, with the backslashes before it.
    _OPEN: Final = re.compile(
        # The lookbehinds begin a run of backslashes only once, which keeps the search linear.
        r"(?<!\\)\\*(?:(?:[<\[]|&(?:lt|#60|#x3c);)[^<>\[\]&]*(?:&[#\w]{0,4})?|&[#\w]{0,4})$"
        r"|(?<!\\)\\+$",
        re.IGNORECASE,
    )

    def __init__(self, mapping: Mapping[str, tuple[str, ...]]) -> None:
        self._mapping = {tag: texts[:1] for tag, texts in mapping.items()}
        # Room for tags that a model writes with spaces or escapes.
        self._longest = 2 * max(map(len, mapping), default=0) + 16
        self._held = ""

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that no later piece can change."""
        self._held += piece
        unfinished = self._OPEN.search(self._held)
        cut = len(self._held) if unfinished is None else unfinished.start()
        if len(self._held) - cut > self._longest:
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return unmask(ready, self._mapping)

    def finish(self) -> str:
        """Return the rest of the text."""
        ready, self._held = self._held, ""
        return unmask(ready, self._mapping)


class ChunkUnmasker:
    """Replaces tags in the chunks of a streamed answer."""

    def __init__(self, mapping: Mapping[str, tuple[str, ...]]) -> None:
        in_json = escaped(mapping)
        # By the number of the choice, and the name of the text or the number of the call.
        self._texts: defaultdict[tuple[int, str], StreamUnmasker] = defaultdict(
            lambda: StreamUnmasker(mapping)
        )
        self._calls: defaultdict[tuple[int, int], StreamUnmasker] = defaultdict(
            lambda: StreamUnmasker(in_json)
        )
        self._frame: dict[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> dict[str, Any]:
        """Return a chunk without tags; text that may be part of a tag comes with a later chunk."""
        unmasked = copy.deepcopy(dict(chunk))
        self._frame = {k: v for k, v in unmasked.items() if k not in {"choices", "usage"}}
        for choice in unmasked.get("choices") or ():
            index = choice.get("index", 0)
            delta = choice.setdefault("delta", {}) or {}
            for key in _ANSWER_TEXTS:
                if isinstance(delta.get(key), str):
                    delta[key] = self._texts[index, key].feed(delta[key])
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                if isinstance(function.get("arguments"), str):
                    unmasker = self._calls[index, call.get("index", 0)]
                    function["arguments"] = unmasker.feed(function["arguments"])
            choice.pop("logprobs", None)
            if choice.get("finish_reason") is not None:
                choice["delta"] = self._finished(index, delta)
        return unmasked

    def finish(self) -> dict[str, Any] | None:
        """Return a chunk with the rest of choices without a `finish_reason`, or None."""
        # Not sorted: in a malformed stream they may be of several types.
        indexes = dict.fromkeys(index for index, _ in (*self._texts, *self._calls))
        deltas = {index: self._finished(index, {}) for index in indexes}
        choices = [
            {"index": index, "delta": delta, "finish_reason": None}
            for index, delta in deltas.items()
            if delta
        ]
        return {**self._frame, "choices": choices} if choices else None

    def _finished(self, index: int, delta: dict[str, Any]) -> dict[str, Any]:
        """Add the text that was held back to the last delta of a choice."""
        for (choice, key), text in self._texts.items():
            if choice == index and (left := text.finish()):
                delta[key] = (delta.get(key) or "") + left
        for (choice, number), text in self._calls.items():
            if choice == index and (left := text.finish()):
                calls = delta.setdefault("tool_calls", [])
                calls.append({"index": number, "function": {"arguments": left}})
        return delta
