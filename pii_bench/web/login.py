"""Logging in and out, and the first page."""

from __future__ import annotations

import secrets
from typing import Annotated, Final

from fastapi import APIRouter, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from pii_bench.web import state
from pii_bench.web.accounts import COOKIE, begin_session, check_password, end_session
from pii_bench.web.pages import page
from pii_bench.web.security import CurrentUser, limit_logins

router: Final = APIRouter(include_in_schema=False)

_FORM_COOKIE: Final = "pii_bench_login"
"""Nobody has a session before the login: its form brings what a cookie of its own holds."""


@router.get("/")
def home(request: Request, user: CurrentUser) -> Response:
    """What there is to do."""
    return page(request, "home.html", role=user.role.value)


@router.get("/login")
def login_page(request: Request, next: str = "/") -> Response:  # noqa: A002 -- its name in the URL
    """The form; who is logged in has no need of it."""
    if request.state.user is not None:
        return RedirectResponse("/", 303)
    return _form(request, next)


@router.post("/login")
def login(
    request: Request,
    name: Annotated[str, Form(max_length=200)],
    password: Annotated[str, Form(max_length=1000)],
    csrf_token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=500)] = "/",  # noqa: A002 -- the same
) -> Response:
    """Open a session, or show the form again."""
    limit_logins(request, name)
    expected = request.cookies.get(_FORM_COOKIE, "")
    if not expected or not secrets.compare_digest(expected.encode(), csrf_token.encode()):
        raise HTTPException(403, "The form has expired. Load the page again and repeat.")
    web = state.of(request)
    account = check_password(web.database, name, password)
    if account is None:
        return _form(request, next, status=401, failed=True)
    secret = begin_session(web.database, account, web.settings.session_days)
    answer = RedirectResponse(_within(next), 303)
    lifetime = web.settings.session_days * 86400
    _set_cookie(request, answer, COOKIE, secret, lifetime)
    answer.delete_cookie(_FORM_COOKIE)
    return answer


@router.post("/logout")
def logout(request: Request, user: CurrentUser) -> Response:  # noqa: ARG001 -- who is logged in
    """Close the session."""
    end_session(state.of(request).database, request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _form(request: Request, target: str, *, status: int = 200, failed: bool = False) -> Response:
    # The form of another tab keeps its token.
    token = request.cookies.get(_FORM_COOKIE) or secrets.token_urlsafe(32)
    values = {"csrf_token": token, "next": _within(target), "failed": failed}
    answer = page(request, "login.html", status=status, **values)
    _set_cookie(request, answer, _FORM_COOKIE, token, 3600)
    return answer


def _set_cookie(request: Request, answer: Response, name: str, value: str, lifetime: int) -> None:
    secure = request.url.scheme == "https"
    answer.set_cookie(
        name, value, max_age=lifetime, httponly=True, samesite="lax", secure=secure, path="/"
    )


def _within(target: str) -> str:
    """A path of this site: `//host` and a backslash would lead to another."""
    is_path = target.startswith("/") and not target.startswith("//")
    return target if is_path and "\\" not in target and target.isprintable() else "/"
