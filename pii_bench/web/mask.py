"""The Mask page: mask a prompt in the browser, and put its answer back.

The page keeps the text and the mapping to itself; the server forgets both with its answer.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from pii_bench.systems.base import THIS_MACHINE, UNKNOWN_RECIPIENT
from pii_bench.taxonomy import PiiType
from pii_bench.web import state
from pii_bench.web.masker import PIECE
from pii_bench.web.pages import page
from pii_bench.web.security import CurrentUser
from pii_bench.web.uploads import Limits, endings, read_upload

router: Final = APIRouter(include_in_schema=False)

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


@router.get("/mask")
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


@router.post("/mask/file")
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


def _named(recipient: str) -> str:
    return "somebody it does not name" if recipient == UNKNOWN_RECIPIENT else recipient
