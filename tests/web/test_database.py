"""The database file, and copies of it."""

from __future__ import annotations

import sqlite3
import stat
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete, func, insert, select, update

from pii_bench.cli import main
from pii_bench.errors import PiiBenchError
from pii_bench.web.database import Database, DatabaseError, back_up, restore
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


def add(database: Database, *names: str) -> None:
    with database.writing() as connection:
        rows = [{"name": name, "value": "x"} for name in names]
        connection.execute(insert(FACTS), rows)


def names(path: Path) -> set[str]:
    database = Database(str(path))
    with database.reading() as connection:
        found = set(connection.scalars(select(FACTS.c.name)))
    database.close()
    return found


def test_a_copy_leads_back_to_the_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, copy = tmp_path / "web.sqlite", tmp_path / "copy.sqlite"
    database = Database(str(path))
    add(database, "before")
    command = ["serve", "--database", str(path)]

    assert main([*command, "--backup", str(copy)]) == 0
    add(database, "after")
    database.close()
    assert names(path) == {"schema", "before", "after"}

    assert main([*command, "--restore", str(copy)]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert main([*command, "--restore", str(copy), "--force"]) == 0
    assert names(path) == {"schema", "before"}


def test_a_copy_is_whole_while_others_write(tmp_path: Path) -> None:
    path, copy = tmp_path / "web.sqlite", tmp_path / "copy.sqlite"
    database, stop = Database(str(path)), Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            # Two at a time: a copy has both or none.
            add(database, f"a{number}", f"b{number}")
            number += 1

    thread = Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            back_up(str(path), copy, force=True)
            found = names(copy)
            assert {n[1:] for n in found if n[0] == "a"} == {n[1:] for n in found if n[0] == "b"}
    finally:
        stop.set()
        thread.join()
    with database.reading() as connection:
        assert (connection.scalar(select(func.count()).select_from(FACTS)) or 0) >= 3
    database.close()


def test_only_its_owner_can_read_database_and_copy(tmp_path: Path) -> None:
    path, copy = tmp_path / "web.sqlite", tmp_path / "copy.sqlite"
    database = Database(str(path))
    add(database, "x")
    back_up(str(path), copy, force=False)

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    database.close()

    assert modes.keys() >= {"web.sqlite", "web.sqlite-wal", "copy.sqlite"}
    assert set(modes.values()) == {0o600}


def test_what_is_no_copy_of_ours_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite"
    database = Database(str(path))
    add(database, "mine")
    database.close()
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("x" * 5000, encoding="utf-8")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE facts (name, value)")
    connection.close()

    for copy in (text, other, tmp_path / "none"):
        with pytest.raises(PiiBenchError):
            restore(str(path), copy, force=True)
    assert names(path) == {"schema", "mine"}


def test_a_server_has_its_own_means(tmp_path: Path) -> None:
    where = "postgresql+psycopg://user:hidden@host/x"

    with pytest.raises(PiiBenchError, match="pg_dump") as caught:
        back_up(where, tmp_path / "x", force=False)
    assert "hidden" not in str(caught.value)
