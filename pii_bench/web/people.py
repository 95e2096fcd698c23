"""One's own account, and for owners those of everybody."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from pii_bench.web import state
from pii_bench.web.accounts import (
    LOCAL_NAME,
    SHORTEST_PASSWORD,
    AccountError,
    Role,
    User,
    add_account,
    add_token,
    check_password,
    close_account,
    delete_token,
    list_accounts,
    list_tokens,
    set_password,
)
from pii_bench.web.pages import page
from pii_bench.web.security import CurrentUser, limit_logins, require

router: Final = APIRouter(include_in_schema=False)


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


@router.get("/account")
def account_page(request: Request, user: CurrentUser) -> Response:
    """Password and tokens."""
    return _account(request, user)


@router.post("/account/password")
def change_password(request: Request, user: Person, old: Password, new: Password) -> Response:
    """Change one's own password; all sessions end, this one too."""
    _refuse_local(user)
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


def _refuse_local(user: User) -> None:
    if user.name == LOCAL_NAME:
        raise HTTPException(400, "On this machine alone there is no password.")


def _name_of(request: Request, account_id: int) -> str:
    everybody = list_accounts(state.of(request).database)
    for account in everybody:
        if account.id == account_id:
            return account.name
    raise HTTPException(404, "There is no such account.")


def _account(request: Request, user: User, *, status: int = 200, **values: Any) -> Response:
    tokens = list_tokens(state.of(request).database, user)
    shortest = SHORTEST_PASSWORD
    return page(request, "account.html", status=status, tokens=tokens, shortest=shortest, **values)


def _people(request: Request, *, status: int = 200, **values: Any) -> Response:
    people = list_accounts(state.of(request).database)
    roles = [role.value for role in Role]
    return page(request, "people.html", status=status, people=people, roles=roles, **values)
