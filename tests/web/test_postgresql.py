"""The server on PostgreSQL, if that is installed or the environment names a server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.web.chromium import free_port, serving
from tests.web.savers import lost, save_together, study
from tests.web.server import URL_VARIABLE, new_database

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_DEBIANS: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_PATH: Final = os.pathsep.join([os.environ.get("PATH", ""), *map(str, _DEBIANS)])
REPOSITORY: Final = Path(__file__).resolve().parents[2]
# PostgreSQL refuses to run as root.
_NOBODY: Final = ("runuser", "-u", "nobody", "--") if os.geteuid() == 0 else ()


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    """URL from the environment, or of a server that is started here."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if URL_VARIABLE in os.environ:
        yield os.environ[URL_VARIABLE]
        return
    initdb, control = (shutil.which(name, path=_PATH) for name in ("initdb", "pg_ctl"))
    if initdb is None or control is None:
        pytest.skip(f"PostgreSQL is not installed, and {URL_VARIABLE} is not set")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        if _NOBODY:
            shutil.chown(folder, "nobody")
        data = f"{folder}/data"
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"

        def call(*arguments: str) -> None:
            subprocess.run(  # noqa: S603 -- PostgreSQL's own programs
                [*_NOBODY, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=folder
            )

        call(initdb, "-D", data, "-U", "pii", "--auth=trust", "-E", "UTF8")
        call(control, "-D", data, "-o", options, "-l", f"{folder}/log", "-w", "start")
        try:
            yield f"postgresql+psycopg://pii@127.0.0.1:{port}/postgres"
        finally:
            call(control, "-D", data, "-m", "fast", "-w", "stop")


@pytest.fixture
def url(server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database."""
    monkeypatch.setenv(URL_VARIABLE, server_url)
    return new_database(tmp_path, "web")


# Areas that use the database.
AREAS: Final = ("annotate", "outcomes", "people", "project_pages", "reviews", "security")


@pytest.mark.timeout(900)
def test_the_tests_of_the_pages_pass_on_postgresql(server_url: str) -> None:
    tests = [f"tests/web/test_{area}.py" for area in AREAS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]

    done = subprocess.run(  # noqa: S603 -- our own tests
        command,
        cwd=REPOSITORY,
        env={**os.environ, URL_VARIABLE: server_url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-5000:]


def test_concurrent_saves_of_fifty_people_are_all_stored(url: str, tmp_path: Path) -> None:
    secrets = study(url, 50)

    with serving(tmp_path, "--database", url) as address:
        result = asyncio.run(save_together(address, secrets, 10))

    assert {len(own) for own in result.acknowledged.values()} == {10}
    assert lost(url, result) == []
