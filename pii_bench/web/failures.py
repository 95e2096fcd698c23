"""What somebody sees when something is wrong: a page in a browser, JSON in a program."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from pii_bench.errors import PiiBenchError
from pii_bench.runs.mask_text import MaskingError
from pii_bench.web.masker import BusyError
from pii_bench.web.pages import json_error, page, wants_html
from pii_bench.web.security import NotLoggedInError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request, Response

# A text that cannot be masked is no fault of the request's form.
_STATUSES: Final[Mapping[type[PiiBenchError], int]] = {BusyError: 503, MaskingError: 502}


def add_handlers(app: FastAPI) -> None:
    """Answer the exceptions that handlers raise."""

    @app.exception_handler(HTTPException)
    def _on_status(request: Request, error: HTTPException) -> Response:
        answer = _answer(request, error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    def _on_invalid(request: Request, error: RequestValidationError) -> Response:
        # Its own words would quote what was sent.
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
        )
        return _answer(request, 422, wrong)

    @app.exception_handler(PiiBenchError)
    def _on_our_own(request: Request, error: PiiBenchError) -> Response:
        status = next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), 400)
        return _answer(request, status, str(error))

    @app.exception_handler(NotLoggedInError)
    def _on_nobody(request: Request, _: NotLoggedInError) -> Response:
        if request.method == "GET" and wants_html(request):
            query = urlencode({"next": request.url.path})
            return RedirectResponse(f"/login?{query}", 303)
        return _answer(request, 401, "Log in, or send a token: Authorization: Bearer TOKEN.")


def _answer(request: Request, status: int, message: str) -> Response:
    if not wants_html(request):
        return json_error(message, status)
    title = HTTPStatus(status).phrase
    return page(request, "error.html", status=status, title=title, message=message)
