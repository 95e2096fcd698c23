"""Backup and restore."""

from __future__ import annotations

import sqlite3
import stat
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, insert, select

from pii_bench.cli import main
from pii_bench.errors import PiiBenchError
from pii_bench.web.backup import back_up, restore
from pii_bench.web.database import Database
from pii_bench.web.settings import Settings
from pii_bench.web.tables import FACTS

if TYPE_CHECKING:
    from pathlib import Path


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
            back_up(Settings(database=str(path)), copy, force=True)
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
    back_up(Settings(database=str(path)), copy, force=False)

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
            restore(Settings(database=str(path)), copy, force=True)
    assert names(path) == {"schema", "mine"}


def test_a_server_has_its_own_means(tmp_path: Path) -> None:
    settings = Settings(database="postgresql+psycopg://user:hidden@host/x")

    with pytest.raises(PiiBenchError, match="pg_dump") as caught:
        back_up(settings, tmp_path / "x", force=False)
    assert "hidden" not in str(caught.value)
