"""Sessions, CSRF tokens, roles and rate limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fastapi import Depends

from pii_bench.errors import PiiBenchError
from pii_bench.web import accounts, security
from pii_bench.web.accounts import (
    COOKIE,
    Role,
    add_account,
    add_token,
    begin_session,
    hash_password,
)
from pii_bench.web.security import require
from tests.web.server import PASSWORD

if TYPE_CHECKING:
    import httpx2

    from tests.web.server import Browser, Server


def changed() -> dict[str, str]:
    """A route that changes something."""
    return {}


def log_in(browser: Browser, changes: dict[str, str] | None = None) -> httpx2.Response:
    """Send the form of the login for ann, with changes."""
    browser.page("/login")
    form = {"name": "ann", "password": PASSWORD, "csrf_token": browser.csrf}
    return browser.post("/login", data=form | (changes or {}), follow_redirects=False)


def test_scripts_cannot_read_the_session_cookie(team: Server) -> None:
    answer = log_in(team.browser())

    (cookie,) = [c for c in answer.headers.get_list("set-cookie") if c.startswith(COOKIE)]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))


def test_over_https_the_cookie_is_secure(team: Server) -> None:
    browser = team.browser()
    browser.base_url = "https://localhost"
    browser.headers["origin"] = "https://localhost"

    assert "; Secure" in log_in(browser).headers["set-cookie"]


def test_a_wrong_password_and_a_wrong_name_give_the_same_page(team: Server) -> None:
    pages = []
    for name, password in (("ann", "wrong password"), ("nobody", PASSWORD)):
        answer = log_in(team.browser(), {"name": name, "password": password})
        assert answer.status_code == 401
        pages.append(answer.text.split("<main")[1].split("csrf_token")[0])

    assert pages[0] == pages[1]
    assert "No account has this name and password" in pages[0]


def test_a_login_without_the_csrf_token_is_refused(team: Server) -> None:
    assert log_in(team.browser(), {"csrf_token": "guessed"}).status_code == 403


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("/none", "/none"),
        ("//evil.example.org", "/"),
        ("https://evil.example.org", "/"),
        ("/\\evil.example.org", "/"),
        ("/\nx", "/"),
    ],
)
def test_the_login_redirects_only_within_the_site(team: Server, target: str, where: str) -> None:
    answer = log_in(team.browser(), {"next": target})

    assert (answer.status_code, answer.headers["location"]) == (303, where)


def test_a_logout_ends_the_session(team: Server) -> None:
    browser = team.browser("ann")
    cookie = browser.cookies[COOKIE]

    browser.post("/logout")
    browser.cookies.set(COOKIE, cookie)

    assert browser.get("/").status_code == 401


def test_a_session_expires(team: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = team.browser()
    monkeypatch.setattr(accounts, "SESSION_SECONDS", 0)
    secret = begin_session(team.web.database, team.account("ann"))
    browser.cookies.set(COOKIE, secret)

    assert browser.get("/").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-csrf-token": ""}, 403),
        ({"x-csrf-token": "guessed"}, 403),
        ({"origin": "https://evil.example.org"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "null"}, 403),
        ({}, 200),
    ],
)
@pytest.mark.parametrize("kind", ["local", "team"])
def test_a_change_requires_the_csrf_token_and_the_same_origin(
    request: pytest.FixtureRequest, kind: str, headers: dict[str, str], status: int
) -> None:
    server: Server = request.getfixturevalue(kind)
    server.app.post("/change")(changed)
    browser = server.browser("ann" if kind == "team" else None)

    assert browser.post("/change", headers=headers).status_code == status


def test_a_form_may_send_the_csrf_token_in_a_field(team: Server) -> None:
    team.app.post("/change")(changed)
    browser = team.browser("ann")
    del browser.headers["x-csrf-token"]

    assert browser.post("/change", data={"csrf_token": browser.csrf}).status_code == 200
    assert browser.post("/change", data={"csrf_token": "guessed"}).status_code == 403
    assert browser.post("/change", json={"csrf_token": browser.csrf}).status_code == 403


def test_the_csrf_token_of_another_user_is_refused(team: Server) -> None:
    team.app.post("/change")(changed)
    ann, bob = team.browser("ann"), team.browser("bob")

    assert ann.post("/change", headers={"x-csrf-token": bob.csrf}).status_code == 403


def test_a_program_needs_no_csrf_token(team: Server, local: Server) -> None:
    for server in (team, local):
        server.app.post("/change")(changed)
    token = add_token(team.web.database, team.account("ann"), "notebook")

    assert team.program(token).post("/change").status_code == 200
    assert local.program().post("/change").status_code == 200


@pytest.mark.parametrize(
    ("needed", "let_in"),
    [
        (Role.ANNOTATOR, ["ann", "adam", "olga"]),
        (Role.ADJUDICATOR, ["adam", "olga"]),
        (Role.OWNER, ["olga"]),
    ],
)
def test_a_role_includes_the_lower_roles(team: Server, needed: Role, let_in: list[str]) -> None:
    team.app.get("/area", dependencies=[Depends(require(needed))])(changed)
    names = ("ann", "adam", "olga")
    assert [n for n in names if team.browser(n).get("/area").status_code == 200] == let_in
    assert team.browser().get("/area").status_code == 401


def test_login_attempts_are_limited(team: Server) -> None:
    browser = team.browser()
    statuses = [log_in(browser, {"csrf_token": "x"}).status_code for _ in range(11)]

    assert statuses == [403] * 10 + [429]


def test_requests_are_limited_per_account(
    ann: Browser, bob: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "_REQUESTS_PER_MINUTE", 10)

    statuses = [ann.get("/").status_code for _ in range(11)]

    assert statuses == [200] * 10 + [429]
    assert bob.get("/").status_code == 200


def test_an_invalid_or_taken_account_name_is_refused(team: Server) -> None:
    for name in ("", "a b", "<b>", "x" * 61, "local", "a\nb"):
        with pytest.raises(PiiBenchError, match="cannot be taken"):
            add_account(team.web.database, name, Role.ANNOTATOR, PASSWORD)
    with pytest.raises(PiiBenchError, match="already"):
        add_account(team.web.database, "ann", Role.OWNER, PASSWORD)


@pytest.mark.parametrize("length", [0, 9, 201])
def test_a_password_of_the_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(PiiBenchError, match=f"has {length} characters"):
        hash_password("x" * length)
