"""A study in Chromium: an owner, two annotators (one uses only the keyboard), an adjudicator."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.chromium import complaints, look, serving
from tests.web.server import PASSWORD
from tests.web.study import RECORDS, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture
def url(people: str, tmp_path: Path) -> Iterator[str]:
    shutil.copy(people, tmp_path / "study.sqlite")
    with serving(tmp_path, "--database", "study.sqlite", "--workers", "1") as address:
        yield address


def log_in(page: Any, name: str) -> None:
    page.goto("/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()


class Visitor:
    """A user with their own browser context, and the errors on its console."""

    def __init__(self, browser: Any, url: str, width: int, name: str = "") -> None:
        touch = width < 600
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if name == "bob" else "light",
            base_url=url,
            has_touch=touch,
        )
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.complaints = complaints(self.page)
        self._width = width
        if name:
            log_in(self.page, name)

    def look(self, name: str) -> None:
        look(self.page, f"{name}-{self._width}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, which: str) -> None:
        """Press Tab until an element for which a JavaScript condition holds has the focus."""
        for _ in range(40):
            self.press("Tab")
            if self.page.evaluate(f"(node => {which})(document.activeElement)"):
                return
        pytest.fail(f"no key leads to {which}")

    def saved(self) -> None:
        self.page.get_by_text("All saved").wait_for()


def token(page: Any, number: int) -> Any:
    return page.locator(f'[data-token="{number}"]')


def test_a_study_works_from_the_project_to_the_export(
    browser: Any, url: str, width: int, tmp_path: Path
) -> None:
    olga = Visitor(browser, url, width, "olga")
    page = olga.page
    page.goto("/projects")
    olga.look("projects-empty")
    page.get_by_role("link", name="New project").click()
    olga.look("project-new")
    page.get_by_label("Name", exact=True).fill("Pilot")
    body = "".join(json.dumps(each) + "\n" for each in RECORDS[:1]).encode()
    file = {"name": "texts.jsonl", "mimeType": "application/jsonl", "buffer": body}
    page.get_by_label("or a file of your own").set_input_files(file)
    page.get_by_label("Annotators per sample").fill("2")
    page.get_by_label("Adjudicate below kappa").fill("0.9")
    page.get_by_role("button", name="Create project").click()
    page.get_by_role("heading", name="People").wait_for()
    for name in ("adam", "ann", "bob"):
        shown = page.locator("#account option").all_inner_texts()
        label = next(each for each in shown if each.startswith(name))
        page.get_by_label("Add").select_option(label=label)
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("cell", name=name, exact=True).wait_for()
    olga.look("project-begun")
    project = page.url.split("#")[0]

    mark_by_mouse(Visitor(browser, url, width, "ann"))
    mark_by_keyboard(Visitor(browser, url, width, "bob"))
    adjudicate(Visitor(browser, url, width, "adam"))
    choose(Visitor(browser, url, width, "ann"))
    choose_by_keyboard(Visitor(browser, url, width, "bob"))

    page.goto(project)
    olga.look("project-done")
    with page.expect_download() as download:
        page.get_by_role("link", name="Dataset with all votes").click()
    (record,) = lines(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [(s["id"], [e["text"] for e in s["entities"]]) for s in record["subjects"]] == [
        ("A", ["Ann"]),
        ("B", ["Bo", "32"]),
    ]
    assert record["related"] == [{"subject": "B", "text": "32"}]
    page.get_by_role("button", name="Put them on the leaderboard").click()
    page.get_by_text("Written.").wait_for()
    assert list((tmp_path / "results" / "human").glob("*.jsonl"))
    assert olga.complaints == []

    guest = Visitor(browser, url, width)
    guest.page.goto(project)
    guest.page.get_by_role("heading", name="Log in").wait_for()


def mark_by_mouse(ann: Visitor) -> None:
    """Ann marks everything, undoes a step, and continues after a reload."""
    page = ann.page
    page.goto("/projects")
    ann.look("projects")
    page.get_by_role("link", name="Start").click()
    ann.look("work-begin")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("All saved").wait_for()
    ann.look("mark-empty")

    token(page, 0).click()
    page.get_by_role("button", name="PER name").click()
    page.get_by_text("“Ann”: PER, Full Name, A").wait_for()
    # Bo occurs twice; both are marked at once.
    token(page, 2).click()
    page.get_by_role("button", name="One more person").click()
    page.get_by_role("button", name="PER name").click()
    page.get_by_text("2 places").wait_for()
    token(page, 4).click()
    page.get_by_role("button", name="LOC place").click()
    page.get_by_label("Category").select_option("City/Region")
    token(page, 8).click()
    page.get_by_role("button", name="DEM detail").click()
    ann.saved()
    page.get_by_role("button", name="Done, next").click()
    page.get_by_text("1 marked without a category yet.").wait_for()
    (refused,) = ann.complaints
    assert "400" in refused
    ann.complaints.clear()
    page.get_by_label("Category").select_option("Age")
    ann.saved()
    ann.look("mark")

    page.get_by_role("button", name="Remove mark").click()
    ann.saved()
    page.reload()
    ann.saved()
    assert page.locator("#marks li").count() == 3
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone").wait_for()
    assert page.locator("#marks li").count() == 4
    page.get_by_role("button", name="Done, next").click()
    page.get_by_text("done", exact=True).wait_for()
    assert ann.complaints == []


def open_task_by_keyboard(visitor: Visitor, button: str) -> None:
    """Open the next task from the list of projects, with only the keyboard."""
    visitor.page.goto("/projects")
    visitor.tab_to(f"node.textContent.trim() === '{button}'")
    visitor.press("Enter")
    # The button gets the focus when the page loads.
    visitor.page.wait_for_function("document.activeElement?.matches('button.primary')")
    visitor.press("Enter")
    visitor.saved()


def mark_by_keyboard(bob: Visitor) -> None:
    """Bob marks Ann, and Bo as another person, without a mouse."""
    page = bob.page
    open_task_by_keyboard(bob, "Start")
    bob.tab_to("node.id === 'text'")
    bob.press("ArrowRight", "1")
    page.get_by_text("“Ann”: PER, Full Name, A").wait_for()
    bob.press("ArrowRight", "ArrowRight", "p")
    page.get_by_text("“Bo”: not marked").wait_for()
    bob.press("1")
    page.get_by_text("“Bo”: PER, Full Name, B").wait_for()
    # Shift extends the selection; Ctrl+Z undoes the mark of "Bonn.".
    bob.press("ArrowRight", "ArrowRight", "Shift+ArrowRight", "3")
    page.get_by_text("“Bonn.”: LOC").wait_for()
    assert page.evaluate("document.activeElement.id") == "category"
    page.keyboard.type("City")
    bob.press("Enter")
    page.get_by_text("“Bonn.”: LOC, City/Region").wait_for()
    bob.press("Control+z", "Control+z")
    page.get_by_text("Undone").wait_for()
    page.wait_for_function("document.querySelectorAll('#marks li').length === 2")
    bob.press("?")
    page.locator("#keys[open]").wait_for()
    bob.look("mark-keys")
    bob.press("Control+Enter")
    page.get_by_text("done", exact=True).wait_for()
    assert bob.complaints == []


def adjudicate(adam: Visitor) -> None:
    """Adam sees the two versions and decides."""
    page = adam.page
    page.goto("/projects")
    page.get_by_role("link", name="Pilot").click()
    page.get_by_role("link", name="Adjudicate").click()
    adam.look("disputes")
    page.get_by_role("button", name="Decide one").click()
    page.get_by_role("heading", name="Annotator 2").wait_for()
    adam.look("adjudicate")
    page.get_by_role("button", name="Take Annotator 1").click()
    adam.saved()
    token(page, 4).click()
    page.get_by_role("button", name="Remove mark").click()
    adam.saved()
    page.get_by_role("button", name="Done, next").click()
    page.get_by_text("Nothing to decide").wait_for()
    adam.look("disputes-empty")
    assert adam.complaints == []


def choose(ann: Visitor) -> None:
    """Stage 2: ann chooses the age."""
    page = ann.page
    page.goto("/projects")
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("How old is he").wait_for()
    ann.saved()
    page.get_by_label("32 DEM").check()
    page.get_by_label("Each chosen piece is necessary").check()
    page.get_by_label("Together they are enough").check()
    ann.saved()
    ann.look("choose")
    page.get_by_role("button", name="Done, next").click()
    page.get_by_role("heading", name="Pilot").wait_for()
    ann.look("work-done")
    assert ann.complaints == []


def choose_by_keyboard(bob: Visitor) -> None:
    """Stage 2 with only the keyboard: choose, undo, correct a person, write a remark."""
    page = bob.page
    open_task_by_keyboard(bob, "Continue")
    # The first piece gets the focus when the task loads.
    page.wait_for_function("document.activeElement?.id === 'item-0'")
    bob.press("?")
    page.locator("#keys[open]").wait_for()
    bob.press("g")
    page.locator("#guidelines[open]").wait_for()
    bob.press("g", "?")
    bob.press("ArrowDown", "ArrowDown", "ArrowUp", "Space")
    page.locator("#item-1:checked").wait_for()
    bob.press("Control+z")
    page.get_by_text("Undone").wait_for()
    page.locator("#item-1:not(:checked)").wait_for()
    # Undo keeps the focus.
    bob.press("ArrowDown", "Space")
    page.locator("#item-2:checked").wait_for()
    bob.press("Tab", "ArrowUp")
    assert page.get_by_label("Person of 32").input_value() == "A"
    bob.saved()
    bob.press("ArrowDown")
    assert page.get_by_label("Person of 32").input_value() == "B"
    for name in ("necessary", "sufficient"):
        bob.tab_to(f"node.id === '{name}'")
        bob.press("Space")
    bob.tab_to("node.id === 'remark'")
    page.keyboard.type("g? ")
    bob.saved()
    assert page.get_by_label("Remark").input_value() == "g? "
    assert page.locator("details[open]").count() == 0
    bob.look("choose-keyboard")
    bob.press("Control+Enter")
    page.get_by_role("heading", name="Pilot").wait_for()
    assert bob.complaints == []


def start_alone(browser: Any, url: str) -> Visitor:
    """Open the first sample of a project of the demo dataset as its only annotator, olga."""
    olga = Visitor(browser, url, 1280, "olga")
    page = olga.page
    page.goto("/projects/new")
    page.get_by_label("Name", exact=True).fill("Alone")
    page.get_by_label("Annotators per sample").fill("1")
    page.get_by_role("button", name="Create project").click()
    page.get_by_role("link", name="Annotate", exact=True).last.click()
    page.get_by_role("button", name="Start").click()
    olga.saved()
    return olga


def test_keys_that_are_held_finish_one_sample(browser: Any, url: str) -> None:
    olga = start_alone(browser, url)
    page, first = olga.page, olga.page.url

    page.keyboard.down("Control")
    page.keyboard.down("Enter")
    page.wait_for_url(lambda now: "/tasks/" in now and now != first)
    olga.saved()
    second = page.url
    # A key that is down already repeats.
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")

    page.wait_for_timeout(500)
    assert page.url == second
    assert not page.evaluate(f"fetch('{second}/state').then(a => a.json())")["done"]


def test_a_failed_save_is_repeated_and_a_conflict_with_another_window_is_shown(
    browser: Any, url: str
) -> None:
    olga = start_alone(browser, url)
    page = olga.page

    olga.context.set_offline(True)
    token(page, 0).click()
    page.get_by_role("button", name="PER name").click()
    page.get_by_text("Not saved yet").wait_for()
    olga.context.set_offline(False)
    olga.saved()

    other = olga.context.new_page()
    other.goto(page.url)
    other.get_by_text("All saved").wait_for()
    assert other.locator("#marks li").count() == 1
    token(other, 1).click()
    other.get_by_role("button", name="PER name").click()
    other.get_by_text("All saved").wait_for()
    token(page, 3).click()
    page.get_by_role("button", name="PER name").click()
    page.get_by_text("changed in another window").wait_for()
    page.get_by_role("button", name="Keep mine").click()
    olga.saved()
    other.reload()
    other.get_by_text("All saved").wait_for()
    assert other.locator('[data-token="3"]').evaluate("n => n.closest('.m') !== null")


def test_changes_are_kept_over_a_new_login(browser: Any, url: str) -> None:
    olga = start_alone(browser, url)
    page = olga.page
    olga.context.clear_cookies()
    token(page, 0).click()
    page.get_by_role("button", name="PER name").click()
    page.get_by_text("Log in again and load this page again: your changes are kept.").wait_for()

    log_in(olga.context.new_page(), "olga")
    page.reload()

    olga.saved()
    assert page.locator("#marks li").count() == 1


def test_a_blind_review_works_from_upload_to_results(browser: Any, url: str, width: int) -> None:
    olga = Visitor(browser, url, width, "olga")
    page = olga.page
    page.goto("/reviews")
    olga.look("reviews-empty")
    page.get_by_role("link", name="New review").click()
    olga.look("review-new")
    records = [
        {
            "id": f"s{n}",
            "system": system,
            "query": "How old is he? <script>alert(1)</script>",
            "before": "Ann met Bo in Bonn. Bo is 32. " * 5,
            "after": "Somebody met Bo. He is 32. " * 5,
        }
        for n in range(2)
        for system in ("one", "two")
    ]
    body = "".join(json.dumps(each) + "\n" for each in records).encode()
    page.get_by_label("Name", exact=True).fill("Blind")
    page.get_by_label("Privacy and meaning, 1 to 5").check()
    file = {"name": "texts.jsonl", "mimeType": "application/jsonl", "buffer": body}
    page.get_by_label("and a file of texts").set_input_files(file)
    page.get_by_role("button", name="Create review").click()
    page.get_by_role("link", name="Start").click()
    for number in range(1, 5):
        page.get_by_role("heading", name=f"Text {number} of 4").wait_for()
        page.get_by_role("group", name="Privacy").get_by_label("4").check()
        page.get_by_role("group", name="Meaning").get_by_label("5").check()
        page.get_by_label("Comment").fill("<script>alert(1)</script>")
        page.get_by_text("All saved").wait_for()
        if number == 1:
            olga.look("review-blind")
        page.get_by_role("button", name="Done, next").click()
    page.get_by_text("All done").wait_for()
    olga.look("review-results")
    assert olga.complaints == []
