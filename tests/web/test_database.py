"""The database file, and copies of it."""

from __future__ import annotations

import sqlite3
import stat
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import delete, insert, select, update

from pii_bench.cli import main
from pii_bench.errors import PiiBenchError
from pii_bench.web.database import Database, back_up, restore
from pii_bench.web.tables import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "Kunigunde Hohenlohe-Waldenburg"  # noqa: S105 -- a name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "web.sqlite"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database(str(path))
    yield opened
    opened.close()


def add(database: Database, *names: str, value: str = "x") -> None:
    with database.writing() as connection:
        rows = [{"name": name, "value": value} for name in names]
        connection.execute(insert(FACTS), rows)


def names(path: Path) -> set[str]:
    database = Database(str(path))
    with database.reading() as connection:
        stored = set(connection.scalars(select(FACTS.c.name)))
    database.close()
    return stored


def test_a_purge_removes_deleted_data_from_the_files(tmp_path: Path, database: Database) -> None:
    def everything() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    add(database, *(f"n{n}" for n in range(200)), value=SECRET)
    assert SECRET.encode() in everything()

    with database.writing() as connection:
        connection.execute(delete(FACTS).where(FACTS.c.name.like("n%")))
    database.purge()

    assert SECRET.encode() not in everything()
    database.close()
    assert SECRET.encode() not in everything()


def test_a_purge_during_a_read_is_an_error(path: Path, database: Database) -> None:
    other = sqlite3.connect(path)
    other.execute("BEGIN")
    other.execute("SELECT * FROM facts").fetchall()

    with pytest.raises(PiiBenchError):
        database.purge()

    other.close()
    database.purge()


def test_an_exception_rolls_back_the_transaction(path: Path, database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as connection:  # noqa: PT012
        connection.execute(insert(FACTS).values(name="a", value="b"))
        raise ZeroDivisionError

    assert names(path) == {"schema"}


def test_concurrent_writers_lose_no_update(database: Database) -> None:
    add(database, "count", value="0")
    mine = FACTS.c.name == "count"

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


def test_a_later_schema_is_refused(path: Path, database: Database) -> None:
    with database.writing() as connection:
        connection.execute(update(FACTS).values(value="99"))

    with pytest.raises(PiiBenchError, match="version 99; allowed: 1"):
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
def test_an_error_about_the_database_hides_its_password(where: str, what: str) -> None:
    with pytest.raises(PiiBenchError, match=what) as caught:
        Database(where)

    assert "hidden-password" not in str(caught.value)


def test_a_restore_brings_back_the_state_of_the_backup(
    path: Path, copy: Path, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_backup_during_writes_is_consistent(path: Path, copy: Path, database: Database) -> None:
    stop = Event()

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
            copied = names(copy)
            assert {n[1:] for n in copied if n[0] == "a"} == {n[1:] for n in copied if n[0] == "b"}
    finally:
        stop.set()
        thread.join()
    assert {"a0", "b0"} <= names(path)


def test_only_the_owner_of_database_and_copy_can_read_them(
    path: Path, copy: Path, database: Database
) -> None:
    add(database, "x")
    back_up(str(path), copy, force=False)

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert modes.keys() >= {"web.sqlite", "web.sqlite-wal", "copy.sqlite"}
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_no_backup_is_not_restored(tmp_path: Path, path: Path) -> None:
    Database(str(path)).close()
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("x" * 5000, encoding="utf-8")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE facts (name, value)")
    connection.close()
    before = path.read_bytes()

    for copy in (text, other, tmp_path / "none"):
        with pytest.raises(PiiBenchError):
            restore(str(path), copy, force=True)
    assert path.read_bytes() == before


def test_a_database_server_cannot_be_backed_up(copy: Path) -> None:
    with pytest.raises(PiiBenchError, match="pg_dump") as caught:
        back_up("postgresql+psycopg://user:hidden@host/x", copy, force=False)
    assert "hidden" not in str(caught.value)
