"""The API: masking, detection and putting back, for programs and for the page.

The same functions as `pii_bench.mask` and `pii_bench.masking.unmask`. A mapping is in the answer
alone: the server keeps none.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import (
    APIRouter,
    HTTPException,
    Request,
    WebSocket,
    WebSocketDisconnect,
    WebSocketException,
)
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import HTTPConnection
from starlette.responses import Response

import pii_bench
from pii_bench.errors import PiiBenchError
from pii_bench.masking import absent_tags, inexact_tags, unmask
from pii_bench.web import state
from pii_bench.web.masked import Entity, Masked, OnFailure, Query, Tags, Text, masked_text
from pii_bench.web.masker import joined
from pii_bench.web.security import CurrentUser

router: Final = APIRouter(tags=["masking"])

MOST_IN_A_BATCH: Final = 100

_SECONDS_TO_ASK: Final = 30


class MaskRequest(BaseModel):
    """A text to mask for a query; with `entities` it is masked by them, and no system is asked."""

    text: Text
    query: Query = ""
    on_failure: OnFailure = "refuse"
    entities: Annotated[list[Entity], Field(max_length=5000)] | None = None
    keep: Annotated[list[Text], Field(max_length=5000)] = []


class DetectRequest(BaseModel):
    """A text in which to find personal information."""

    text: Text


class Detected(BaseModel):
    """What was found, whether or not a query would need it."""

    entities: list[Entity]
    recipients: tuple[str, ...]


class UnmaskRequest(BaseModel):
    """An answer with tags, and the mapping that `/mask` gave."""

    text: Text
    mapping: Tags


class Unmasked(BaseModel):
    """The answer without tags.

    Attributes:
        absent: tags of the mapping that are not in the answer.
        inexact: what looks like such a tag, but has another number; it is left.
    """

    text: str
    absent: list[str]
    inexact: list[str]


class BatchRequest(BaseModel):
    """Several texts, each with its query."""

    requests: Annotated[list[MaskRequest], Field(min_length=1, max_length=MOST_IN_A_BATCH)]


class BatchFailure(BaseModel):
    """A text of a batch that could not be masked."""

    error: str


class Batch(BaseModel):
    """One result for each request, in order; where one failed the others did not."""

    results: list[Masked | BatchFailure]


@router.post("/mask")
async def mask_one(request: Request, body: MaskRequest, _: CurrentUser) -> Masked:
    """Mask what the query does not need."""
    return await _masked(request, body)


@router.post("/mask/batch")
async def mask_batch(request: Request, body: BatchRequest, _: CurrentUser) -> Batch:
    """Mask several texts; together they may be as long as one may be."""
    _check_length(request, sum(len(each.text) for each in body.requests))

    async def one(each: MaskRequest) -> Masked | BatchFailure:
        try:
            return await _masked(request, each)
        except PiiBenchError as error:
            return BatchFailure(error=str(error))

    return Batch(results=await asyncio.gather(*map(one, body.requests)))


@router.post("/detect")
async def detect(request: Request, body: DetectRequest, _: CurrentUser) -> Detected:
    """Find personal information."""
    _check_length(request, len(body.text))
    masker = state.of(request).masker
    answers = await masker.answers(body.text, None)
    return Detected(
        entities=[Entity(text=text, type=pii_type) for text, pii_type in answers.entities],
        recipients=await run_in_threadpool(masker.start),
    )


@router.post("/unmask")
async def unmask_one(request: Request, body: UnmaskRequest, _: CurrentUser) -> Unmasked:
    """Put back into an answer what the tags stand for."""
    _check_length(request, len(body.text))
    return await run_in_threadpool(_unmasked, body)


@router.websocket("/mask/stream")
async def mask_stream(socket: WebSocket) -> None:
    """Mask a long text, and tell what each piece of it holds as soon as it is read.

    Takes one message, as `/mask`; sends `{"piece": 1, "of": 9, "end": ..., "entities": [...]}`
    for each piece and last `{"result": ...}` as `/mask` answers, or `{"error": ...}`.
    """
    if socket.state.user is None:
        raise WebSocketException(1008, "log in, or send a token")
    await socket.accept()
    try:
        await _stream(socket)
    except (HTTPException, PiiBenchError) as error:
        what = str(error.detail) if isinstance(error, HTTPException) else str(error)
        await socket.send_json({"error": {"message": what}})
    except WebSocketDisconnect:
        return
    await socket.close()


@router.get("/health", tags=["server"])
async def health(request: Request) -> dict[str, Any]:
    """Whether the server works: its database answers. Needs no account and tells no secret."""
    web = state.of(request)

    def check() -> None:
        with web.database.reading() as connection:
            connection.exec_driver_sql("SELECT 1")

    await run_in_threadpool(check)
    return {"status": "ok", "version": pii_bench.__version__, "waiting": web.masker.waiting}


@router.get("/metrics", tags=["server"], response_class=PlainTextResponse)
def metrics(request: Request, _: CurrentUser) -> Response:
    """Counts and times of requests, for Prometheus."""
    registry = state.of(request).metrics.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def _masked(request: Request, body: MaskRequest) -> Masked:
    _check_length(request, len(body.text))
    if body.entities is not None:
        pairs = [(each.text, each.type) for each in body.entities]
        return await run_in_threadpool(masked_text, body.text, pairs, tuple(body.keep))
    answers = await state.of(request).masker.answers(body.text, body.query, body.on_failure)
    return await run_in_threadpool(masked_text, body.text, answers.entities, answers.needed)


def _unmasked(body: UnmaskRequest) -> Unmasked:
    return Unmasked(
        text=unmask(body.text, body.mapping),
        absent=absent_tags(body.text, body.mapping),
        inexact=inexact_tags(body.text, body.mapping),
    )


async def _stream(socket: WebSocket) -> None:
    try:
        message = await asyncio.wait_for(socket.receive_text(), _SECONDS_TO_ASK)
    except TimeoutError:
        raise HTTPException(408, "Nothing was asked.") from None
    _check_length(socket, len(message) // 6)
    try:
        body = MaskRequest.model_validate_json(message)
    except ValidationError as error:
        # Its own words would quote the text.
        wrong = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
        raise PiiBenchError(f"not a request as /mask takes it: {wrong or 'JSON'}") from None
    _check_length(socket, len(body.text))
    found, end = [], 0
    masker = state.of(socket).masker
    count = masker.pieces_of(body.text)
    async for piece, answers in masker.stream(body.text, body.query, body.on_failure):
        found.append(answers)
        end += len(piece)
        entities = [{"text": text, "type": pii_type} for text, pii_type in answers.entities]
        told = {"piece": len(found), "of": count, "end": end, "entities": entities}
        await socket.send_json(told)
    whole = joined(found)
    result = await run_in_threadpool(masked_text, body.text, whole.entities, whole.needed)
    await socket.send_json({"result": result.model_dump()})


def _check_length(connection: HTTPConnection, length: int) -> None:
    most = state.of(connection).settings.most_characters
    if length > most:
        raise HTTPException(413, f"The text has {length} characters; at most {most} are read.")
