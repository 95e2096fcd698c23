"""The pages of accounts and tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pii_bench.web.accounts import add_token, check_password, list_accounts, list_tokens
from tests.web.server import PASSWORD
from tests.web.study import SECOND, new_project, open_next, save, state_of

if TYPE_CHECKING:
    from tests.web.server import Browser, Server


def secret_in(page: str) -> str:
    match = re.search(r'<pre class="secret">([^<]+)</pre>', page)
    assert match is not None
    return match[1]


def test_an_owner_adds_an_account_that_can_log_in(team: Server, olga: Browser) -> None:
    page = olga.post("/people", data={"name": "eve", "role": "annotator"}).text

    account = check_password(team.web.database, "eve", secret_in(page))
    assert account is not None
    assert account.role.value == "annotator"


def test_the_first_account_must_be_an_owner(local: Server) -> None:
    browser = local.browser()
    page = browser.page("/people")
    assert re.findall(r"<option>(\w+)", page) == ["owner"]

    assert browser.post("/people", data={"name": "eve", "role": "annotator"}).status_code == 400
    assert browser.post("/people", data={"name": "eve", "role": "owner"}).status_code == 200
    assert browser.get("/people").status_code == 401


def test_a_token_of_the_local_account_ends_with_the_first_account(local: Server) -> None:
    browser = local.browser()
    secret = secret_in(browser.post("/account/tokens", data={"name": "notebook"}).text)
    assert local.program(secret).get("/projects").status_code == 200

    browser.post("/people", data={"name": "olga", "role": "owner"})

    assert local.program(secret).get("/projects").status_code == 401


@pytest.mark.parametrize("name", ["ann", "adam"])
def test_only_owners_manage_accounts(team: Server, name: str) -> None:
    browser = team.browser(name)
    bob = team.account("bob").id

    for path in ("/people", f"/people/{bob}/password", f"/people/{bob}/close"):
        form = {"name": "eve", "role": "owner"}
        assert browser.post(path, data=form).status_code == 403
    assert browser.get("/people").status_code == 403
    assert check_password(team.web.database, "bob", PASSWORD) is not None


def test_a_new_password_replaces_the_old_and_ends_the_tokens(team: Server, olga: Browser) -> None:
    bob = team.account("bob").id
    token = add_token(team.web.database, team.account("bob"), "notebook")
    page = olga.post(f"/people/{bob}/password").text

    assert team.program(token).get("/account").status_code == 401
    assert check_password(team.web.database, "bob", PASSWORD) is None
    assert check_password(team.web.database, "bob", secret_in(page)) is not None


def test_a_closed_account_has_no_session_token_or_password(team: Server, olga: Browser) -> None:
    bob = team.account("bob")
    browser, token = team.browser("bob"), add_token(team.web.database, bob, "x")

    olga.post(f"/people/{bob.id}/close")

    assert browser.get("/").status_code == 401
    assert team.program(token).get("/").status_code == 401
    assert check_password(team.web.database, "bob", PASSWORD) is None


def test_a_closed_account_keeps_finished_tasks_and_frees_open_ones(
    team: Server, ann: Browser, bob: Browser, olga: Browser
) -> None:
    project = new_project(team, "ann", "bob", annotators=1)
    save(ann, open_next(ann, project), {"marks": []}, done=True)
    sample = state_of(ann, open_next(ann, project))["text"]

    olga.post(f"/people/{team.account('ann').id}/close")

    assert state_of(bob, open_next(bob, project))["text"] == sample == SECOND


def test_the_last_owner_cannot_be_closed(team: Server, olga: Browser) -> None:
    answer = olga.post(f"/people/{team.account('olga').id}/close")

    assert answer.status_code == 400
    assert "last owner" in answer.text
    assert "olga" in [each.name for each in list_accounts(team.web.database)]


@pytest.mark.parametrize("what", ["password", "close"])
def test_an_unknown_account_is_not_found(olga: Browser, what: str) -> None:
    assert olga.post(f"/people/999/{what}").status_code == 404


def test_a_name_with_markup_is_refused_and_shown_as_text(olga: Browser) -> None:
    form = {"name": "<script>alert(1)</script>", "role": "annotator"}

    answer = olga.post("/people", data=form)

    assert answer.status_code == 400
    assert "&lt;script&gt;" in answer.text
    assert "<script>alert" not in answer.text


def test_a_token_is_shown_once_and_deleted_only_by_its_owner(
    team: Server, ann: Browser, bob: Browser
) -> None:
    secret = secret_in(ann.post("/account/tokens", data={"name": "<b>nb</b>"}).text)
    (token,) = list_tokens(team.web.database, team.account("ann"))

    assert secret not in ann.page("/account")
    assert "&lt;b&gt;nb&lt;/b&gt;" in ann.page("/account")
    assert bob.post(f"/account/tokens/{token.id}/delete").status_code == 404
    assert team.program(secret).get("/account").status_code == 200
    ann.post(f"/account/tokens/{token.id}/delete")
    assert team.program(secret).get("/account").status_code == 401


def test_a_token_with_a_number_beyond_those_of_the_database_is_refused(ann: Browser) -> None:
    assert ann.post("/account/tokens/99999999999999999999/delete").status_code == 422


def test_a_password_change_requires_the_old_password(team: Server) -> None:
    browser, other = team.browser("ann"), team.browser("ann")
    program = team.program(add_token(team.web.database, team.account("ann"), "notebook"))

    wrong = browser.post("/account/password", data={"old": "guessed it", "new": "a new password"})
    assert wrong.status_code == 400
    short = browser.post("/account/password", data={"old": PASSWORD, "new": "short"})
    assert "has 5 characters" in short.text
    browser.post("/account/password", data={"old": PASSWORD, "new": "a new password"})

    assert other.get("/").status_code == 401
    assert program.get("/account").status_code == 401
    assert check_password(team.web.database, "ann", "a new password") is not None


def test_a_token_gives_no_access_to_tokens_and_accounts(team: Server) -> None:
    program = team.program(add_token(team.web.database, team.account("olga"), "x"))

    assert program.post("/account/tokens", data={"name": "y"}).status_code == 403
    assert program.post("/people", data={"name": "eve", "role": "owner"}).status_code == 403
