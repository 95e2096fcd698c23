"""Replies of Anthropic's Messages API, for `ProtocolServer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def thinking_block(thinking: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": thinking, "signature": "c2lnbmF0dXJl"}


def message_body(
    *blocks: Mapping[str, Any],
    stop_reason: str | None = "end_turn",
    usage: Mapping[str, Any] | None = None,
    model: str = "scripted-model",
) -> dict[str, Any]:
    """Return a message with 11 tokens in and 7 out, unless `usage` overrides them."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 11,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 7,
            "service_tier": "standard",
            **(usage or {}),
        },
    }


def message(text: str = "hello", **parts: Any) -> Reply:
    """Return a message with one text block; `parts` as in `message_body`."""
    return Reply(body=message_body(text_block(text), **parts))


def error_body(kind: str, text: str = "scripted failure", *, code: object = None) -> dict[str, Any]:
    """Return an error; `code` is the `error_code` of its details."""
    details = {"error_code": code} if code else None
    error = {"type": kind, "message": text, "details": details}
    return {"type": "error", "error": error, "request_id": "req_1"}


def failure(
    status: int,
    kind: str = "invalid_request_error",
    text: str = "scripted failure",
    *,
    code: object = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    return Reply(status=status, body=error_body(kind, text, code=code), headers=headers or {})
