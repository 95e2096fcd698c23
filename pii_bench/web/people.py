"""Pages and routes: home, login and logout, the user's account, and the accounts of all users."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from pii_bench.errors import PiiBenchError
from pii_bench.web import state
from pii_bench.web.accounts import (
    COOKIE,
    LOCAL_NAME,
    SESSION_SECONDS,
    SHORTEST_PASSWORD,
    Role,
    User,
    add_account,
    add_token,
    begin_session,
    check_password,
    close_account,
    delete_token,
    end_session,
    list_accounts,
    list_tokens,
    set_password,
)
from pii_bench.web.pages import page
from pii_bench.web.security import FORM_EXPIRED, CurrentUser, Number, Owner, limit_logins

router: Final = APIRouter(include_in_schema=False)

_FORM_COOKIE: Final = "pii_bench_login"
"""Cookie with the CSRF token of the login form; before the login there is no session."""


def _with_session(user: CurrentUser) -> User:
    """Refuse a token with 403: a stolen token must not give access to accounts."""
    if user.csrf_token is None:
        raise HTTPException(403, "Log in with a browser: a token is not enough for this.")
    return user


SessionUser = Annotated[User, Depends(_with_session)]


def _owner_with_session(user: Owner) -> User:
    return _with_session(user)


SessionOwner = Annotated[User, Depends(_owner_with_session)]
Password = Annotated[str, Form(max_length=1000)]


@router.get("/")
def home(request: Request, _: CurrentUser) -> Response:
    """Show the home page."""
    return page(request, "home.html")


@router.get("/login")
def login_page(request: Request, next: str = "/") -> Response:  # noqa: A002 -- its name in the URL
    """Show the login form; send a user who is logged in to the home page."""
    if request.state.user is not None:
        return RedirectResponse("/", 303)
    return _login_form(request, next)


@router.post("/login")
def login(
    request: Request,
    name: Annotated[str, Form(max_length=200)],
    password: Password,
    csrf_token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=500)] = "/",  # noqa: A002 -- the same
) -> Response:
    """Begin a session, or show the form again."""
    limit_logins(request, name)
    expected = request.cookies.get(_FORM_COOKIE, "")
    if not expected or not secrets.compare_digest(expected.encode(), csrf_token.encode()):
        raise HTTPException(403, FORM_EXPIRED)
    database = state.of(request).database
    account = check_password(database, name, password)
    if account is None:
        return _login_form(request, next, failed=True)
    secret = begin_session(database, account)
    response = RedirectResponse(_local_path(next), 303)
    _set_cookie(request, response, COOKIE, secret, SESSION_SECONDS)
    response.delete_cookie(_FORM_COOKIE)
    return response


@router.post("/logout")
def logout(request: Request, _: CurrentUser) -> Response:
    """End the session."""
    end_session(state.of(request).database, request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/account")
def account_page(request: Request, user: CurrentUser) -> Response:
    """Show the tokens of the user and the form for a new password."""
    return _account(request, user)


@router.post("/account/password")
def change_password(request: Request, user: SessionUser, old: Password, new: Password) -> Response:
    """Change the user's password and end all of their tokens and sessions, this one too."""
    if user.name == LOCAL_NAME:
        raise HTTPException(400, "Without accounts there is no password.")
    limit_logins(request, user.name)
    database = state.of(request).database
    if check_password(database, user.name, old) is None:
        return _account(request, user, wrong="The old password is wrong.")
    try:
        set_password(database, user.id, new)
    except PiiBenchError as error:
        return _account(request, user, wrong=f"{error}.")
    return RedirectResponse("/login", 303)


@router.post("/account/tokens")
def make_token(
    request: Request, user: SessionUser, name: Annotated[str, Form(max_length=100)]
) -> Response:
    """Make a token and show it once."""
    try:
        token = add_token(state.of(request).database, user, name.strip())
    except PiiBenchError as error:
        return _account(request, user, wrong=f"{error}.")
    return _account(request, user, token=token)


@router.post("/account/tokens/{token_id}/delete")
def remove_token(request: Request, user: SessionUser, token_id: Number) -> Response:
    """Delete a token of the user."""
    if not delete_token(state.of(request).database, user, token_id):
        raise HTTPException(404, "You have no such token.")
    return RedirectResponse("/account", 303)


@router.get("/people")
def people_page(request: Request, _: SessionOwner) -> Response:
    """List all accounts."""
    return _people(request)


@router.post("/people")
def add_person(
    request: Request,
    owner: SessionOwner,
    name: Annotated[str, Form(max_length=100)],
    role: Annotated[Role, Form()],
) -> Response:
    """Make an account and show its password once."""
    if owner.name == LOCAL_NAME and role is not Role.OWNER:
        return _people(request, wrong="The first account must have the role owner.")
    password = secrets.token_urlsafe(12)
    try:
        add_account(state.of(request).database, name.strip(), role, password)
    except PiiBenchError as error:
        return _people(request, wrong=f"{error}.")
    return _people(request, name=name.strip(), password=password)


@router.post("/people/{account_id}/password")
def reset_password(request: Request, _: SessionOwner, account_id: int) -> Response:
    """Give an account a new password and show it once."""
    name = _name_of(request, account_id)
    password = secrets.token_urlsafe(12)
    set_password(state.of(request).database, account_id, password)
    return _people(request, name=name, password=password)


@router.post("/people/{account_id}/close")
def close(request: Request, _: SessionOwner, account_id: int) -> Response:
    """Close an account; its finished annotations and its verdicts stay."""
    _name_of(request, account_id)
    try:
        close_account(state.of(request).database, account_id)
    except PiiBenchError as error:
        return _people(request, wrong=f"{error}.")
    return RedirectResponse("/people", 303)


def _name_of(request: Request, account_id: int) -> str:
    for account in list_accounts(state.of(request).database):
        if account.id == account_id:
            return account.name
    raise HTTPException(404, "There is no such account.")


def _account(request: Request, user: User, **values: Any) -> Response:
    tokens = list_tokens(state.of(request).database, user)
    values |= {"tokens": tokens, "shortest": SHORTEST_PASSWORD}
    return page(request, "account.html", status=400 if "wrong" in values else 200, **values)


def _people(request: Request, **values: Any) -> Response:
    values |= {"people": list_accounts(state.of(request).database), "roles": list(Role)}
    return page(request, "people.html", status=400 if "wrong" in values else 200, **values)


def _login_form(request: Request, target: str, *, failed: bool = False) -> Response:
    # Reuse the token, so that a login form in another tab stays valid.
    token = request.cookies.get(_FORM_COOKIE) or secrets.token_urlsafe(32)
    values = {"csrf_token": token, "next": _local_path(target), "failed": failed}
    response = page(request, "login.html", status=401 if failed else 200, **values)
    _set_cookie(request, response, _FORM_COOKIE, token, 3600)
    return response


def _set_cookie(request: Request, response: Response, name: str, value: str, seconds: int) -> None:
    secure = request.url.scheme == "https"
    response.set_cookie(
        name, value, max_age=seconds, httponly=True, samesite="lax", secure=secure, path="/"
    )


def _local_path(target: str) -> str:
    """Return a path of this site, or "/": `//host` and a backslash lead to other sites."""
    is_path = target.startswith("/") and not target.startswith("//")
    return target if is_path and "\\" not in target and target.isprintable() else "/"
