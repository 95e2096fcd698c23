"""The Mask page and its files, without a browser."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pii_bench.web.settings import Settings
from tests.web.letters import LETTER, docx
from tests.web.server import Server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.server import Browser


def drop(browser: Browser, ending: str, data: bytes) -> tuple[int, dict[str, object]]:
    answer = browser.post("/mask/file", content=data, headers={"x-file-ending": ending})
    return answer.status_code, answer.json()


def test_the_page_says_that_the_text_stays_here(local: Server) -> None:
    page = " ".join(local.browser().page("/mask").split())

    assert "runs on this machine: your text does not leave it" in page


def test_the_page_names_who_would_see_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PII_BENCH_API_KEY", "x")
    settings = Settings(
        database=str(tmp_path / "web.sqlite"),
        workers=0,
        system="openai/some-model",
        base_url="https://models.example.org/v1",
    )
    with ExitStack() as stack:
        page = " ".join(Server(settings, stack).browser().page("/mask").split())

    assert "sends your <b>unmasked</b> text to openai (https://models.example.org/v1)" in page
    assert "does not leave" not in page


def test_a_file_gives_its_text(local: Server) -> None:
    status, value = drop(local.browser(), ".docx", docx())

    assert status == 200
    assert LETTER in str(value["text"])
    assert value["notes"] == []


def test_a_file_is_refused_with_the_reason(local: Server) -> None:
    browser = local.browser()

    status, value = drop(browser, ".exe", b"MZ")
    assert status == 400
    assert "this kind of file cannot be read" in str(value["error"])
    large = b"x" * (local.web.settings.most_bytes + 1)
    assert browser.post("/mask/file", content=large).status_code == 413


@pytest.mark.parametrize("path", ["/mask/file", "/mask", "/detect", "/unmask", "/mask/batch"])
def test_nothing_is_read_without_the_csrf_token(local: Server, path: str) -> None:
    browser = local.browser()
    browser.headers["x-csrf-token"] = "guessed"

    assert browser.post(path, content=b"{}").status_code == 403


def test_files_need_an_account_where_there_are_some(team: Server) -> None:
    assert team.program().post("/mask/file", content=b"x").status_code == 401


def test_what_is_masked_is_in_no_file_and_no_log(
    team: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    browser = team.browser("ann")
    secret = "hohenlohe@mail.example.org"  # noqa: S105 -- an address
    body = {"text": f"Write to {secret}.", "query": "Is this polite? Yours, Hohenlohe"}

    mapping = browser.post("/mask", json=body).json()["mapping"]
    answer = browser.post("/unmask", json={"text": "<Email Address>", "mapping": mapping})
    drop(browser, ".txt", f"Write to {secret}.".encode())
    browser.post("/mask", json={**body, "query": " "})
    browser.post("/mask", json={"text": [secret]})

    assert answer.json()["text"] == secret
    team.web.database.close()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(written) > 10_000
    assert b"hohenlohe" not in written.lower()
    assert "hohenlohe" not in caplog.text.lower()


def test_no_page_has_scripts_or_styles_of_its_own(team: Server) -> None:
    pages = [team.browser("olga").page(path) for path in ("/", "/mask", "/none")]
    pages.append(team.browser().page("/login"))

    for page in pages:
        assert "<style" not in page
        assert "style=" not in page
        assert "onclick" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')
        assert "//" not in page.replace("http://localhost", "")
