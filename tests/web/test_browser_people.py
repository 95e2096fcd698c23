"""The pages Login, Home, People and Account in Chromium, on a laptop and a phone."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import COMMAND, environment
from tests.web.chromium import complaints, look, serving
from tests.web.server import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("serving")
    subprocess.run(  # noqa: S603 -- our own command
        [*COMMAND, "serve", "--add-owner", "olga"],
        check=True,
        cwd=folder,
        env=environment(),
        input=f"{PASSWORD}\n".encode(),
    )
    with serving(folder, "--workers", "1") as address:
        yield address


def test_a_person_added_by_an_owner_logs_in(browser: Any, url: str, width: int) -> None:
    page = browser.new_page(base_url=url, viewport={"width": width, "height": 800})
    messages = complaints(page)
    page.goto("/people")
    assert page.get_by_role("heading", name="Log in").is_visible()
    look(page, f"login-{width}")
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")

    page.get_by_role("heading", name="People").wait_for()
    page.get_by_label("Name").fill(f"ann-{width}")
    page.get_by_label("Role").select_option("annotator")
    page.get_by_role("button", name="Add").click()
    page.get_by_text(f"A password for ann-{width}").wait_for()
    password = page.locator(".secret").inner_text()
    look(page, f"people-{width}")
    page.get_by_role("link", name="Home").click()
    look(page, f"home-{width}")
    page.get_by_role("link", name="olga").click()
    page.get_by_label("Name of a new token").fill("notebook")
    page.get_by_role("button", name="Create token").click()
    page.get_by_text("Your new token").wait_for()
    look(page, f"account-{width}")
    page.get_by_role("button", name="Log out", exact=True).click()

    page.get_by_label("Name").fill(f"ann-{width}")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=f"ann-{width}").wait_for()
    assert page.get_by_role("link", name="People", exact=True).count() == 0
    assert messages == []
