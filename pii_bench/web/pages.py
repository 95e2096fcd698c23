"""Responses: pages from templates, downloads, and errors as a page or JSON."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.templating import Jinja2Templates

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.runs.mask_text import MaskingError
from pii_bench.web.accounts import LOCAL_NAME, Role
from pii_bench.web.database import NotThereError
from pii_bench.web.masker import BusyError
from pii_bench.web.tasks import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fastapi import FastAPI, Request, UploadFile

    from pii_bench.web.accounts import User

STATIC: Final = Path(__file__).parent / "static"

_TEMPLATES: Final = Jinja2Templates(Path(__file__).parent / "templates")
_TEMPLATES.env.trim_blocks = _TEMPLATES.env.lstrip_blocks = True

_STATUSES: Final[Mapping[type[PiiBenchError], int]] = {
    BusyError: 503,
    # The request was valid, but the system gave no usable answer.
    MaskingError: 502,
    NotThereError: 404,
    ConflictError: 409,
}
"""Status codes of our own errors; the others are 400."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page of `templates/`, which escapes the values.

    The template also gets `user`, `is_owner`, `local` and `csrf_token`.
    """
    user: User | None = getattr(request.state, "user", None)
    common = {
        "user": user,
        "is_owner": user is not None and user.role is Role.OWNER,
        "local": user is not None and user.name == LOCAL_NAME,
        "csrf_token": (user.csrf_token or "") if user else "",
    }
    return _TEMPLATES.TemplateResponse(request, template, common | values, status_code=status)


def download(records: Iterable[dict[str, Any]], name: str) -> Response:
    """Return records as a JSON Lines file to download."""
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/jsonl", headers=headers)


@contextmanager
def uploaded(file: UploadFile, name: str) -> Iterator[Path]:
    """Write an uploaded file to a temporary folder, which errors about the file do not name."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(file.file.read())
        try:
            yield path
        except InputFileError as error:
            raise PiiBenchError(str(error).replace(f"{folder}/", "")) from None


def add_handlers(app: FastAPI) -> None:
    """Add handlers for the exceptions that routes raise."""

    @app.exception_handler(HTTPException)
    def _on_status(request: Request, error: HTTPException) -> Response:
        if error.status_code == 401 and request.method == "GET" and _wants_html(request):
            query = urlencode({"next": request.url.path})
            return RedirectResponse(f"/login?{query}", 303)
        response = _error(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    def _on_invalid(request: Request, error: RequestValidationError) -> Response:
        # The default message quotes the values that were sent.
        message = "; ".join(
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors()
        )
        return _error(request, 422, message)

    @app.exception_handler(PiiBenchError)
    def _on_own_error(request: Request, error: PiiBenchError) -> Response:
        status = next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), 400)
        return _error(request, status, str(error))


def _error(request: Request, status: int, message: str) -> Response:
    if not _wants_html(request):
        return JSONResponse({"error": {"message": message}}, status)
    title = HTTPStatus(status).phrase
    return page(request, "error.html", status=status, title=title, message=message)


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
