"""Who sends a request and what they may do, as dependencies of FastAPI.

Every request passes `admit`, which the application itself depends on: a route cannot forget it.
A route that needs somebody names `CurrentUser`, `Adjudicator` or `Owner`; one that is about a
project names `VisibleProject`. What somebody may not see is not there (404).
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
from pii_bench.web.projects import Project, visible_project

if TYPE_CHECKING:
    from collections.abc import Callable

CSRF_FIELD: Final = "csrf_token"
CSRF_HEADER: Final = "x-csrf-token"

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER: Final = "bearer "


class NotLoggedInError(Exception):
    """A page or call that needs an account; a browser is led to the login."""


def find_user(connection: HTTPConnection) -> User | None:
    """Whose request this is: by token, by session, or the local owner; else None."""
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
    """Let a request in: not too many of one sender, none that another site had sent.

    A request that changes something brings the CSRF token of its session in the field
    `csrf_token` or the header `X-CSRF-Token`. Programs need none: a token of their own, or no
    header that browsers always send.

    Raises:
        HTTPException: 429 too many, 403 from another site or without the token.
        WebSocketException: the same, where it is no request but a WebSocket.
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
    # A WebSocket brings no token; that its origin is ours was seen above.
    if isinstance(connection, Request):
        brought = connection.headers.get(CSRF_HEADER) or await _form_field(connection)
        if not secrets.compare_digest(brought.encode(), user.csrf_token.encode()):
            raise HTTPException(403, "The form has expired. Load the page again and repeat.")


def current_user(connection: HTTPConnection) -> User:
    """Who sends this request.

    Raises:
        NotLoggedInError: no known account.
    """
    user: User | None = connection.state.user
    if user is None:
        raise NotLoggedInError
    return user


CurrentUser = Annotated[User, Depends(current_user)]


def require(role: Role) -> Callable[[User], User]:
    """A dependency that lets in who has this role or one above it, and returns them.

    Raises:
        HTTPException: 403, the role is below.
    """

    def required(user: CurrentUser) -> User:
        if not user.role.allows(role):
            raise HTTPException(403, f"This needs the role {role.value}.")
        return user

    return required


Adjudicator = Annotated[User, Depends(require(Role.ADJUDICATOR))]
Owner = Annotated[User, Depends(require(Role.OWNER))]

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
"""What a database counts up to."""


def _project(request: Request, user: CurrentUser, project_id: Number) -> Project:
    with state.of(request).database.reading() as connection:
        return visible_project(connection, user, project_id)


VisibleProject = Annotated[Project, Depends(_project)]


def limit_logins(request: Request, name: str) -> None:
    """Slow down who guesses passwords.

    Raises:
        HTTPException: 429, too many in a minute from this address or for this name.
    """
    web = state.of(request)
    item = RateLimitItemPerMinute(web.settings.logins_per_minute)
    from_here = web.limiter.hit(item, "login-from", _address(request))
    as_this = web.limiter.hit(item, "login-as", name)
    if not (from_here and as_this):
        raise HTTPException(429, "Too many attempts. Wait a minute.", {"Retry-After": "60"})


def _limit(connection: HTTPConnection, user: User | None) -> None:
    web = state.of(connection)
    item = RateLimitItemPerMinute(web.settings.requests_per_minute)
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


async def _form_field(request: Request) -> str:
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return ""
    value = (await request.form()).get(CSRF_FIELD)
    return value if isinstance(value, str) else ""
