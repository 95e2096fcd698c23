"""Databases of tests: SQLite files, or databases of a server whose URL is in the environment."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import TYPE_CHECKING, Final

from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from pathlib import Path

URL_VARIABLE: Final = "PII_BENCH_TEST_DATABASE_URL"
"""Names an empty PostgreSQL database, in whose server the tests may make others."""


def new_database(folder: Path, name: str, like: str | None = None) -> str:
    """Where a new database is, with what another of these has if one is given."""
    server = os.environ.get(URL_VARIABLE)
    if server is None:
        path = folder / f"{name}.sqlite"
        return str(path if like is None else shutil.copy(like, path))
    made = f"test_{name}_{uuid.uuid4().hex}"
    template = "" if like is None else f" TEMPLATE {make_url(like).database}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {made}{template}")
    engine.dispose()
    return make_url(server).set(database=made).render_as_string(hide_password=False)
