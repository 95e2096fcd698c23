"""Sessions of browsers and tokens of programs. The database knows only their hashes."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert, select

from pii_bench.web.accounts import Account, AccountError, Role
from pii_bench.web.tables import ACCOUNTS, FACTS, SESSIONS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.web.database import Database

COOKIE: Final = "pii_bench_session"
_DAY: Final = 86400.0
_LOCAL_CSRF_FACT: Final = "local-csrf"
_MOST_TOKENS: Final = 20


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request.

    Attributes:
        account: theirs.
        csrf_token: what their forms must bring; None for a program with a token of its own.
    """

    account: Account
    csrf_token: str | None = field(repr=False)

    @property
    def id(self) -> int:
        """Of the account."""
        return self.account.id

    @property
    def name(self) -> str:
        """Of the account."""
        return self.account.name

    @property
    def role(self) -> Role:
        """Of the account."""
        return self.account.role


def begin_session(database: Database, account: Account, days: int) -> str:
    """Open a session, and forget those that have expired.

    Returns:
        The value of its cookie.
    """
    secret, now = secrets.token_urlsafe(32), time.time()
    with database.writing() as connection:
        connection.execute(delete(SESSIONS).where(SESSIONS.c.expires < now))
        connection.execute(
            insert(SESSIONS).values(
                key=_hash(secret),
                account_id=account.id,
                csrf_token=secrets.token_urlsafe(32),
                expires=now + days * _DAY,
            )
        )
    return secret


def end_session(database: Database, secret: str) -> None:
    """Close a session, if it is open."""
    with database.writing() as connection:
        connection.execute(delete(SESSIONS).where(SESSIONS.c.key == _hash(secret)))


def user_of_session(database: Database, secret: str) -> User | None:
    """Whose session this is; None where it is unknown or has expired."""
    query = (
        select(ACCOUNTS, SESSIONS.c.csrf_token)
        .join_from(SESSIONS, ACCOUNTS)
        .where(SESSIONS.c.key == _hash(secret), SESSIONS.c.expires > time.time())
    )
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return User(Account(row.id, row.name, Role(row.role), row.created), row.csrf_token)


@dataclass(frozen=True, slots=True)
class Token:
    """A program's token, without its secret."""

    id: int
    name: str
    created: float


def add_token(database: Database, account: Account, name: str) -> str:
    """Make a token for programs of an account.

    Returns:
        The token; it cannot be shown again.

    Raises:
        AccountError: no name, a name that is too long, or too many tokens.
    """
    if not 1 <= len(name) <= 60:
        raise AccountError(f"a token's name has {len(name)} characters; allowed: 1 to 60")
    if len(list_tokens(database, account)) >= _MOST_TOKENS:
        raise AccountError(f"there are {_MOST_TOKENS} tokens already: delete one first")
    secret = secrets.token_urlsafe(32)
    values = {"account_id": account.id, "name": name, "created": time.time()}
    with database.writing() as connection:
        connection.execute(insert(TOKENS).values(**values, key=_hash(secret)))
    return secret


def list_tokens(database: Database, account: Account) -> Sequence[Token]:
    """The tokens of an account, oldest first."""
    query = select(TOKENS).where(TOKENS.c.account_id == account.id).order_by(TOKENS.c.id)
    with database.reading() as connection:
        return [Token(row.id, row.name, row.created) for row in connection.execute(query)]


def delete_token(database: Database, account: Account, token_id: int) -> bool:
    """Delete a token of this account.

    Returns:
        Whether it has one with this id; those of others are not touched.
    """
    theirs = (TOKENS.c.id == token_id) & (TOKENS.c.account_id == account.id)
    with database.writing() as connection:
        return connection.execute(delete(TOKENS).where(theirs)).rowcount == 1


def user_of_token(database: Database, secret: str) -> User | None:
    """Whose token this is; None where it is unknown."""
    query = select(ACCOUNTS).join_from(TOKENS, ACCOUNTS).where(TOKENS.c.key == _hash(secret))
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return User(Account(row.id, row.name, Role(row.role), row.created), csrf_token=None)


def local_csrf_token(database: Database) -> str:
    """The token in the forms of a server without accounts; the same after a restart."""
    query = select(FACTS.c.value).where(FACTS.c.name == _LOCAL_CSRF_FACT)
    with database.writing() as connection:
        found: str | None = connection.scalar(query)
        if found is None:
            found = secrets.token_urlsafe(32)
            connection.execute(insert(FACTS).values(name=_LOCAL_CSRF_FACT, value=found))
    return found


def _hash(secret: str) -> bytes:
    # The secrets are random: a slow hash would protect nothing more.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
