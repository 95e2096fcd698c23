"""The first page, logging in and out, one's own account, and for owners those of everybody."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from pii_bench.web import state
from pii_bench.web.accounts import (
    COOKIE,
    LOCAL_NAME,
    SHORTEST_PASSWORD,
    AccountError,
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
from pii_bench.web.security import CurrentUser, limit_logins, require

router: Final = APIRouter(include_in_schema=False)

_FORM_COOKIE: Final = "pii_bench_login"
"""Nobody has a session before the login: its form brings what a cookie of its own holds."""


def _person(user: CurrentUser) -> User:
    """Somebody with a browser: who steals a program's token gets no other access by it.

    Raises:
        HTTPException: 403, a program.
    """
    if user.csrf_token is None:
        raise HTTPException(403, "Log in for this: a program's token does not do.")
    return user


Person = Annotated[User, Depends(_person)]


def _owner(user: Annotated[User, Depends(require(Role.OWNER))]) -> User:
    return _person(user)


Owner = Annotated[User, Depends(_owner)]
Password = Annotated[str, Form(max_length=1000)]


@router.get("/")
def home(request: Request, _: CurrentUser) -> Response:
    """What there is to do."""
    return page(request, "home.html")


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


@router.get("/account")
def account_page(request: Request, user: CurrentUser) -> Response:
    """Password and tokens."""
    return _account(request, user)


@router.post("/account/password")
def change_password(request: Request, user: Person, old: Password, new: Password) -> Response:
    """Change one's own password; all sessions end, this one too."""
    if user.name == LOCAL_NAME:
        raise HTTPException(400, "On this machine alone there is no password.")
    limit_logins(request, user.name)
    database = state.of(request).database
    if check_password(database, user.name, old) is None:
        return _account(request, user, status=400, wrong="The old password is another.")
    try:
        set_password(database, user.id, new)
    except AccountError as error:
        return _account(request, user, status=400, wrong=f"{error}.")
    return RedirectResponse("/login", 303)


@router.post("/account/tokens")
def make_token(
    request: Request, user: Person, name: Annotated[str, Form(max_length=100)]
) -> Response:
    """Make a token and show it, this once."""
    try:
        token = add_token(state.of(request).database, user, name.strip())
    except AccountError as error:
        return _account(request, user, status=400, wrong=f"{error}.")
    return _account(request, user, token=token)


@router.post("/account/tokens/{token_id}/delete")
def remove_token(request: Request, user: Person, token_id: int) -> Response:
    """Delete a token of one's own."""
    if not delete_token(state.of(request).database, user, token_id):
        raise HTTPException(404, "You have no such token.")
    return RedirectResponse("/account", 303)


@router.get("/people")
def people_page(request: Request, _: Owner) -> Response:
    """Everybody who can log in."""
    return _people(request)


@router.post("/people")
def add_person(
    request: Request,
    owner: Owner,
    name: Annotated[str, Form(max_length=100)],
    role: Annotated[Role, Form()],
) -> Response:
    """Make an account with a password that is shown this once."""
    if owner.name == LOCAL_NAME and role is not Role.OWNER:
        return _people(request, status=400, wrong="The first account must be an owner's.")
    password = _new_password()
    try:
        add_account(state.of(request).database, name.strip(), role, password)
    except AccountError as error:
        return _people(request, status=400, wrong=f"{error}.")
    return _people(request, made=(name.strip(), password))


@router.post("/people/{account_id}/password")
def reset_password(request: Request, _: Owner, account_id: int) -> Response:
    """Give somebody a new password, that is shown this once."""
    database = state.of(request).database
    name = _name_of(request, account_id)
    password = _new_password()
    set_password(database, account_id, password)
    return _people(request, made=(name, password))


@router.post("/people/{account_id}/close")
def close(request: Request, _: Owner, account_id: int) -> Response:
    """Let somebody in no more; what they did stays."""
    _name_of(request, account_id)
    try:
        close_account(state.of(request).database, account_id)
    except AccountError as error:
        return _people(request, status=400, wrong=f"{error}.")
    return RedirectResponse("/people", 303)


def _new_password() -> str:
    return secrets.token_urlsafe(12)


def _name_of(request: Request, account_id: int) -> str:
    names = {each.id: each.name for each in list_accounts(state.of(request).database)}
    if account_id not in names:
        raise HTTPException(404, "There is no such account.")
    return names[account_id]


def _account(request: Request, user: User, *, status: int = 200, **values: Any) -> Response:
    tokens = list_tokens(state.of(request).database, user)
    shortest = SHORTEST_PASSWORD
    return page(request, "account.html", status=status, tokens=tokens, shortest=shortest, **values)


def _people(request: Request, *, status: int = 200, **values: Any) -> Response:
    people = list_accounts(state.of(request).database)
    roles = [role.value for role in Role]
    return page(request, "people.html", status=status, people=people, roles=roles, **values)


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
