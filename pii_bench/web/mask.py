"""The Mask page, and the API to mask, detect and unmask, which wraps `pii_bench.mask` and `unmask`.

The mapping is in the response alone: the server does not store it.
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
from starlette.responses import Response

import pii_bench
from pii_bench.errors import PiiBenchError
from pii_bench.masking import absent_tags, inexact_tags, mask, unmask
from pii_bench.runs.mask_text import OnFailure
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator
from pii_bench.systems.base import THIS_MACHINE, UNKNOWN_RECIPIENT
from pii_bench.systems.prompted import pieces
from pii_bench.taxonomy import PiiType
from pii_bench.web import state
from pii_bench.web.masker import PIECE, BusyError, joined
from pii_bench.web.pages import page
from pii_bench.web.security import CurrentUser
from pii_bench.web.settings import MOST_BYTES, MOST_CHARACTERS
from pii_bench.web.uploads import Limits, endings, read_upload

if TYPE_CHECKING:
    from collections.abc import Iterable

router: Final = APIRouter(tags=["masking"])

MOST_IN_A_BATCH: Final = 100
MOST_WAITING_FILES: Final = 10

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
"""The names of the types on the page."""

Text = Annotated[str, Field(max_length=200_000)]
"""A text in a request; the server's own limit (`MOST_CHARACTERS`) may be lower."""


class Entity(BaseModel):
    """A found text with its type: one of `PiiType`, or another."""

    text: Text
    type: Annotated[str, Field(max_length=60)]


class Span(BaseModel):
    """A span in code points, end exclusive. `tag` is None if it stays readable."""

    start: int
    end: int
    type: str
    tag: str | None = None


class Masked(BaseModel):
    """A masked text.

    Attributes:
        masked: the text with tags.
        mapping: tag to the texts that it replaced; send it back to `/unmask`, and nowhere else.
        spans: spans of the found texts, masked or readable, in order.
        entities: the found texts.
        needed: found texts that stay readable because the query needs them.
        undecided: True if the system did not say what is needed, so that everything is masked.
        not_found: texts that the system named and that do not occur in the text.
    """

    masked: str
    mapping: dict[str, tuple[str, ...]]
    spans: list[Span]
    entities: list[Entity]
    needed: list[str]
    undecided: bool = False
    not_found: list[str] = []


class MaskRequest(BaseModel):
    """A text to mask for a query. With `entities` it is masked by them, without a system."""

    text: Text
    query: Annotated[str, Field(max_length=20_000)] = ""
    on_failure: OnFailure = "refuse"
    entities: Annotated[list[Entity], Field(max_length=5000)] | None = None
    keep: Annotated[list[Text], Field(max_length=5000)] = []


class DetectRequest(BaseModel):
    """A text in which to find PII."""

    text: Text


class Detected(BaseModel):
    """The entities of a text, and who receives texts unmasked."""

    entities: list[Entity]
    recipients: tuple[str, ...]


class UnmaskRequest(BaseModel):
    """An answer with tags, and the mapping from `/mask`."""

    text: Text
    # Lists, not tuples: messages about wrong requests use the word for it.
    mapping: Annotated[dict[str, list[str]], Field(max_length=20_000)]


class Unmasked(BaseModel):
    """The answer without tags.

    Attributes:
        absent: tags of the mapping that are not in the answer.
        inexact: strings that look like such a tag but have another number; they stay.
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
    """One result for each request, in order; a failure affects its own text alone."""

    results: list[Masked | BatchFailure]


@router.get("/mask", include_in_schema=False)
def mask_page(request: Request, _: CurrentUser) -> Response:
    """Show the Mask page, which names the recipients of unmasked texts."""
    web = state.of(request)
    recipients = web.masker.start()
    return page(
        request,
        "mask.html",
        kinds=KINDS,
        endings=endings(),
        system=web.settings.system,
        recipients=[
            "an unnamed recipient" if recipient == UNKNOWN_RECIPIENT else recipient
            for recipient in recipients
            if recipient != THIS_MACHINE
        ],
        host=None if web.settings.is_loopback else request.url.hostname,
        most_characters=MOST_CHARACTERS,
        most_bytes=MOST_BYTES,
        piece=PIECE,
    )


@router.post("/mask/file", include_in_schema=False)
async def read_file(
    request: Request,
    _: CurrentUser,
    x_file_ending: Annotated[str, Header(max_length=10)] = "",
) -> Response:
    """Return the text of a file, sent as the body so that it is never written to disk."""
    web = state.of(request)
    if web.uploads.statistics().tasks_waiting >= MOST_WAITING_FILES:
        raise BusyError("too many files wait: try again in a minute")
    async with web.uploads:
        data = await request.body()
        upload = await run_in_threadpool(read_upload, x_file_ending, data, Limits())
    return JSONResponse({"text": upload.text, "notes": list(upload.notes)})


@router.post("/mask")
async def mask_one(request: Request, body: MaskRequest, _: CurrentUser) -> Masked:
    """Mask what the query does not need."""
    return await _masked(request, body)


@router.post("/mask/batch")
async def mask_batch(request: Request, body: BatchRequest, _: CurrentUser) -> Batch:
    """Mask several texts; their total length must not exceed the limit of one text."""
    _check_length(sum(len(single.text) for single in body.requests))

    async def mask_or_fail(single: MaskRequest) -> Masked | BatchFailure:
        try:
            return await _masked(request, single)
        except PiiBenchError as error:
            return BatchFailure(error=str(error))

    return Batch(results=await asyncio.gather(*map(mask_or_fail, body.requests)))


@router.post("/detect")
async def detect(request: Request, body: DetectRequest, _: CurrentUser) -> Detected:
    """Find PII in a text."""
    _check_length(len(body.text))
    masker = state.of(request).masker
    answers = await masker.answers(body.text, None)
    return Detected(
        entities=[Entity(text=text, type=pii_type) for text, pii_type in answers.entities],
        recipients=await run_in_threadpool(masker.start),
    )


@router.post("/unmask")
def unmask_one(body: UnmaskRequest, _: CurrentUser) -> Unmasked:
    """Replace the tags of an answer by the masked texts."""
    _check_length(len(body.text))
    mapping = {tag: tuple(texts) for tag, texts in body.mapping.items()}
    return Unmasked(
        text=unmask(body.text, mapping),
        absent=absent_tags(body.text, mapping),
        inexact=inexact_tags(body.text, mapping),
    )


@router.websocket("/mask/stream")
async def mask_stream(socket: WebSocket) -> None:
    """Mask a long text and report the entities of each piece as soon as it is read.

    Receives one message, as `/mask`. Sends `{"piece": 1, "of": 9, "end": ..., "entities": [...]}`
    for each piece, then `{"result": ...}` with the response of `/mask`, or `{"error": ...}`.
    """
    if socket.state.user is None:
        raise WebSocketException(1008, "log in, or send a token")
    await socket.accept()
    try:
        await _stream(socket)
    except (HTTPException, PiiBenchError) as error:
        message = str(error.detail) if isinstance(error, HTTPException) else str(error)
        await socket.send_json({"error": {"message": message}})
    except WebSocketDisconnect:
        return
    await socket.close()


@router.get("/health", tags=["server"])
def health(request: Request) -> dict[str, Any]:
    """Check that the database answers. Needs no account."""
    web = state.of(request)
    with web.database.reading() as connection:
        connection.exec_driver_sql("SELECT 1")
    return {"status": "ok", "version": pii_bench.__version__, "waiting": web.masker.waiting}


@router.get("/metrics", tags=["server"], response_class=PlainTextResponse)
def metrics(request: Request, _: CurrentUser) -> Response:
    """Return counts and times of requests, for Prometheus."""
    return Response(generate_latest(state.of(request).metrics), media_type=CONTENT_TYPE_LATEST)


async def _masked(request: Request, body: MaskRequest) -> Masked:
    _check_length(len(body.text))
    if body.entities is not None:
        pairs = [(entity.text, entity.type) for entity in body.entities]
        return await run_in_threadpool(masked_text, body.text, pairs, tuple(body.keep))
    answers = await state.of(request).masker.answers(body.text, body.query, body.on_failure)
    return await run_in_threadpool(masked_text, body.text, answers.entities, answers.needed)


async def _stream(socket: WebSocket) -> None:
    try:
        message = await asyncio.wait_for(socket.receive_text(), _SECONDS_TO_ASK)
    except TimeoutError:
        raise HTTPException(408, "Nothing was asked.") from None
    # JSON writes a character in up to 6.
    _check_length(len(message) // 6)
    try:
        body = MaskRequest.model_validate_json(message)
    except ValidationError as error:
        # Pydantic's messages would quote the text.
        fields = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        raise PiiBenchError(f"not a request as /mask takes it: {fields or 'JSON'}") from None
    _check_length(len(body.text))
    received, end = [], 0
    masker = state.of(socket).masker
    count = len(pieces(body.text, PIECE))
    async for piece, answers in masker.stream(body.text, body.query, body.on_failure):
        received.append(answers)
        end += len(piece)
        entities = [{"text": text, "type": pii_type} for text, pii_type in answers.entities]
        await socket.send_json(
            {"piece": len(received), "of": count, "end": end, "entities": entities}
        )
    whole = joined(received)
    result = await run_in_threadpool(masked_text, body.text, whole.entities, whole.needed)
    await socket.send_json({"result": result.model_dump()})


def _check_length(length: int) -> None:
    if length > MOST_CHARACTERS:
        raise HTTPException(
            413, f"The text has {length} characters; at most {MOST_CHARACTERS} are read."
        )


def masked_text(
    text: str, entities: Iterable[tuple[str, str]], needed: tuple[str, ...] | None
) -> Masked:
    """Mask (text, type) pairs as `pii_bench.mask` does, and return the spans too.

    `needed` texts stay readable; it is None if they are not known.
    """
    found, keep = list(dict.fromkeys(entities)), needed or ()
    locator = Locator(text)
    masked = mask(text, found, keep, locator=locator)
    spans = [
        Span(start=span.start, end=span.end, type=span.type, tag=span.tag) for span in masked.spans
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
    """Return the spans of readable texts that overlap no masked and no longer readable span."""
    kept = {normalise(text) for text in keep}
    taken = {point for span in masked for point in range(span.start, span.end)}
    found = {
        (start, end, pii_type)
        for text, pii_type in entities
        if normalise(text) in kept
        for start, end in locator.spans(text)
    }
    spans: list[Span] = []
    for start, end, pii_type in sorted(found, key=lambda place: (place[0] - place[1], place)):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            spans.append(Span(start=start, end=end, type=pii_type))
    return spans
