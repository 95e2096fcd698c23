"""Masking, detection and putting back: the Mask page, and the API for it and for programs.

The same functions as `pii_bench.mask` and `pii_bench.masking.unmask`. A mapping is in the answer
alone: the server keeps none.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import (
    APIRouter,
    Header,
    HTTPException,
    Request,
    WebSocket,
    WebSocketDisconnect,
    WebSocketException,
)
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import HTTPConnection
from starlette.responses import Response

import pii_bench
from pii_bench.errors import PiiBenchError
from pii_bench.masking import absent_tags, inexact_tags, mask, unmask
from pii_bench.masking.masked import make_plan
from pii_bench.runs.mask_text import OnFailure
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator
from pii_bench.systems.base import THIS_MACHINE, UNKNOWN_RECIPIENT
from pii_bench.taxonomy import PiiType
from pii_bench.web import state
from pii_bench.web.masker import PIECE, joined
from pii_bench.web.pages import page
from pii_bench.web.security import CurrentUser
from pii_bench.web.uploads import Limits, endings, read_upload

if TYPE_CHECKING:
    from collections.abc import Iterable

router: Final = APIRouter(tags=["masking"])

MOST_IN_A_BATCH: Final = 100

_SECONDS_TO_ASK: Final = 30

KINDS: Final = {
    PiiType.PER.value: "People",
    PiiType.CODE.value: "Numbers and addresses",
    PiiType.LOC.value: "Places",
    PiiType.ORG.value: "Organisations",
    PiiType.DEM.value: "Personal details",
    PiiType.DATETIME.value: "Dates and times",
    PiiType.QUANTITY.value: "Money and figures",
}
"""What the page calls the types."""

Text = Annotated[str, Field(max_length=200_000)]
"""Of any kind; the server's own limit (`Settings.most_characters`) may be lower."""

Query = Annotated[str, Field(max_length=20_000)]
Tags = Annotated[dict[str, tuple[str, ...]], Field(max_length=20_000)]


class Entity(BaseModel):
    """A text that was found, with its type (one of the seven, or any other)."""

    text: Text
    type: Annotated[str, Field(max_length=60)]


class Span(BaseModel):
    """A place: code points of the text, end exclusive. `tag` is None where it stays readable."""

    start: int
    end: int
    type: str
    tag: str | None = None


class Masked(BaseModel):
    """What became of a text.

    Attributes:
        masked: the text with tags.
        mapping: each tag with what it stands for: send it back to `/unmask`, and nowhere else.
        spans: what was found, masked or left readable, in order.
        entities: the texts that were found.
        needed: those of them that stay, for the query needs them.
        undecided: the system did not tell the need, and everything is masked.
        not_found: texts that the system named and that are nowhere in the text.
    """

    masked: str
    mapping: dict[str, tuple[str, ...]]
    spans: list[Span]
    entities: list[Entity]
    needed: list[str]
    undecided: bool = False
    not_found: list[str] = []


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


@router.get("/mask", include_in_schema=False)
def mask_page(request: Request, _: CurrentUser) -> Response:
    """The page; it says who would see a text."""
    web = state.of(request)
    recipients = web.masker.start()
    return page(
        request,
        "mask.html",
        kinds=KINDS,
        endings=endings(),
        system=web.settings.system,
        recipients=[_named(each) for each in recipients if each != THIS_MACHINE],
        host=None if web.settings.is_loopback else request.url.hostname,
        most_characters=web.settings.most_characters,
        most_bytes=web.settings.most_bytes,
        piece=PIECE,
    )


@router.post("/mask/file", include_in_schema=False)
async def read_file(
    request: Request,
    _: CurrentUser,
    x_file_ending: Annotated[str, Header(max_length=10)] = "",
) -> Response:
    """The text of a file, which comes as the body: so it is never written to a disk."""
    web = state.of(request)
    limits = Limits(characters=web.settings.most_characters)
    async with web.uploads.one():
        data = await request.body()
        upload = await run_in_threadpool(read_upload, x_file_ending, data, limits)
    return JSONResponse({"text": upload.text, "notes": list(upload.notes)})


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
def unmask_one(request: Request, body: UnmaskRequest, _: CurrentUser) -> Unmasked:
    """Put back into an answer what the tags stand for."""
    _check_length(request, len(body.text))
    return Unmasked(
        text=unmask(body.text, body.mapping),
        absent=absent_tags(body.text, body.mapping),
        inexact=inexact_tags(body.text, body.mapping),
    )


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
def health(request: Request) -> dict[str, Any]:
    """Whether the server works: its database answers. Needs no account and tells no secret."""
    web = state.of(request)
    with web.database.reading() as connection:
        connection.exec_driver_sql("SELECT 1")
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


def masked_text(
    text: str, entities: Iterable[tuple[str, str]], needed: tuple[str, ...] | None
) -> Masked:
    """Mask a text as `pii_bench.mask` does, and say what is where.

    Args:
        text: any text.
        entities: (text, type) pairs.
        needed: texts that stay; None where that is not known.
    """
    found, keep = list(dict.fromkeys(entities)), needed or ()
    locator = Locator(text)
    masked = mask(text, found, keep, locator=locator)
    claims = make_plan(text, found, keep, locator).claims
    spans = [
        Span(start=span.start, end=span.end, type=claim.label, tag=span.tag)
        for span, claim in zip(masked.spans, claims, strict=True)
    ]
    spans += _readable(found, keep, locator, spans)
    return Masked(
        masked=masked.text,
        mapping=dict(masked.mapping),
        spans=sorted(spans, key=lambda span: span.start),
        entities=[Entity(text=each, type=pii_type) for each, pii_type in found],
        needed=list(keep),
        undecided=needed is None,
        not_found=list(masked.not_found),
    )


def _readable(
    entities: Iterable[tuple[str, str]],
    keep: Iterable[str],
    locator: Locator,
    masked: Iterable[Span],
) -> list[Span]:
    """Where texts that stay are, without places that are masked or taken by a longer one."""
    kept = {normalise(each) for each in keep}
    taken = {point for span in masked for point in range(span.start, span.end)}
    places = {
        (start, end, pii_type)
        for text, pii_type in entities
        if normalise(text) in kept
        for start, end in locator.spans(text)
    }
    spans: list[Span] = []
    for start, end, pii_type in sorted(places, key=lambda each: (each[0] - each[1], each)):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            spans.append(Span(start=start, end=end, type=pii_type))
    return spans


def _named(recipient: str) -> str:
    return "somebody it does not name" if recipient == UNKNOWN_RECIPIENT else recipient
