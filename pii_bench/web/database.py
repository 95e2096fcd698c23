"""The database: schema version, transactions, backup and restore.

SQLite has a write-ahead log, so that readers do not wait for a writer. A commit returns once its
data are on the disk. Deleted data are overwritten; `purge` also empties the log and rewrites the
file.
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

    from sqlalchemy import Connection, Engine, Executable, Row, Table
    from sqlalchemy.engine import URL

VERSION: Final = 1
"""Version of the schema; a database with another version is refused."""

_VERSION_FACT: Final = "schema"
_WRITE_LOCK: Final = 250218545
"""Arbitrary number of the advisory lock that writers hold on PostgreSQL."""

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA busy_timeout = 20000",
)


class NotThereError(PiiBenchError):
    """Something that does not exist, or that the user may not see."""

    def __init__(self) -> None:
        super().__init__("This does not exist.")


class Database:
    """An open database with our tables; safe to use from several threads.

    Args:
        where: path of an SQLite file, which is made if it does not exist, or an SQLAlchemy URL.

    Raises:
        PiiBenchError: it cannot be opened, or its schema has another version.
    """

    def __init__(self, where: str) -> None:
        self.url = _url(where)
        # Threads that wait for SQLite's own lock poll it, in no order.
        self._writer = Lock() if self.url.drivername == "sqlite" else nullcontext()
        try:
            self.engine = _engine(self.url)
            with self.writing() as connection:
                _create(connection)
        except NoSuchModuleError:
            raise PiiBenchError(f"{self}: no driver for {self.url.drivername!r}") from None
        except ModuleNotFoundError as error:
            raise PiiBenchError(f"{self}: the driver {error.name!r} is not installed") from None
        except DBAPIError as error:
            raise PiiBenchError(f"{self}: {error.orig}") from None

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a database server."""
        return Path(self.url.database or "") if self.url.drivername == "sqlite" else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees one state of the database."""
        options = {} if self.file else {"isolation_level": "REPEATABLE READ"}
        engine = self.engine.execution_options(**options)
        with engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction that writes; an exception rolls it back.

        Only one runs at a time, over all processes, so what it has read does not change until it
        ends.
        """
        engine = self.engine.execution_options(writing=True)
        with self._writer, engine.connect() as connection, connection.begin():
            if self.url.get_backend_name() == "postgresql":
                # On SQLite, BEGIN IMMEDIATE takes the lock.
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")
            yield connection

    def write(self, *statements: Executable) -> None:
        """Execute statements in one transaction."""
        with self.writing() as connection:
            for statement in statements:
                connection.execute(statement)

    def purge(self) -> None:
        """Remove all traces of deleted data from the files (only SQLite); other writers wait.

        Raises:
            PiiBenchError: a reader still uses the old state.
        """
        if self.file is None:
            return
        # VACUUM needs a connection without a transaction.
        with closing(sqlite3.connect(self.file, timeout=2, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise PiiBenchError(f"{self}: is being read, so its log still has the deleted data")

    def close(self) -> None:
        """Release all connections."""
        self.engine.dispose()


def find_row(connection: Connection, table: Table, row_id: int) -> Row[Any]:
    """Return a row by its id.

    Raises:
        NotThereError: there is none.
    """
    row = connection.execute(select(table).where(table.c.id == row_id)).one_or_none()
    if row is None:
        raise NotThereError
    return row


def insert_row(connection: Connection, table: Table, **values: Any) -> int:
    """Insert a row and return its id."""
    (row_id,) = connection.execute(insert(table).values(**values)).inserted_primary_key or (0,)
    return row_id


def _url(where: str) -> URL:
    if "://" not in where:
        where = f"sqlite:///{where}"
    try:
        return make_url(where)
    except ArgumentError:
        # The original message quotes the URL with its password.
        raise PiiBenchError("the database is neither a path nor an SQLAlchemy URL") from None


def _engine(url: URL) -> Engine:
    if url.drivername != "sqlite":
        return create_engine(url, pool_size=20, max_overflow=20, hide_parameters=True)
    if not url.database or url.database == ":memory:":
        raise PiiBenchError("a database in memory would lose everything: give the path of a file")
    with suppress(OSError):  # it exists, or SQLite will report what is wrong
        _make_private(Path(url.database))
    # The parameters hold personal texts, which an error must not show.
    engine = create_engine(url, pool_size=20, max_overflow=40, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        # Otherwise sqlite3 itself begins transactions, and too late.
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        # A transaction that begins as a reader cannot write while another one writes.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing") else "BEGIN")

    return engine


def _make_private(path: Path) -> None:
    """Make a file that only its owner can read; SQLite gives its log the same mode."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _create(connection: Connection) -> None:
    if not inspect(connection).has_table(FACTS.name):
        METADATA.create_all(connection)
        connection.execute(insert(FACTS).values(name=_VERSION_FACT, value=str(VERSION)))
        return
    version = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == _VERSION_FACT))
    if version != str(VERSION):
        raise PiiBenchError(
            f"{connection.engine.url.render_as_string(hide_password=True)}: its schema has "
            f"version {version or 'unknown'}; allowed: {VERSION}"
        )
    # Tables added to the code since the database was made.
    METADATA.create_all(connection)


def back_up(where: str, copy: Path, *, force: bool) -> None:
    """Copy an SQLite database in one consistent state; the server may run meanwhile.

    Raises:
        PiiBenchError: there is no database, it is no SQLite file, or the copy exists and `force`
            is not set.
    """
    database = _file_of(where)
    _check(database)
    _copy(database, copy, force=force)


def restore(where: str, copy: Path, *, force: bool) -> None:
    """Restore an SQLite database from a copy; stop the server first.

    Raises:
        PiiBenchError: the copy is not a database of pii-bench, or the database exists and
            `force` is not set.
    """
    _check(copy)
    database = _file_of(where)
    _copy(copy, database, force=force)
    # SQLite would apply the log of the old database to the new one.
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)


def _file_of(where: str) -> Path:
    url = _url(where)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise PiiBenchError(
            f"{url.render_as_string(hide_password=True)}: only SQLite files can be copied here; "
            "for a database server, use its own tools, such as pg_dump"
        )
    return Path(url.database)


def _check(path: Path) -> None:
    if not path.is_file():
        raise PiiBenchError(f"{path}: no such database")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            row = file.execute("SELECT value FROM facts WHERE name = 'schema'").fetchone()
            (integrity,) = file.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise PiiBenchError(f"{path}: is not a database of pii-bench ({error})") from None
    if row is None or row[0] != str(VERSION):
        raise PiiBenchError(f"{path}: its schema does not have version {VERSION}")
    if integrity != "ok":
        raise PiiBenchError(f"{path}: is damaged ({integrity.splitlines()[0]})")


def _copy(source: Path, target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise PiiBenchError(f"{target}: exists; --force replaces it")
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        _make_private(part)
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            # Without a write-ahead log, the copy is one file.
            new.execute("PRAGMA journal_mode = DELETE")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except sqlite3.Error as error:
        raise PiiBenchError(f"{target}: cannot be written ({error})") from None
    finally:
        part.unlink(missing_ok=True)
