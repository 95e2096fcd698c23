"""A proxy for OpenAI's Chat Completions.

A chat is masked for its last user message before it is forwarded to a provider, and the masked
texts are put back into the answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

from pii_bench.errors import MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.files import encodable
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, PROVIDERS, Protocol, normalise_base_url
from pii_bench.models.service import parse_json, safe_code
from pii_bench.web import state
from pii_bench.web.chat import ChunkUnmasker, mask_chat, read_chat, unmask_answer
from pii_bench.web.security import CurrentUser
from pii_bench.web.settings import MOST_CHARACTERS

router: Final = APIRouter(tags=["proxy"])

_MOST_BYTES: Final = 20_000_000
_LONGEST_LINE: Final = 2_000_000
_DONE: Final = "[DONE]"
_NO_COMPLETION: Final = "The provider's answer is no chat completion."
# What reading an answer of another form raises.
_OTHER_FORM: Final = (ValueError, AttributeError, KeyError, TypeError, RecursionError)
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=20.0)


def open_upstream(name: str) -> httpx2.AsyncClient:
    """Return a client of the provider to which chats are forwarded.

    The name is `openai`, another provider of Chat Completions, or a base URL.

    Raises:
        MissingKeyError: the provider's key is not set.
        UnknownNameError: the provider is unknown or has another protocol.
        PiiBenchError: the base URL is invalid.
    """
    providers = {
        key: provider
        for key, provider in PROVIDERS.items()
        if provider.protocol is Protocol.CHAT_COMPLETIONS
    }
    if "://" in name:
        url = normalise_base_url(name)
        # A local server may need no key.
        key = os.environ.get(CUSTOM_ENDPOINT_KEY, "")
    elif name in providers:
        url = providers[name].base_url
        variable = providers[name].key_variable
        key = os.environ.get(variable, "")
        if not key:
            raise MissingKeyError(name, variable)
    else:
        raise UnknownNameError("upstream", name, [*providers, "https://..."])
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.AsyncClient(base_url=url, timeout=_TIMEOUT, headers=headers)


@router.post("/v1/chat/completions")
async def chat_completions(request: Request, _: CurrentUser) -> Response:
    """Mask a chat, forward it, and return the unmasked answer."""
    upstream = _upstream(request)
    try:
        received = json.loads(await request.body())
        # HTTP clients and servers cannot encode a lone surrogate.
        asked = json.loads(encodable(json.dumps(received, ensure_ascii=False)))
        if not isinstance(asked, dict):
            raise HTTPException(400, "The body must be a JSON object.")
        chat = read_chat(asked)
    except ValueError:
        raise HTTPException(400, "The body must be a JSON object.") from None
    except RecursionError:
        raise HTTPException(400, "The body is nested too deeply.") from None
    if len(chat.text) > MOST_CHARACTERS:
        raise HTTPException(
            413, f"The chat has {len(chat.text)} characters; at most {MOST_CHARACTERS}."
        )
    answers = await state.of(request).masker.answers(chat.text, chat.query)
    body, mapping = await run_in_threadpool(mask_chat, chat, answers)
    answer = await _forward(upstream, body)
    if not asked.get("stream"):
        try:
            return JSONResponse(unmask_answer(json.loads(await _read(answer)), mapping))
        except _OTHER_FORM:
            raise HTTPException(502, _NO_COMPLETION) from None
        finally:
            await answer.aclose()
    return StreamingResponse(
        _events(answer, ChunkUnmasker(mapping)), media_type="text/event-stream"
    )


@router.get("/v1/models")
async def models(request: Request, _: CurrentUser) -> Response:
    """Return the provider's models, for clients that list them first."""
    upstream = _upstream(request)
    try:
        answer = await upstream.get("/models")
        if answer.status_code != 200:
            raise HTTPException(502, f"The provider answered {answer.status_code}.")
        return JSONResponse(answer.json())
    except httpx2.HTTPError:
        raise HTTPException(502, "The provider cannot be reached.") from None
    except (ValueError, RecursionError):
        raise HTTPException(502, "The provider's answer is not JSON.") from None


def _upstream(request: Request) -> httpx2.AsyncClient:
    upstream = state.of(request).upstream
    if upstream is None:
        raise HTTPException(503, "No provider is configured: pii-bench serve --upstream NAME.")
    return upstream


async def _forward(upstream: httpx2.AsyncClient, body: dict[str, Any]) -> httpx2.Response:
    """Send a masked chat and return the answer with its body unread."""
    try:
        sent = upstream.build_request("POST", "/chat/completions", json=body)
    except ValueError:
        raise HTTPException(400, "The body holds a number that JSON does not allow.") from None
    try:
        answer = await upstream.send(sent, stream=True)
    except httpx2.HTTPError as error:
        what = type(error).__name__
        raise HTTPException(502, f"The provider cannot be reached ({what}).") from None
    if answer.status_code == 200:
        return answer
    try:
        content = await _read(answer)
    finally:
        await answer.aclose()
    # The provider's own message may quote the chat, so the code alone is passed on.
    code = _code(content)
    message = f"The provider answered {answer.status_code}{f' ({code})' if code else ''}."
    headers = {}
    if "retry-after" in answer.headers:
        headers["retry-after"] = answer.headers["retry-after"]
    status = answer.status_code if 400 <= answer.status_code < 600 else 502
    raise HTTPException(502 if status in (401, 403) else status, message, headers)


def _code(content: bytes) -> str:
    match parse_json(content):
        case {"error": dict(error)}:
            return safe_code(error.get("code"), error.get("type"))
    return ""


async def _read(answer: httpx2.Response) -> bytes:
    content = bytearray()
    try:
        async for piece in answer.aiter_bytes():
            content += piece
            if len(content) > _MOST_BYTES:
                raise HTTPException(502, "The provider's answer is too long.")
    except httpx2.HTTPError:
        raise HTTPException(502, "The provider's answer broke off.") from None
    return bytes(content)


async def _events(answer: httpx2.Response, unmasker: ChunkUnmasker) -> AsyncIterator[str]:
    """Yield the provider's events, unmasked; an error becomes a last event."""
    try:
        async for data in _data(answer):
            if data == _DONE:
                if (rest := unmasker.finish()) is not None:
                    yield f"data: {json.dumps(rest, ensure_ascii=False)}\n\n"
                yield f"data: {_DONE}\n\n"
                return
            chunk = unmasker.feed(json.loads(data))
            yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
        message = "The provider's answer broke off."
    except (httpx2.HTTPError, PiiBenchError):
        message = "The provider's answer broke off."
    except _OTHER_FORM:
        message = _NO_COMPLETION
    finally:
        await answer.aclose()
    error = {"error": {"message": message, "type": "upstream_error"}}
    yield f"data: {json.dumps(error)}\n\n"


async def _data(answer: httpx2.Response) -> AsyncIterator[str]:
    """Yield the content of each `data:` event; all providers send one line for each."""
    async for line in answer.aiter_lines():
        if len(line) > _LONGEST_LINE:
            raise PiiBenchError("a line of the provider's answer is too long")
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()
