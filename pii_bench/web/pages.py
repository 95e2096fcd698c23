"""Pages and JSON as answers: what a browser sees, and a program, also when something is wrong."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.templating import Jinja2Templates

from pii_bench.errors import PiiBenchError
from pii_bench.runs.mask_text import MaskingError
from pii_bench.web.accounts import LOCAL_NAME, Role
from pii_bench.web.database import NotThereError
from pii_bench.web.masker import BusyError
from pii_bench.web.security import NotLoggedInError
from pii_bench.web.tasks import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fastapi import FastAPI, Request

    from pii_bench.web.accounts import User

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"

_TEMPLATES: Final = Jinja2Templates(FOLDER / "templates")
_TEMPLATES.env.trim_blocks = _TEMPLATES.env.lstrip_blocks = True

_STATUSES: Final[Mapping[type[PiiBenchError], int]] = {
    BusyError: 503,
    # A text that cannot be masked is no fault of the request's form.
    MaskingError: 502,
    NotThereError: 404,
    ConflictError: 409,
}
"""Those of our own errors that are not 400."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A template filled with values; it also knows `user`, `is_owner` and, in forms, `csrf_token`.

    Args:
        request: what is answered.
        template: name of a file in `templates/`.
        status: of the answer.
        values: what the template shows; all of it is escaped.
    """
    user: User | None = getattr(request.state, "user", None)
    known = {
        "user": user,
        "is_owner": user is not None and user.role is Role.OWNER,
        "local": user is not None and user.name == LOCAL_NAME,
        "csrf_token": (user.csrf_token or "") if user else "",
    }
    return _TEMPLATES.TemplateResponse(request, template, known | values, status_code=status)


def download(records: Iterable[dict[str, Any]], name: str) -> Response:
    """Records as a file of JSON Lines."""
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/jsonl", headers=headers)


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
        if request.method == "GET" and _wants_html(request):
            query = urlencode({"next": request.url.path})
            return RedirectResponse(f"/login?{query}", 303)
        return _answer(request, 401, "Log in, or send a token: Authorization: Bearer TOKEN.")


def _answer(request: Request, status: int, message: str) -> Response:
    """A page or JSON, without a word of the text that it is about."""
    if not _wants_html(request):
        return JSONResponse({"error": {"message": message}}, status)
    title = HTTPStatus(status).phrase
    return page(request, "error.html", status=status, title=title, message=message)


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
