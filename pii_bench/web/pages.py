"""Pages and JSON as answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi.responses import JSONResponse
from starlette.templating import Jinja2Templates

import pii_bench
from pii_bench.web.accounts import LOCAL_NAME

if TYPE_CHECKING:
    from fastapi import Request, Response
    from starlette.requests import HTTPConnection

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"

_TEMPLATES: Final = Jinja2Templates(FOLDER / "templates")
_TEMPLATES.env.trim_blocks = _TEMPLATES.env.lstrip_blocks = True


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A template filled with values; it also knows `user` and, in forms, `csrf_token`.

    Args:
        request: what is answered.
        template: name of a file in `templates/`.
        status: of the answer.
        values: what the template shows; all of it is escaped.
    """
    user = getattr(request.state, "user", None)
    known = {
        "user": user,
        "local": user is not None and user.name == LOCAL_NAME,
        "csrf_token": (user.csrf_token or "") if user else "",
        "version": pii_bench.__version__,
    }
    return _TEMPLATES.TemplateResponse(request, template, known | values, status_code=status)


def json_answer(value: object, status: int = 200) -> JSONResponse:
    """A value as JSON. An error is `{"error": {"message": ...}}`, see `json_error`."""
    return JSONResponse(value, status)


def json_error(message: str, status: int) -> JSONResponse:
    """What went wrong, without a word of the text it was about."""
    return json_answer({"error": {"message": message}}, status)


def wants_html(connection: HTTPConnection) -> bool:
    """Whether a browser shows the answer as a page."""
    return "text/html" in connection.headers.get("accept", "")
