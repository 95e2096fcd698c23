"""Who takes part in a project or a review, and so may see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import delete, insert, select

from pii_bench.web.accounts import Role
from pii_bench.web.database import NotThereError, find_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Column, Connection, Executable, Row, Table

    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """The projects or the reviews, and their members, a table of (row id, account id) pairs."""

    table: Table
    members: Table
    row_id: Column[int]
    read: Callable[[Row[Any]], T]

    def all_visible(self, connection: Connection, user: User) -> list[T]:
        """Return all that a user may see, newest first."""
        query = select(self.table).order_by(self.table.c.created.desc())
        if not user.role.allows(Role.OWNER):
            own = select(self.row_id).where(self.members.c.account_id == user.id)
            query = query.where(self.table.c.id.in_(own))
        return [self.read(row) for row in connection.execute(query)]

    def get(self, connection: Connection, row_id: int) -> T:
        """Return one by its id."""
        return self.read(find_row(connection, self.table, row_id))

    def get_visible(self, connection: Connection, user: User, row_id: int) -> T:
        """Return one that the user may see.

        Raises:
            NotThereError: it does not exist, or the user is neither an owner nor a member.
        """
        found = self.get(connection, row_id)
        if not user.role.allows(Role.OWNER) and user.id not in self.members_of(connection, row_id):
            raise NotThereError
        return found

    def members_of(self, connection: Connection, row_id: int) -> set[int]:
        """Return the ids of the accounts that take part."""
        query = select(self.members.c.account_id).where(self.row_id == row_id)
        return set(connection.scalars(query))

    def add_member(self, database: Database, row_id: int, account_id: int) -> None:
        """Add a member, unless the account is one already."""
        values = {self.row_id.name: row_id, "account_id": account_id}
        with database.writing() as connection:
            if account_id not in self.members_of(connection, row_id):
                connection.execute(insert(self.members).values(**values))

    def remove_member(
        self, database: Database, row_id: int, account_id: int, *also: Executable
    ) -> None:
        """Remove a member, and execute other statements in the same transaction."""
        theirs = (self.row_id == row_id) & (self.members.c.account_id == account_id)
        database.write(delete(self.members).where(theirs), *also)

    def delete(self, database: Database, row_id: int) -> None:
        """Delete one, and purge its texts and answers from the database file."""
        database.write(delete(self.table).where(self.table.c.id == row_id))
        database.purge()
