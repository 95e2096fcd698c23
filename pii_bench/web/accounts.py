"""People, their passwords and what they may do."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from pii_bench.errors import PiiBenchError
from pii_bench.web.tables import ACCOUNTS, SESSIONS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.web.database import Database

LOCAL_NAME: Final = "local"
"""The account of the user of a server on the loopback without other accounts."""

SHORTEST_PASSWORD: Final = 10
LONGEST_PASSWORD: Final = 200

_NAME: Final = re.compile(r"[\w.@+-]{1,60}")
_HASHER: Final = PasswordHasher()
_OF_NO_ACCOUNT: Final = _HASHER.hash(secrets.token_urlsafe())


class Role(StrEnum):
    """What somebody may do; each may also do what those before may."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    OWNER = "owner"

    def allows(self, needed: Role) -> bool:
        """Whether this role is the one needed, or above it."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class AccountError(PiiBenchError):
    """A name or password that cannot be taken."""


@dataclass(frozen=True, slots=True)
class Account:
    """A person, without the password."""

    id: int
    name: str
    role: Role
    created: float = field(default=0.0, repr=False)


def add_account(database: Database, name: str, role: Role, password: str) -> Account:
    """Make an account.

    Raises:
        AccountError: the name is taken or has other characters than letters, digits and
            `. _ @ + -`, or the password is too short or too long.
    """
    if not _NAME.fullmatch(name) or name == LOCAL_NAME:
        raise AccountError(
            f"the name {name[:60]!r} cannot be taken; allowed: 1 to 60 letters, digits and . _ @ "
            f"+ -, and not {LOCAL_NAME!r}"
        )
    created, hashed = time.time(), hash_password(password)
    row = {"name": name, "role": role.value, "created": created}
    try:
        with database.writing() as connection:
            made = connection.execute(insert(ACCOUNTS).values(**row, password_hash=hashed))
    except IntegrityError:
        raise AccountError(f"there is an account {name!r} already") from None
    (account_id,) = made.inserted_primary_key or (0,)
    return Account(account_id, name, role, created)


def hash_password(password: str) -> str:
    """Argon2id with a salt of its own.

    Raises:
        AccountError: too short or too long.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        allowed = f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
        raise AccountError(f"the password has {len(password)} characters; allowed: {allowed}")
    return _HASHER.hash(password)


def set_password(database: Database, account_id: int, password: str) -> None:
    """Change a password; all sessions of the account end.

    Raises:
        AccountError: see `hash_password`.
    """
    hashed = hash_password(password)
    with database.writing() as connection:
        connection.execute(
            update(ACCOUNTS).where(ACCOUNTS.c.id == account_id).values(password_hash=hashed)
        )
        connection.execute(delete(SESSIONS).where(SESSIONS.c.account_id == account_id))


def close_account(database: Database, account_id: int) -> None:
    """Close an account; what it did stays.

    Raises:
        AccountError: it is the last owner's.
    """
    owners = [each.id for each in list_accounts(database) if each.role is Role.OWNER]
    if owners == [account_id]:
        raise AccountError("this is the last owner: add another one first")
    with database.writing() as connection:
        mine = ACCOUNTS.c.id == account_id
        connection.execute(update(ACCOUNTS).where(mine).values(password_hash=None))
        for table in (SESSIONS, TOKENS):
            connection.execute(delete(table).where(table.c.account_id == account_id))


def check_password(database: Database, name: str, password: str) -> Account | None:
    """The account that has this name and password; takes as long where there is none."""
    with database.reading() as connection:
        row = connection.execute(select(ACCOUNTS).where(ACCOUNTS.c.name == name)).one_or_none()
    known = row is not None and row.password_hash is not None
    hashed = row.password_hash if row is not None and known else _OF_NO_ACCOUNT
    try:
        _HASHER.verify(hashed, password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return None
    if row is None or not known:
        return None
    return Account(row.id, row.name, Role(row.role), row.created)


def list_accounts(database: Database) -> Sequence[Account]:
    """All who can log in, in the order of their names."""
    query = select(ACCOUNTS).where(ACCOUNTS.c.password_hash.is_not(None)).order_by(ACCOUNTS.c.name)
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return [Account(row.id, row.name, Role(row.role), row.created) for row in rows]


def has_owner(database: Database) -> bool:
    """Whether an owner can log in."""
    return any(account.role is Role.OWNER for account in list_accounts(database))


def local_owner(database: Database) -> Account:
    """The account of a server without accounts, made on first use."""
    with database.writing() as connection:
        query = select(ACCOUNTS).where(ACCOUNTS.c.name == LOCAL_NAME)
        row = connection.execute(query).one_or_none()
        if row is None:
            values = {"name": LOCAL_NAME, "role": Role.OWNER.value, "created": time.time()}
            connection.execute(insert(ACCOUNTS).values(**values))
            row = connection.execute(query).one()
    return Account(row.id, row.name, Role(row.role), row.created)
