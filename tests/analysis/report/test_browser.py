"""The page in a real browser."""

from __future__ import annotations

import json
import socketserver
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.analysis.report.data import Texts, collect_report
from pii_bench.analysis.report.page import render_page
from pii_bench.files import write_whole
from tests.analysis.report.folders import demo_results, own_dataset
from tests.analysis.report.test_page import HOSTILE
from tests.ranking.stored_runs import FAILED, store_run, tiny_dataset
from tests.web.chromium import chromium, complaints

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.runs.records import Failure

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

DEMO: Final = "set=demo&a=fake/one:naive"
BOTH: Final = f"{DEMO}&b=fake/two:naive"
CURRENT: Final = "[aria-current]"
ENTER: Final = "Enter"


class Listener(socketserver.ThreadingTCPServer):
    """Notes the first line of whatever connects, and answers nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Note)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Note(socketserver.StreamRequestHandler):
    server: Listener

    def handle(self) -> None:
        self.server.heard.append(self.rfile.readline())


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Browser:
    """A tab, as a user and a developer see it.

    Attributes:
        complaints: what the console was told: errors, and what the policy forbade.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints = complaints(page)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file anew, with a fragment of its address."""
        self.page.goto("about:blank")
        self.page.goto(f"{page.as_uri()}#{fragment}")

    def run(self, script: str, *arguments: object) -> Any:
        """What the body of a function returns."""
        return self.page.evaluate(f"arguments => {{ {script} }}", list(arguments))

    def click(self, selector: str, number: int = 0) -> None:
        """Click one of the elements of a selector."""
        self.page.locator(selector).nth(number).click()
        self.settle()

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        self.page.locator(selector).press_sequentially(text)
        self.settle()

    def press(self, selector: str, key: str) -> None:
        """Press a key on an element."""
        self.page.locator(selector).press(key)
        self.settle()

    def choose(self, name: str, label: str) -> None:
        """Choose an option of a field by what it says."""
        self.page.locator(f"[name={name}]").select_option(label=label)
        self.settle()

    def texts(self, selector: str) -> list[str]:
        """What the visible elements of a selector say."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(node => node.checkVisibility()).map(node => node.textContent.trim())",
            selector,
        )
        return found

    def settle(self) -> None:
        """Let the page react: to a new address it does so a moment later."""
        self.run("return new Promise(done => setTimeout(() => requestAnimationFrame(done), 20))")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        context = launched.new_context(
            viewport={"width": 1400, "height": 1000}, reduced_motion="reduce"
        )
        yield Browser(context.new_page())


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Dataset:
    """30 samples that hold what would like to run, or to load something."""
    loads = [f'<{tag} src="http://{listener.address}/x">' for tag in ("img", "iframe", "script")]
    loads.append(f"@import url(http://{listener.address}/x)")
    texts = [*HOSTILE, *loads]
    texts += [f"text number {number}" for number in range(30 - len(texts))]
    return own_dataset(tmp_path_factory.mktemp("mine") / "mine.jsonl", texts)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, mine: Dataset) -> Path:
    """Two runs on demo and one on a user's file."""
    folder = tmp_path_factory.mktemp("results")
    demo_results(folder)
    answers: dict[str, str | list[str] | Failure] = {
        sample.id: f"### Answer: {json.dumps([sample.description])}" for sample in mine.samples
    }
    answers |= {"s29": FAILED, "s30": "I cannot help with that."}
    store_run(folder / "runs", mine, "naive", answers)
    path = folder / "report.html"
    write_whole(path, render_page(collect_report(folder, texts=Texts.ALL)))
    return path


@pytest.fixture(autouse=True)
def quiet(browser: Browser, listener: Listener) -> Iterator[None]:
    """Whatever a test does: no error, nothing that the policy had to forbid, no request."""
    yield
    assert browser.complaints == []
    assert browser.run("return performance.getEntriesByType('resource').map(e => e.name)") in (
        [],
        ["data:,"],
    )
    assert listener.heard == []


def table_of(browser: Browser, dataset: str, task: str) -> str:
    """The table of a dataset and task, which is folded first."""
    section = f"section[data-dataset={dataset}][data-task={task}]"
    browser.run("document.querySelector(arguments[0]).open = true", f"{section} details")
    number = browser.run("return document.querySelector(arguments[0]).id", f"{section} table")
    return f"#{number}"


def place_of(browser: Browser, table: str, heading: str) -> int:
    """The column of a heading, from 1."""
    return browser.texts(f"{table} th").index(heading) + 1


def column(browser: Browser, table: str, heading: str) -> list[str]:
    return browser.texts(f"{table} td:nth-child({place_of(browser, table, heading)})")


def test_a_click_on_a_header_sorts_and_another_turns_around(browser: Browser, page: Path) -> None:
    browser.open(page)
    table = table_of(browser, "single", "detection")
    given = column(browser, table, "Model")
    header = f"{table} th:nth-child({place_of(browser, table, 'Ent-F1')})"
    sorted_by = "return document.querySelector(arguments[0]).ariaSort"

    browser.click(f"{header} button")
    falling = column(browser, table, "Ent-F1")
    assert browser.run(sorted_by, header) == "descending"
    browser.click(f"{header} button")
    rising = column(browser, table, "Ent-F1")
    assert browser.run(sorted_by, header) == "ascending"
    browser.click(f"{header} button")
    assert browser.run(sorted_by, header) is None

    known = sorted(filter(None, falling), key=float)
    unknown = [""] * (len(falling) - len(known))
    assert len(known) > 5
    assert unknown
    assert falling == known[::-1] + unknown
    assert rising == known + unknown
    assert column(browser, table, "Model") == given


def test_the_keyboard_sorts_too(browser: Browser, page: Path) -> None:
    browser.open(page)
    table = table_of(browser, "single", "detection")

    browser.press(f"{table} th.model button", ENTER)

    models = column(browser, table, "Model")
    assert models == sorted(models)
    assert len(set(models)) > 5


def test_a_link_leads_to_a_sorted_table(browser: Browser, page: Path) -> None:
    browser.open(page)
    table = table_of(browser, "single", "masking")

    place = place_of(browser, table, "F1") - 1
    browser.open(page, f"dataset=single&task=masking&sort={table[1:]}.{place}.ascending")

    figures = [float(each) for each in column(browser, table, "F1")]
    assert figures == sorted(figures)
    assert len(figures) > 5
    assert browser.texts(".board h3") == ["single masking"]


def test_rows_are_filtered_by_dataset_task_source_and_text(browser: Browser, page: Path) -> None:
    browser.open(page)

    browser.choose("dataset", "demo")
    browser.choose("task", "masking")
    assert browser.texts(".board h3") == ["demo masking"]
    assert browser.texts(".board tbody td.model") == ["fake/one", "fake/two"]
    assert browser.texts("#board-count")[0].startswith("2 of ")
    browser.choose("dataset", "all")
    browser.choose("source", "published")
    assert "published" in browser.texts(".board .badge")
    assert "run" not in browser.texts(".board .badge")
    browser.choose("source", "all")
    browser.type("[name=text]", "two naive")
    assert browser.texts(".board tbody td.model") == ["fake/two"]


def test_a_row_leads_to_its_samples(browser: Browser, page: Path) -> None:
    browser.open(page, "dataset=demo&task=query-related")

    browser.click("[data-dataset=demo][data-task=query-related] td.model a", 1)

    assert browser.texts(".who") == ["A fake/two:naive unmasked text goes to: this machine"]
    assert browser.run("return document.getElementsByName('by')[0].value") == "query-related"


def test_gold_and_answers_are_marked(browser: Browser, page: Path) -> None:
    browser.open(page, DEMO)

    marked = "document.querySelectorAll('.side .text')[0].querySelectorAll('.mark')"
    right = browser.run(f"return [...{marked}].every(m => m.dataset.gold === m.dataset.pred)")
    framed = browser.run(f"return [...{marked}].map(m => m.matches('.chosen.needed'))")
    assert right
    assert True in framed
    assert False in framed
    assert "<Full Name>" in browser.texts(".masked .tag")
    assert browser.texts(".masked .leak") == []
    assert browser.texts(".masked .kept") != []
    masking = browser.texts(".scores tbody tr:last-child td")
    assert masking[:5] == ["ok", *["1.000"] * 4]
    assert browser.texts(".faults") == ["No errors"]


def test_three_samples_of_the_best_system_lead_to_the_whole(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.texts(".examples h4") == ["Masked as it should be"]
    shown = browser.texts(".examples .masked")

    browser.click(".to-sample")

    assert browser.texts("#sample .masked") == shown
    assert browser.texts("#sample h3") == browser.texts(".to-sample")


def test_two_runs_stand_side_by_side_with_their_differences(browser: Browser, page: Path) -> None:
    browser.open(page, DEMO)
    browser.choose("b", "fake/two:naive")

    assert [name.split()[:2] for name in browser.texts(".who")] == [
        ["A", "fake/one:naive"],
        ["B", "fake/two:naive"],
    ]
    differing = ".side:nth-child({}) .text:not(.masked) .differs"
    assert browser.texts(differing.format(1)) == browser.texts(differing.format(2)) != []
    assert browser.texts(".side:nth-child(2) .masked .over.differs") != []
    assert browser.texts(".side:nth-child(2) .chips .lacking.differs") != []
    boxes = browser.run(
        "return [...document.querySelectorAll('.side')].map(s => s.getBoundingClientRect().top)"
    )
    assert boxes[0] == boxes[1]


def test_only_samples_that_differ_are_left(browser: Browser, page: Path) -> None:
    browser.open(page, f"{BOTH}&by=detection")
    browser.click("[name=diff]")
    assert browser.texts("#samples-count") == ["0 of 12 samples"]
    assert browser.texts("#sample p") == ["No sample is left by these filters."]

    browser.choose("by", "query-related")
    assert browser.texts("#samples-count") == ["12 of 12 samples"]


def test_samples_are_filtered_by_class_of_error(browser: Browser, page: Path) -> None:
    browser.open(page, f"{DEMO}&by=query-related")
    classes = browser.texts(".classes b")
    assert len(classes) == 8

    browser.click(".classes button", classes.index("not-chosen"))
    assert browser.texts("#samples-count") == ["0 of 12 samples"]
    browser.choose("b", "fake/two:naive")
    assert browser.texts("#samples-count") == ["12 of 12 samples"]
    assert browser.texts(".classes [aria-pressed=true] b") == ["not-chosen"]


def test_samples_are_filtered_by_status_and_text(
    browser: Browser, page: Path, mine: Dataset
) -> None:
    browser.open(page, f"set={mine.name}")

    browser.choose("status", "infra_error")
    assert browser.texts(".list button") == ["s29"]
    browser.choose("status", "all")
    browser.type("[name=find]", "ONERROR")
    assert browser.texts(".list button") == ["s3"]


def test_pages_and_steps_lead_through_all_samples(
    browser: Browser, page: Path, mine: Dataset
) -> None:
    browser.open(page, f"set={mine.name}")
    assert browser.texts(".list button") == [f"s{number}" for number in range(1, 26)]

    browser.click("#page-on")
    assert browser.texts(".list button") == ["s26", "s27", "s28", "s29", "s30"]
    assert browser.texts(CURRENT) == ["s26"]
    browser.click("#sample-back")
    assert browser.texts(CURRENT) == ["s25"]
    browser.press("#sample-on", ENTER)
    browser.press(":focus", ENTER)
    assert browser.texts(CURRENT) == ["s27"]
    browser.page.go_back()
    browser.settle()
    assert browser.texts(CURRENT) == ["s26"]


def test_an_address_that_names_what_is_not_there_shows_what_is(
    browser: Browser, page: Path, mine: Dataset
) -> None:
    browser.open(page, f"set={mine.name}&a=nobody&by=nothing&page=99&sample=s99&sort=x.y.z")
    assert browser.texts(CURRENT) == ["s26"]

    browser.open(page, f"{DEMO}&page=none&status=refused&b=fake/one:naive")
    assert browser.texts("#samples-count") == ["0 of 12 samples"]
    chosen = "return document.getElementsByName('status')[0].value"
    assert browser.run(chosen) == "refused"


def test_the_lowest_scores_or_the_largest_differences_come_first(
    browser: Browser, page: Path, mine: Dataset
) -> None:
    browser.open(page, f"set={mine.name}")

    browser.choose("order", "lowest score of A first")

    assert browser.texts(".list button")[0] == "s29"


@pytest.mark.parametrize("number", range(1, 12))
def test_hostile_texts_are_shown_as_they_are(
    number: int, browser: Browser, page: Path, mine: Dataset
) -> None:
    browser.open(page, f"set={mine.name}&sample=s{number}")

    # What is half of a pair cannot pass through the driver's JSON as it is.
    codes = (
        "return [...document.querySelector('.side .text').textContent].map(c => c.codePointAt())"
    )
    assert browser.run(codes) == [ord(each) for each in mine.samples[number - 1].description]
    assert browser.run("return document.querySelectorAll('script, iframe').length") == 2
    assert browser.run("return document.querySelectorAll('#samples img').length") == 0


def test_the_listener_hears_a_page_that_does_load_something(
    browser: Browser, tmp_path: Path, listener: Listener
) -> None:
    other = tmp_path / "other.html"
    other.write_text(f'<img src="http://{listener.address}/x">', encoding="utf-8")

    browser.open(other)

    assert listener.heard == [b"GET /x HTTP/1.1\r\n"]
    assert browser.complaints != []
    listener.heard.clear()
    browser.complaints.clear()
    browser.page.goto("about:blank")


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_wider_than_the_window(width: int, browser: Browser, page: Path) -> None:
    browser.page.set_viewport_size({"width": width, "height": 900})
    browser.open(page, BOTH)

    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.run(wide) == 0
    browser.page.set_viewport_size({"width": 1400, "height": 1000})


def test_without_javascript_the_tables_are_there(browser: Browser, page: Path) -> None:
    command = "Emulation.setScriptExecutionDisabled"
    debugger = browser.page.context.new_cdp_session(browser.page)
    debugger.send(command, {"value": True})
    browser.open(page)
    try:
        shown = browser.run("return document.getElementById('samples-controls').checkVisibility()")
        assert not shown
        assert browser.texts(".board td.model") == []
        browser.run("document.querySelectorAll('.board details').forEach(d => { d.open = true })")
        assert "fake/two" in browser.texts(".board td.model")
    finally:
        debugger.send(command, {"value": False})


def test_a_rewriting_stands_next_to_the_original_with_what_leaks(
    browser: Browser, tmp_path: Path
) -> None:
    written = "Ann says: <script>alert(1)</script> <b>thirty-two</b>, not old."
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    texts: dict[str, str | list[str] | Failure] = {"s1": f"### Text:\n{written}", "s2": "no"}
    store_run(tmp_path / "runs", tiny, "rewrite", texts)
    path = tmp_path / "report.html"
    write_whole(path, render_page(collect_report(tmp_path, texts=Texts.ALL)))

    browser.open(path)

    assert browser.texts(".texts h5") == ["Description", "Rewritten"]
    assert browser.texts(".texts .rewritten") == [written]
    assert browser.texts(".texts .rewritten .leak.part") == ["Ann"]
    assert browser.texts(".texts .rewritten .kept") == ["thirty-two"]
    assert browser.texts("#sample .chips .wrong") == ["Ann Leein part"]
    assert browser.texts(".list thead th") == ["Sample", "A H", "leaks"]
    assert browser.texts(".list tbody td")[2] == "1"
