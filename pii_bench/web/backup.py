"""A copy of an SQLite database in one file, and the way back. The server may go on meanwhile."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy.engine import make_url

from pii_bench.errors import PiiBenchError
from pii_bench.web.database import VERSION, DatabaseError

if TYPE_CHECKING:
    from pii_bench.web.settings import Settings

_ONLY_THE_OWNER: Final = 0o600


def back_up(settings: Settings, copy: Path, *, force: bool) -> None:
    """Copy the database as it is at one moment.

    Raises:
        PiiBenchError: there is no database, it is no SQLite file, or the copy is there already
            and `force` is not set.
    """
    database = _file_of(settings)
    if not database.is_file():
        raise PiiBenchError(f"{database}: no such database")
    _check(database)
    _copy(database, copy, force=force)


def restore(settings: Settings, copy: Path, *, force: bool) -> None:
    """Make a database of a copy; stop the server first.

    Raises:
        PiiBenchError: the copy is none of ours, or there is a database already and `force` is
            not set.
    """
    _check(copy)
    database = _file_of(settings)
    _copy(copy, database, force=force)
    # A log of the database before must not be played into this one.
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def _file_of(settings: Settings) -> Path:
    if "://" not in settings.database:
        return Path(settings.database)
    url = make_url(settings.database)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise PiiBenchError(
            f"{url.render_as_string(hide_password=True)}: only SQLite files are copied here; a "
            "server has its own means, such as pg_dump"
        )
    return Path(url.database)


def _check(path: Path) -> None:
    if not path.is_file():
        raise PiiBenchError(f"{path}: no such file")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            found = file.execute("SELECT value FROM facts WHERE name = 'schema'").fetchone()
            (sound,) = file.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{path}: is no database of ours ({error})") from None
    if found is None or found[0] != str(VERSION):
        raise DatabaseError(f"{path}: its schema is not of version {VERSION}")
    if sound != "ok":
        raise DatabaseError(f"{path}: is damaged")


def _copy(source: Path, target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise PiiBenchError(f"{target}: is there already; --force replaces it")
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _ONLY_THE_OWNER))
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            # A copy is one file.
            new.execute("PRAGMA journal_mode = DELETE")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except sqlite3.Error as error:
        raise DatabaseError(f"{target}: cannot be written ({error})") from None
    finally:
        part.unlink(missing_ok=True)
