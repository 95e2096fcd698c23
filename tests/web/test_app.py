"""The application: access, security headers, errors and logs."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest
from fastapi import WebSocket  # noqa: TC002 -- FastAPI reads annotations when it runs
from sqlalchemy import text
from starlette.websockets import WebSocketDisconnect

from pii_bench.errors import PiiBenchError
from pii_bench.web.app import create_app
from pii_bench.web.middleware import HEADERS
from pii_bench.web.settings import MOST_BYTES, Settings
from tests.web.server import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.server import Server


def test_on_the_loopback_no_login_is_needed(local: Server) -> None:
    page = local.browser().page("/")

    assert "this machine only" in page
    assert "Log out" not in page


def test_with_accounts_a_login_is_needed(team: Server) -> None:
    browser = team.browser()

    assert browser.get("/").status_code == 401
    assert "<h1>Log in</h1>" in browser.page("/")
    form = {"name": "ann", "password": PASSWORD, "csrf_token": browser.csrf}
    assert "Log out" in browser.post("/login", data=form).text


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "pii.example.org"])  # noqa: S104
def test_on_other_addresses_it_does_not_start_without_an_owner(host: str, tmp_path: Path) -> None:
    with pytest.raises(PiiBenchError, match="--add-owner"):
        create_app(Settings(database=str(tmp_path / "web.sqlite"), host=host))


def test_every_response_has_the_security_headers(local: Server) -> None:
    browser = local.browser()

    for path in ("/", "/static/style.css", "/none", "/login"):
        headers = browser.get(path).headers
        assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert browser.get("/").headers["cache-control"] == "no-store"


def test_another_host_name_is_refused(local: Server) -> None:
    answer = local.program().get("/", headers={"host": "evil.example.org"})

    assert answer.status_code == 400


def test_errors_are_pages_for_people_and_json_for_programs(local: Server) -> None:
    browser = local.browser()

    assert "<h1>Not Found</h1>" in browser.get("/none", headers={"accept": "text/html"}).text
    assert local.program().get("/none").json() == {"error": {"message": "Not Found"}}


def test_the_log_has_routes_and_no_texts(local: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pii_bench.web")
    browser = local.browser()
    browser.get("/login?next=secret-one")
    browser.get("/secret-two")
    browser.post("/login", data={"name": "secret-three"})

    logged = [record.getMessage() for record in caplog.records if record.name == "pii_bench.web"]
    assert any(line.startswith("GET /login 303 ") for line in logged)
    assert any(line.startswith("GET (no route) 404 ") for line in logged)
    assert not any("secret" in line for line in logged)


def test_a_bug_is_logged_without_its_message(
    local: Server, caplog: pytest.LogCaptureFixture
) -> None:
    @local.app.get("/bug")
    def bug() -> None:
        raise ValueError("a text of somebody")

    answer = local.program().get("/bug")

    assert answer.status_code == 500
    assert "ValueError at " in caplog.text
    assert "a text of somebody" not in caplog.text + answer.text


def test_an_error_of_the_database_is_logged_with_its_code_and_our_line(
    local: Server, caplog: pytest.LogCaptureFixture
) -> None:
    @local.app.get("/bug")
    def bug() -> None:
        local.web.database.write(text("SELECT a_name_of_somebody"))

    assert local.program().get("/bug").status_code == 500

    (logged,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert logged.startswith(("OperationalError SQLITE_ERROR at ", "ProgrammingError 42703 at "))
    assert re.search(r", called at \S+/pii_bench/web/database\.py:\d+$", logged)
    assert "a_name_of_somebody" not in caplog.text


def test_a_bug_in_a_socket_is_logged_without_its_message(
    local: Server, caplog: pytest.LogCaptureFixture
) -> None:
    @local.app.websocket("/bug")
    async def bug(socket: WebSocket) -> None:
        await socket.accept()
        raise ValueError(await socket.receive_text())

    with local.program().websocket_connect("ws://localhost/bug") as socket:
        socket.send_text("a text of somebody")
        with pytest.raises(WebSocketDisconnect) as caught:
            socket.receive_text()

    assert caught.value.code == 1011
    assert "ValueError at " in caplog.text
    assert "a text of somebody" not in caplog.text


def test_a_body_that_is_too_large_is_refused_with_the_limit(
    local: Server, caplog: pytest.LogCaptureFixture
) -> None:
    browser = local.browser()
    form = {"name": "x" * (MOST_BYTES + 1), "password": "x"}

    refused = browser.post("/login", data=form)
    page = browser.post("/login", data=form, headers={"accept": "text/html"})

    assert refused.status_code == page.status_code == 413
    message = "The request is too large: at most 10,000,000 bytes."
    assert refused.json() == {"error": {"message": message}}
    assert f">{message}</p>" in page.text
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
