"""Replies of Mistral's Chat Completions, for `ProtocolServer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping


def text_chunk(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def thinking_chunk(*texts: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [text_chunk(text) for text in texts], "closed": True}


def answer_body(
    content: object = "hello",
    *,
    finish_reason: str = "stop",
    usage: Mapping[str, Any] | None = None,
    model: str = "scripted-model",
) -> dict[str, Any]:
    """Return an answer with 11 tokens in and 7 out, unless `usage` overrides them."""
    message = {"role": "assistant", "tool_calls": None, "content": content}
    return {
        "id": "cmpl-1",
        "created": 0,
        "model": model,
        "usage": {
            "prompt_tokens": 11,
            "total_tokens": 18,
            "completion_tokens": 7,
            **(usage or {}),
        },
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
    }


def answer(content: object = "hello", **parts: Any) -> Reply:
    return Reply(body=answer_body(content, **parts))


def failure(
    status: int,
    kind: str = "invalid_request_error",
    text: object = "scripted failure",
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    body = {"object": "error", "message": text, "type": kind, "param": param, "code": code}
    return Reply(status=status, body=body, headers=headers or {})


def invalid(*place: str) -> dict[str, Any]:
    """Return the error of a field that is not valid, such as `("body", "temperature")`."""
    return {"detail": [{"type": "invalid", "loc": list(place), "msg": "Input is not valid"}]}
