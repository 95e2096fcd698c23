"""The Mask page in Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.chromium import complaints, look, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Of the example.
MAIL = "hannah.okafor@mail.example.org"

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("serving"), "--workers", "1") as address:
        yield address


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    """The Mask page."""
    opened = browser.new_page(base_url=url)
    opened.goto("/mask")
    yield opened
    opened.close()


# On a laptop and on a phone; each colour is that of one of them.
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_prompt_is_masked_and_its_answer_restored(
    browser: Any, url: str, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, base_url=url
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    messages = complaints(page)

    page.goto("/mask")
    look(page, f"mask-empty-{width}-{scheme}")
    page.get_by_role("button", name="Try an example").click()
    page.locator("#found").wait_for()
    look(page, f"mask-found-{width}-{scheme}")

    page.get_by_role("button", name="Copy the masked prompt").click()
    page.get_by_text("Copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert MAIL not in copied
    assert "<Email Address>" in copied
    assert copied.endswith("When is my appointment, and what should I ask about my knee?")

    page.get_by_label("The answer with tags").fill("Write to <email address>, [Email Address].")
    page.locator("#restored").get_by_text(f"Write to {MAIL}, {MAIL}.", exact=True).wait_for()
    look(page, f"mask-answer-{width}-{scheme}")
    assert messages == []
    context.close()


def test_marks_and_types_can_be_switched_and_undone(page: Any) -> None:
    page.get_by_role("button", name="Try an example").click()
    mail = page.locator(".mark", has_text=MAIL)
    masked = page.locator('.mark[aria-pressed="true"]', has_text=MAIL)
    kept = page.locator('.mark[aria-pressed="false"]', has_text=MAIL)
    prompt = page.locator("#prompt")

    mail.click()
    kept.wait_for()
    assert MAIL in prompt.inner_text()
    page.get_by_role("button", name="Undo").click()
    masked.wait_for()
    assert MAIL not in prompt.inner_text()

    page.get_by_label("Numbers and addresses").uncheck()
    kept.wait_for()
    page.get_by_label("Numbers and addresses").check()
    masked.wait_for()

    page.reload()
    masked.wait_for()
    page.get_by_role("button", name="Clear everything").click()
    assert page.evaluate("sessionStorage.length") == 0


def test_text_that_the_system_missed_is_masked_by_selecting_it(page: Any) -> None:
    page.get_by_role("button", name="Try an example").click()
    page.locator("#found").wait_for()

    page.evaluate(
        """() => {
          const marks = document.getElementById("marks");
          const node = [...marks.childNodes].find((n) => n.data?.includes("You can call"));
          const start = node.data.indexOf("You can call");
          getSelection().setBaseAndExtent(node, start, node, start + 12);
        }"""
    )
    page.get_by_role("button", name="Mask the selection").click()

    page.locator(".mark", has_text="You can call").wait_for()
    assert "You can call" not in page.locator("#prompt").inner_text()


def test_the_page_works_without_a_mouse(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("I am Ann Lee. Write to a.lee@mail.example.org.")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.type("Who is this?")
    page.keyboard.press("Control+Enter")
    page.locator("#found").wait_for()

    mark = page.locator(".mark", has_text="a.lee@mail")
    for _ in range(40):
        page.keyboard.press("Tab")
        if mark.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.locator('.mark[aria-pressed="false"]', has_text="a.lee@mail").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "a.lee@mail.example.org"


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>document.title = 'taken'</script> Ann Lee, a@b.example.org",
        "<img src=x onerror=\"document.title='taken'\"> Ann Lee",
        "</textarea></pre><svg onload=document.title='taken'> a@b.example.org",
        "{{ 7 * 7 }} ${7*7} a@b.example.org",
    ],
)
def test_script_in_a_text_stays_text(page: Any, hostile: str) -> None:
    page.locator("#text").fill(hostile)
    page.locator("#query").fill(f"What is {hostile}?")
    page.get_by_role("button", name="Mask", exact=True).click()
    page.locator("#found").wait_for()
    page.get_by_label("The answer with tags").fill(f"{hostile} <Email Address> <Full Name 9>")
    page.get_by_text("<Full Name 9>").first.wait_for()

    assert page.locator("#marks").inner_text() == hostile
    assert "taken" not in page.title()
    assert page.locator("main script, main img, main svg").count() == 0


def test_a_text_file_is_read_and_another_kind_refused(page: Any, tmp_path: Path) -> None:
    letter = tmp_path / "<img src=x>.txt"
    letter.write_text("I am Ann Lee.", encoding="utf-8")

    page.locator("#file").set_input_files(letter)
    page.get_by_text("The file's text is in the box.").wait_for()
    assert page.locator("#text").input_value() == "I am Ann Lee."

    other = tmp_path / "letter.odt"
    other.write_bytes(b"x")
    page.locator("#file").set_input_files(other)
    page.get_by_text("this kind of file cannot be read").wait_for()


def test_a_long_text_shows_its_progress(page: Any) -> None:
    line = "My name is Ann Lee and I live in Leeds. Nothing else is to be said about it on day {}."
    page.locator("#text").fill("\n".join(line.format(day) for day in range(80)))
    page.locator("#query").fill("Where do I live?")
    page.get_by_role("button", name="Mask", exact=True).click()

    page.get_by_text(re.compile("Read [1-3] of 3 pieces")).wait_for()
    page.locator("#found").wait_for()
    assert "Ann Lee" not in page.locator("#prompt").inner_text()
