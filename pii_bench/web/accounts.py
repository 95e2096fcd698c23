"""Accounts: passwords, roles, sessions of browsers and tokens of programs.

The database stores only hashes of sessions and tokens.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, insert, null, select, update
from sqlalchemy.exc import IntegrityError

from pii_bench.errors import PiiBenchError
from pii_bench.web.database import insert_row
from pii_bench.web.tables import ACCOUNTS, FACTS, SESSIONS, TASKS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row, Select

    from pii_bench.web.database import Database

LOCAL_NAME: Final = "local"
"""The account of every user of a server on the loopback that has no other accounts."""

SHORTEST_PASSWORD: Final = 10
LONGEST_PASSWORD: Final = 200
COOKIE: Final = "pii_bench_session"
SESSION_SECONDS: Final = 7 * 86400

_LOCAL_CSRF_FACT: Final = "local-csrf"
_MOST_TOKENS: Final = 20

_NAME: Final = re.compile(r"[\w.@+-]{1,60}")
_HASHER: Final = PasswordHasher()
_DUMMY_HASH: Final = _HASHER.hash(secrets.token_urlsafe())


class Role(StrEnum):
    """The roles of accounts; each may also do what those before it may."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    OWNER = "owner"

    def allows(self, needed: Role) -> bool:
        """Return True if this role is the needed one or above it."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Account:
    """A person, without the password."""

    id: int
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class User(Account):
    """The account that sends a request; `csrf_token` is None for a program with its own token."""

    csrf_token: str | None = field(repr=False)


def add_account(database: Database, name: str, role: Role, password: str) -> Account:
    """Create an account.

    Raises:
        PiiBenchError: the name is taken or has characters other than letters, digits and
            `. _ @ + -`, or the password is too short or too long.
    """
    if not _NAME.fullmatch(name) or name == LOCAL_NAME:
        raise PiiBenchError(
            f"the name {name[:60]!r} cannot be taken; allowed: 1 to 60 letters, digits and . _ @ "
            f"+ -, and not {LOCAL_NAME!r}"
        )
    values = {"name": name, "role": role.value, "password_hash": hash_password(password)}
    try:
        with database.writing() as connection:
            account_id = insert_row(connection, ACCOUNTS, **values, created=time.time())
    except IntegrityError:
        raise PiiBenchError(f"there is an account {name!r} already") from None
    return Account(account_id, name, role)


def hash_password(password: str) -> str:
    """Hash a password with Argon2id and a random salt.

    Raises:
        PiiBenchError: the password is too short or too long.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        allowed = f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
        raise PiiBenchError(f"the password has {len(password)} characters; allowed: {allowed}")
    return _HASHER.hash(password)


def set_password(database: Database, account_id: int, password: str) -> None:
    """Change a password and end all sessions and tokens of the account.

    Raises:
        PiiBenchError: the password is too short or too long.
    """
    hashed = hash_password(password)
    database.write(
        update(ACCOUNTS).where(ACCOUNTS.c.id == account_id).values(password_hash=hashed),
        delete(SESSIONS).where(SESSIONS.c.account_id == account_id),
        delete(TOKENS).where(TOKENS.c.account_id == account_id),
    )


def close_account(database: Database, account_id: int) -> None:
    """Close an account: finished tasks stay, open ones become free for others.

    Raises:
        PiiBenchError: it is the last owner's.
    """
    owners = [account.id for account in list_accounts(database) if account.role is Role.OWNER]
    if owners == [account_id]:
        raise PiiBenchError("this is the last owner: add another one first")
    is_open = (TASKS.c.account_id == account_id) & TASKS.c.done.is_(False)
    database.write(
        update(ACCOUNTS).where(ACCOUNTS.c.id == account_id).values(password_hash=None),
        delete(TASKS).where(is_open),
        delete(SESSIONS).where(SESSIONS.c.account_id == account_id),
        delete(TOKENS).where(TOKENS.c.account_id == account_id),
    )


def check_password(database: Database, name: str, password: str) -> Account | None:
    """Return the account with this name and password, or None.

    It takes the same time if no account has the name, so that names cannot be guessed.
    """
    query = select(ACCOUNTS).where(ACCOUNTS.c.name == name, ACCOUNTS.c.password_hash.is_not(None))
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    hashed = _DUMMY_HASH if row is None else row.password_hash
    try:
        _HASHER.verify(hashed, password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return None
    return None if row is None else Account(row.id, row.name, Role(row.role))


def list_accounts(database: Database) -> Sequence[Account]:
    """Return the accounts that can log in, sorted by name."""
    query = select(ACCOUNTS).where(ACCOUNTS.c.password_hash.is_not(None)).order_by(ACCOUNTS.c.name)
    with database.reading() as connection:
        return [Account(row.id, row.name, Role(row.role)) for row in connection.execute(query)]


def local_owner(database: Database) -> User:
    """Return the user of a server without accounts; the CSRF token survives a restart."""
    account = select(ACCOUNTS.c.id).where(ACCOUNTS.c.name == LOCAL_NAME)
    token = select(FACTS.c.value).where(FACTS.c.name == _LOCAL_CSRF_FACT)
    with database.writing() as connection:
        if connection.scalar(account) is None:
            values = {"name": LOCAL_NAME, "role": Role.OWNER.value, "created": time.time()}
            connection.execute(insert(ACCOUNTS).values(**values))
        if connection.scalar(token) is None:
            fact = {"name": _LOCAL_CSRF_FACT, "value": secrets.token_urlsafe(32)}
            connection.execute(insert(FACTS).values(**fact))
        account_id = connection.scalars(account).one()
        return User(account_id, LOCAL_NAME, Role.OWNER, connection.scalars(token).one())


def begin_session(database: Database, account: Account) -> str:
    """Open a session, delete expired ones, and return the value of its cookie."""
    secret, now = secrets.token_urlsafe(32), time.time()
    row = {
        "key": _hash(secret),
        "account_id": account.id,
        "csrf_token": secrets.token_urlsafe(32),
        "expires": now + SESSION_SECONDS,
    }
    database.write(delete(SESSIONS).where(SESSIONS.c.expires < now), insert(SESSIONS).values(**row))
    return secret


def end_session(database: Database, secret: str) -> None:
    """End a session, if it is open."""
    database.write(delete(SESSIONS).where(SESSIONS.c.key == _hash(secret)))


def user_of_session(database: Database, secret: str) -> User | None:
    """Return the user of a session; None if it is unknown or has expired."""
    query = (
        select(ACCOUNTS, SESSIONS.c.csrf_token)
        .join_from(SESSIONS, ACCOUNTS)
        .where(SESSIONS.c.key == _hash(secret), SESSIONS.c.expires > time.time())
    )
    return _find_user(database, query)


def add_token(database: Database, account: Account, name: str) -> str:
    """Create a token for programs of an account and return it; it cannot be read again.

    Raises:
        PiiBenchError: the name is empty or too long, or there are too many tokens.
    """
    if not 1 <= len(name) <= 60:
        raise PiiBenchError(f"a token's name has {len(name)} characters; allowed: 1 to 60")
    if len(list_tokens(database, account)) >= _MOST_TOKENS:
        raise PiiBenchError(f"there are {_MOST_TOKENS} tokens already: delete one first")
    secret = secrets.token_urlsafe(32)
    values = {"account_id": account.id, "name": name, "created": time.time()}
    database.write(insert(TOKENS).values(**values, key=_hash(secret)))
    return secret


def list_tokens(database: Database, account: Account) -> Sequence[Row[int, str]]:
    """Return the id and the name of each token of an account, oldest first."""
    query = select(TOKENS.c.id, TOKENS.c.name).where(TOKENS.c.account_id == account.id)
    with database.reading() as connection:
        return connection.execute(query.order_by(TOKENS.c.id)).all()


def delete_token(database: Database, account: Account, token_id: int) -> bool:
    """Delete a token of this account; return False if the account has none with this id."""
    theirs = (TOKENS.c.id == token_id) & (TOKENS.c.account_id == account.id)
    with database.writing() as connection:
        return connection.execute(delete(TOKENS).where(theirs)).rowcount == 1


def user_of_token(database: Database, secret: str) -> User | None:
    """Return the user of a token.

    None if it is unknown, or belongs to `LOCAL_NAME` and there are other accounts.
    """
    query = (
        select(ACCOUNTS, null().label("csrf_token"))
        .join_from(TOKENS, ACCOUNTS)
        .where(TOKENS.c.key == _hash(secret))
    )
    user = _find_user(database, query)
    is_local = user is not None and user.name == LOCAL_NAME
    return None if is_local and list_accounts(database) else user


def _find_user(database: Database, query: Select[Any]) -> User | None:
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else User(row.id, row.name, Role(row.role), row.csrf_token)


def _hash(secret: str) -> bytes:
    # A slow hash would not help, because the secrets are random.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
