"""A server and its clients for tests of the web application."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from typing import TYPE_CHECKING, Final

from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from pii_bench.web.accounts import COOKIE, Account, begin_session, list_accounts
from pii_bench.web.app import create_app

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from pii_bench.web.settings import Settings
    from pii_bench.web.state import State

URL_VARIABLE: Final = "PII_BENCH_TEST_DATABASE_URL"
"""Variable with the URL of an empty PostgreSQL database; the tests create others on its server."""
ORIGIN: Final = "http://localhost"
PASSWORD: Final = "correct horse battery"  # noqa: S105 -- of nobody
_CSRF: Final = re.compile(r'name="csrf[-_]token" (?:content|value)="([^"]+)"')


class Browser(TestClient):
    """A client with the headers of a browser; `csrf` is the last CSRF token seen in a page."""

    csrf: str = ""

    def page(self, path: str) -> str:
        """Return the HTML of a page."""
        answer = self.get(path, headers={"accept": "text/html"})
        if match := _CSRF.search(answer.text):
            self.csrf = match[1]
        return answer.text

    def take_token(self) -> None:
        """Send the CSRF token of the home page from now on."""
        self.page("/")
        self.headers["x-csrf-token"] = self.csrf


class Server:
    """An application and its clients, which the stack closes."""

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self.app = create_app(settings)
        self.web: State = self.app.state.web
        self._stack = stack
        # One client runs the lifespan; the others share its event loop.
        self._first = stack.enter_context(TestClient(self.app, base_url=ORIGIN))

    def account(self, name: str) -> Account:
        """Return the account of this name."""
        return next(each for each in list_accounts(self.web.database) if each.name == name)

    def on_disk(self) -> bytes:
        """Return the content of the SQLite files; empty for a database server."""
        path = self.web.database.file
        files = path.parent.glob(f"{path.name}*") if path is not None else ()
        return b"".join(each.read_bytes() for each in files)

    def browser(self, name: str | None = None) -> Browser:
        """Return a browser, logged in if a name is given."""
        client = Browser(self.app, base_url=ORIGIN, headers={"origin": ORIGIN})
        self._share(client)
        if name is not None:
            secret = begin_session(self.web.database, self.account(name))
            client.cookies.set(COOKIE, secret, domain="localhost.local")
        client.take_token()
        return client

    def program(self, token: str | None = None) -> TestClient:
        """Return a client that is not a browser, with a token if one is given."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        client = TestClient(self.app, base_url=ORIGIN, headers=headers)
        self._share(client)
        return client

    def _share(self, client: TestClient) -> None:
        # A new event loop for each request would be slow.
        client.portal = self._first.portal
        self._stack.callback(client.close)


def new_database(folder: Path, name: str, like: str | None = None) -> str:
    """Create a database, a copy of `like` if that is given, and return its path or URL.

    It is an SQLite file, or on the database server that `URL_VARIABLE` names.
    """
    server = os.environ.get(URL_VARIABLE)
    if server is None:
        path = folder / f"{name}.sqlite"
        return str(path if like is None else shutil.copy(like, path))
    name_on_server = f"test_{name}_{uuid.uuid4().hex}"
    template = "" if like is None else f" TEMPLATE {make_url(like).database}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name_on_server}{template}")
    engine.dispose()
    return make_url(server).set(database=name_on_server).render_as_string(hide_password=False)
