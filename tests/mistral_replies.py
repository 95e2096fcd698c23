"""Replies that speak Mistral's Chat Completions, for `ProtocolServer`."""

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
    """An answer; `usage` adds to 11 tokens in and 7 out."""
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
    """An answer; `parts` as in `answer_body`."""
    return Reply(body=answer_body(content, **parts))


def error_body(
    kind: str = "invalid_request_error",
    text: object = "scripted failure",
    *,
    code: str | None = None,
    param: str | None = None,
) -> dict[str, Any]:
    return {"object": "error", "message": text, "type": kind, "param": param, "code": code}


def failure(
    status: int,
    kind: str = "invalid_request_error",
    text: object = "scripted failure",
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    body = error_body(kind, text, code=code, param=param)
    return Reply(status=status, body=body, headers=headers or {})


def invalid(*place: str) -> dict[str, Any]:
    """What the API says of a field that it does not accept, such as `("body", "temperature")`."""
    return {"detail": [{"type": "invalid", "loc": list(place), "msg": "Input is not valid"}]}
