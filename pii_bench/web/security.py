"""Authentication, authorization, CSRF protection and rate limits, as dependencies of FastAPI.

`admit` is a dependency of the whole application, so that no route can omit it. A route that
needs a user takes a `CurrentUser`, `Adjudicator` or `Owner`; a route of a project takes a
`VisibleProject`. A project that the user may not see gives 404.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Path, Request, WebSocketException
from limits import RateLimitItemPerMinute
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from pii_bench.web import state
from pii_bench.web.accounts import COOKIE, Role, User, list_accounts, user_of_session, user_of_token
from pii_bench.web.projects import SHARED_PROJECTS, Project

if TYPE_CHECKING:
    from collections.abc import Callable

FORM_EXPIRED: Final = "The form has expired. Load the page again and repeat."

_LOGINS_PER_MINUTE: Final = 10
_REQUESTS_PER_MINUTE: Final = 1200

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER: Final = "bearer "


def find_user(connection: HTTPConnection) -> User | None:
    """Return the user of the token or of the session, or the local owner; else None."""
    web = state.of(connection)
    authorization = connection.headers.get("authorization", "")
    if authorization.lower().startswith(_BEARER):
        user = user_of_token(web.database, authorization[len(_BEARER) :].strip())
        if user is not None or web.local is None:
            return user
    if cookie := connection.cookies.get(COOKIE):
        user = user_of_session(web.database, cookie)
        if user is not None:
            return user
    if web.local is not None and not list_accounts(web.database):
        return web.local
    return None


async def admit(connection: HTTPConnection) -> None:
    """Set the user of a request and check its rate, origin and CSRF token.

    A browser must send the CSRF token of its session with each request that changes something,
    in the field `csrf_token` or the header `X-CSRF-Token`. Programs need none: they send a token
    of their own, or none of the headers that browsers always send.

    Raises:
        HTTPException: 429 for too many requests; 403 for a request from another site or
            without the CSRF token.
        WebSocketException: the same, for a WebSocket.
    """
    try:
        await _admit(connection)
    except HTTPException as error:
        if connection.scope["type"] == "websocket":
            raise WebSocketException(1008, str(error.detail)) from None
        raise


async def _admit(connection: HTTPConnection) -> None:
    user = connection.state.user = await run_in_threadpool(find_user, connection)
    _limit(connection, user)
    if connection.scope["type"] == "http" and connection.scope["method"] in _SAFE:
        return
    if not _is_same_origin(connection):
        raise HTTPException(403, "This request came from another site.")
    if user is None or user.csrf_token is None or not _is_browser(connection):
        return
    # A WebSocket cannot send the token; for it the check of the origin suffices.
    if isinstance(connection, Request):
        token = connection.headers.get("x-csrf-token") or await _form_token(connection)
        if not secrets.compare_digest(token.encode(), user.csrf_token.encode()):
            raise HTTPException(403, FORM_EXPIRED)


def current_user(connection: HTTPConnection) -> User:
    """Return the user of a request.

    Raises:
        HTTPException: 401, the request has no user.
    """
    user: User | None = connection.state.user
    if user is None:
        raise HTTPException(401, "Log in, or send a token: Authorization: Bearer TOKEN.")
    return user


CurrentUser = Annotated[User, Depends(current_user)]


def require(role: Role) -> Callable[[User], User]:
    """Return a dependency that returns the user, or raises 403 if their role is below `role`."""

    def check_role(user: CurrentUser) -> User:
        if not user.role.allows(role):
            raise HTTPException(403, f"This needs the role {role.value}.")
        return user

    return check_role


Adjudicator = Annotated[User, Depends(require(Role.ADJUDICATOR))]
Owner = Annotated[User, Depends(require(Role.OWNER))]

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
"""An ID in the path; PostgreSQL's integers have 32 bits."""


def _project(request: Request, user: CurrentUser, project_id: Number) -> Project:
    with state.of(request).database.reading() as connection:
        return SHARED_PROJECTS.get_visible(connection, user, project_id)


VisibleProject = Annotated[Project, Depends(_project)]


def limit_logins(request: Request, name: str) -> None:
    """Count a login attempt, to slow down the guessing of passwords.

    Raises:
        HTTPException: 429, too many attempts in a minute from this address or for this name.
    """
    web = state.of(request)
    item = RateLimitItemPerMinute(_LOGINS_PER_MINUTE)
    address_allowed = web.limiter.hit(item, "login-from", _address(request))
    name_allowed = web.limiter.hit(item, "login-as", name)
    if not (address_allowed and name_allowed):
        raise HTTPException(429, "Too many attempts. Wait a minute.", {"Retry-After": "60"})


def _limit(connection: HTTPConnection, user: User | None) -> None:
    web = state.of(connection)
    item = RateLimitItemPerMinute(_REQUESTS_PER_MINUTE)
    key = ("account", str(user.id)) if user else ("address", _address(connection))
    if not web.limiter.hit(item, *key):
        raise HTTPException(429, "Too many requests. Wait a minute.", {"Retry-After": "60"})


def _address(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def _is_browser(connection: HTTPConnection) -> bool:
    headers = connection.headers
    return any(name in headers for name in ("origin", "sec-fetch-site", "cookie"))


def _is_same_origin(connection: HTTPConnection) -> bool:
    if connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = connection.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == connection.headers.get("host")


async def _form_token(request: Request) -> str:
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return ""
    value = (await request.form()).get("csrf_token")
    return value if isinstance(value, str) else ""
