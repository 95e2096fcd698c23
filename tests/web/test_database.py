"""The database file."""

from __future__ import annotations

import sqlite3
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete, insert, select, update

from pii_bench.web.database import Database, DatabaseError
from pii_bench.web.tables import FACTS

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "Kunigunde Hohenlohe-Waldenburg"  # noqa: S105 -- a name


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_what_is_deleted_is_gone_from_the_files(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "web.sqlite"))
    with database.writing() as connection:
        rows = [{"name": f"n{n}", "value": f"{SECRET} {n}"} for n in range(200)]
        connection.execute(insert(FACTS), rows)
    assert SECRET.encode() in bytes_of(tmp_path)

    with database.writing() as connection:
        connection.execute(delete(FACTS).where(FACTS.c.name.like("n%")))
    database.purge()

    assert SECRET.encode() not in bytes_of(tmp_path)
    database.close()
    assert SECRET.encode() not in bytes_of(tmp_path)


def test_a_purge_that_a_reader_hinders_says_so(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    database = Database(str(path))
    other = sqlite3.connect(path)
    other.execute("BEGIN")
    other.execute("SELECT * FROM facts").fetchall()

    with pytest.raises(DatabaseError):
        database.purge()

    other.close()
    database.purge()
    database.close()


def test_after_an_exception_nothing_is_saved(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "web.sqlite"))
    with pytest.raises(ZeroDivisionError), database.writing() as connection:  # noqa: PT012
        connection.execute(insert(FACTS).values(name="a", value="b"))
        raise ZeroDivisionError

    with database.reading() as connection:
        assert connection.scalar(select(FACTS.c.value).where(FACTS.c.name == "a")) is None
    database.close()


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "web.sqlite"))
    mine = FACTS.c.name == "count"
    with database.writing() as connection:
        connection.execute(insert(FACTS).values(name="count", value="0"))

    def count() -> None:
        for _ in range(10):
            with database.writing() as connection:
                value = connection.scalars(select(FACTS.c.value).where(mine)).one()
                connection.execute(update(FACTS).where(mine).values(value=str(int(value) + 1)))

    threads = [Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.reading() as connection:
        assert connection.scalar(select(FACTS.c.value).where(mine)) == "80"
    database.close()


def test_a_later_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    Database(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET value = '99' WHERE name = 'schema'")
    connection.close()

    with pytest.raises(DatabaseError, match="version 99; allowed: 1"):
        Database(str(path))


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("sqlite://", "in memory"),
        ("nothing://user:hidden-password@host/x", "no driver"),
        ("postgresql+psycopg://user:hidden-password@127.0.0.1:1/x", "psycopg|refused"),
        ("://hidden-password", "neither"),
        ("/no/such/folder/web.sqlite", "unable to open"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(
    where: str, what: str
) -> None:
    with pytest.raises(DatabaseError, match=what) as caught:
        Database(where)

    assert "hidden-password" not in str(caught.value)
