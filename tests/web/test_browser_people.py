"""Login, first page, people and account in Chromium, on a laptop and a phone."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import COMMAND, environment
from tests.web.chromium import chromium, complaints, serious_findings, serving
from tests.web.server import PASSWORD
from tests.web.test_browser_mask import shoot

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


@pytest.mark.parametrize("width", [1280, 390])
def test_an_owner_adds_somebody_who_logs_in(url: str, width: int) -> None:
    with chromium() as browser:
        page = browser.new_page(base_url=url, viewport={"width": width, "height": 800})
        said = complaints(page)
        page.goto("/people")
        assert page.get_by_role("heading", name="Log in").is_visible()
        shoot(page, f"login-{width}")
        _is_sound(page)
        page.get_by_label("Name").fill("olga")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")

        page.get_by_role("heading", name="People").wait_for()
        page.get_by_label("Name").fill(f"ann-{width}")
        page.get_by_label("Role").select_option("annotator")
        page.get_by_role("button", name="Add").click()
        page.get_by_text(f"A password for ann-{width}").wait_for()
        password = page.locator(".secret").inner_text()
        shoot(page, f"people-{width}")
        _is_sound(page)
        page.get_by_role("link", name="Home").click()
        shoot(page, f"home-{width}")
        _is_sound(page)
        page.get_by_role("link", name="olga").click()
        page.get_by_label("Name of a new token").fill("notebook")
        page.get_by_role("button", name="Make a token").click()
        page.get_by_text("Your new token").wait_for()
        shoot(page, f"account-{width}")
        _is_sound(page)
        page.get_by_role("button", name="Log out", exact=True).click()

        page.get_by_label("Name").fill(f"ann-{width}")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name=f"ann-{width}").wait_for()
        assert page.get_by_role("link", name="People", exact=True).count() == 0
        assert said == []


def _is_sound(page: Any) -> None:
    """Nothing is wider than the window, and axe-core finds nothing serious."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    assert serious_findings(page) == []
