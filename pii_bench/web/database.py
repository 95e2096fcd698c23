"""The database: opening it, its schema, reading and writing, copies of it.

SQLite keeps a write-ahead log, so that readers do not wait for a writer, and every committed
write is on the disk before the answer goes out. What is deleted is overwritten; `purge` also
empties the log and rewrites the file.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import create_engine, event, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from pii_bench.errors import PiiBenchError
from pii_bench.web.tables import FACTS, METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Executable
    from sqlalchemy.engine import URL

VERSION: Final = 1
"""Of the schema. A database with a later one is refused."""

_VERSION_FACT: Final = "schema"
_WRITERS: Final = 250218545
"""The number of the lock that writers hold on PostgreSQL: any that no other program takes."""

_ONLY_THE_OWNER: Final = 0o600
_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA busy_timeout = 20000",
)


class DatabaseError(PiiBenchError):
    """A database that cannot be used."""


class NotThereError(PiiBenchError):
    """Something that is not there, or not for this person."""

    def __init__(self) -> None:
        super().__init__("There is nothing here.")


class Database:
    """An open database with our tables; safe to use from several threads.

    Args:
        where: path of an SQLite file, which is made if it is not there, or an SQLAlchemy URL.

    Raises:
        DatabaseError: it cannot be opened, or a later version of pii-bench wrote it.
    """

    def __init__(self, where: str) -> None:
        self.url = _url(where)
        # Who waits for SQLite itself sleeps and asks again, in no order.
        self._writer = Lock() if self.url.drivername == "sqlite" else nullcontext()
        try:
            self.engine = _engine(self.url)
            with self.writing() as connection:
                _create(connection)
        except NoSuchModuleError:
            raise DatabaseError(f"{self}: no driver for {self.url.drivername!r}") from None
        except ModuleNotFoundError as error:
            raise DatabaseError(f"{self}: the driver {error.name!r} is not installed") from None
        except DBAPIError as error:
            raise DatabaseError(f"{self}: {error.orig}") from None

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return Path(self.url.database or "") if self.url.drivername == "sqlite" else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        options = {} if self.file else {"isolation_level": "REPEATABLE READ"}
        engine = self.engine.execution_options(**options)
        with engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: all of it is saved, or after an exception nothing.

        One at a time, in all processes: what it has read stays as it was until it has written.
        """
        engine = self.engine.execution_options(writing=True)
        with self._writer, engine.connect() as connection, connection.begin():
            if self.url.get_backend_name() == "postgresql":
                # SQLite has one writer in any case.
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS})")
            yield connection

    def write(self, *statements: Executable) -> None:
        """Execute these in one transaction."""
        with self.writing() as connection:
            for statement in statements:
                connection.execute(statement)

    def purge(self) -> None:
        """Leave nothing in the files of what was deleted. SQLite alone; other writers wait.

        Raises:
            DatabaseError: somebody reads a state from before.
        """
        if self.file is None:
            return
        # VACUUM wants a connection without a transaction.
        with closing(sqlite3.connect(self.file, timeout=2, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise DatabaseError(f"{self}: is being read; what was deleted is still in its log")

    def close(self) -> None:
        """Release all connections."""
        self.engine.dispose()


def _url(where: str) -> URL:
    if "://" not in where:
        where = f"sqlite:///{where}"
    try:
        return make_url(where)
    except ArgumentError:
        # The message would quote the URL, password and all.
        raise DatabaseError("the database is neither a path nor an SQLAlchemy URL") from None


def _engine(url: URL) -> Engine:
    if url.drivername != "sqlite":
        return create_engine(url, pool_size=20, max_overflow=20, hide_parameters=True)
    if not url.database or url.database == ":memory:":
        raise DatabaseError("a database in memory would lose everything: give the path of a file")
    _make_private(Path(url.database))
    # Its parameters are texts of people; an error must not show them.
    engine = create_engine(url, pool_size=20, max_overflow=40, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        # sqlite3 would begin transactions by itself, and too late.
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        # A reader that turns into a writer fails at once where another writes.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing") else "BEGIN")

    return engine


def _make_private(path: Path) -> None:
    """Make the file, if it is not there, so that only its owner can read it; the log follows."""
    with suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _ONLY_THE_OWNER))


def _create(connection: Connection) -> None:
    if not inspect(connection).has_table(FACTS.name):
        METADATA.create_all(connection)
        connection.execute(insert(FACTS).values(name=_VERSION_FACT, value=str(VERSION)))
        return
    found = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == _VERSION_FACT))
    if found != str(VERSION):
        raise DatabaseError(
            f"{connection.engine.url.render_as_string(hide_password=True)}: its schema has "
            f"version {found or 'unknown'}; allowed: {VERSION}"
        )
    # Tables that an area added since the database was made.
    METADATA.create_all(connection)


def back_up(where: str, copy: Path, *, force: bool) -> None:
    """Copy an SQLite database as it is at one moment; the server may go on meanwhile.

    Raises:
        PiiBenchError: there is no database, it is no SQLite file, or the copy is there already
            and `force` is not set.
    """
    database = _file_of(where)
    if not database.is_file():
        raise PiiBenchError(f"{database}: no such database")
    _check(database)
    _copy(database, copy, force=force)


def restore(where: str, copy: Path, *, force: bool) -> None:
    """Make a database of a copy; stop the server first.

    Raises:
        PiiBenchError: the copy is none of ours, or there is a database already and `force` is
            not set.
    """
    _check(copy)
    database = _file_of(where)
    _copy(copy, database, force=force)
    # A log of the database before must not be played into this one.
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def _file_of(where: str) -> Path:
    url = _url(where)
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
