from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.analysis import figures
from pii_bench.analysis.figures import Figure, Figures
from pii_bench.analysis.report.data import Texts, collect_report
from pii_bench.analysis.report.page import SCRIPTS, render_page, to_json
from pii_bench.files import write_whole
from tests.analysis.report.folders import NOTHING, demo_results, own_dataset
from tests.ranking.stored_runs import ANN, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE: Final = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '<img src=x onerror="alert(1)">',
    "a line\u2028and\u2029another",
    "half \ud83d a pair, \ude00 and \u0000",
    "\\u003c/script> \\",
    "{{data}} ]]> &lt; \u202e",
]


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_endtag(self, _: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open][-1] += data

    def attributes(self, name: str) -> list[str]:
        return [each[name] or "" for _, each in self.elements if name in each]


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)


def page_of(folder: Path, texts: Texts = Texts.OURS) -> str:
    return render_page(collect_report(folder, texts=texts))


@pytest.fixture
def demo(tmp_path: Path) -> str:
    """The page of two runs on demo."""
    demo_results(tmp_path)
    return page_of(tmp_path)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_the_element_that_holds_it(text: str) -> None:
    written = to_json({"d": text})

    assert "<" not in written
    assert not re.search("[\u2028\u2029\ud800-\udfff\x00]", written)
    assert json.loads(written) == {"d": text}


def test_hostile_texts_make_no_elements(tmp_path: Path) -> None:
    """Texts, answers and model would all like to be markup."""
    dataset = own_dataset(tmp_path / "mine.jsonl", HOSTILE)
    related = dict.fromkeys(("s1", "s2"), f"### Answer: {json.dumps(HOSTILE)}")
    model = 'a/<img src=x onerror="alert(1)">'
    store_run(tmp_path / "runs", dataset, "naive", related, model=model)
    rewritten = {"s1": f"### Text:\n{' '.join(HOSTILE)}"}
    store_run(tmp_path / "runs", dataset, "rewrite", rewritten)
    written = tmp_path / "page.html"
    write_whole(written, page_of(tmp_path, Texts.ALL))

    page = Page(written.read_text(encoding="utf-8"))

    assert [dict(a).get("type") for tag, a in page.elements if tag == "script"] == [
        "application/json",
        None,
    ]
    assert not [tag for tag, _ in page.elements if tag in {"img", "iframe", "object", "embed"}]
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "style"}
    (dataset,) = json.loads(page.inside["script"][0])["datasets"]
    assert [sample["d"] for sample in dataset["samples"]] == HOSTILE


def test_the_policy_lets_only_what_is_in_the_page_run(demo: str) -> None:
    page = Page(demo)

    (policy,) = (
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script, style = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (page.inside["script"][1], page.inside["style"][0])
    )
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_a_page_points_nowhere_else(demo: str) -> None:
    page = Page(demo)

    assert page.attributes("src") == []
    assert {href[0] for href in page.attributes("href")} == {"#", "d"}
    assert [href for href in page.attributes("href") if href[0] == "d"] == ["data:,"]
    assert "url(" not in page.inside["style"][0]


def test_scripts_make_no_markup_of_texts() -> None:
    together = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)

    for way in ("HTML", "document.write", "eval", "Function(", "import", "fetch", "XMLHttp", "://"):
        assert way not in together


def test_without_texts_no_text_is_in_the_page(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", tiny, "detection", {"s1": ANN, "s2": ANN})
    store_run(tmp_path / "runs", tiny, "naive", {"s1": '### Answer: ["old"]', "s2": NOTHING})

    page = page_of(tmp_path)

    assert f"The texts of <b>{tiny.name}</b> are left out" in page
    for text in ("Ann Lee", "Am I old?", "Bo Ray", '"old"', "Full Name"):
        assert text not in page
    assert "are not synthetic datasets of pii_bench" in page_of(tmp_path, Texts.ALL)


def test_tables_are_there_without_the_script(demo: str) -> None:
    assert "<h3>demo <span>query-related</span></h3>" in demo
    assert 'href="#set=demo&amp;by=masking&amp;a=fake%2Ftwo%3Anaive"' in demo
    assert '<td class="num headline" data-value="1.0">1.000</td>' in demo
    assert "this machine" in demo
    assert 'class="badge published"' in demo


def test_runs_that_were_left_out_are_counted(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", changed(tiny), "naive", {"s1": NOTHING})

    assert "Left out: 1; the command" in page_of(tmp_path)


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    demo_results(tmp_path)

    assert page_of(tmp_path) == page_of(tmp_path)


def test_figures_are_images_that_hold_themselves(tmp_path: Path) -> None:
    report = collect_report(tmp_path)

    page = render_page(report)
    assert "<p>No figures: matplotlib, which draws" in page
    drawn = Figures((Figure("Score & size", "<svg></svg>"),))
    assert (
        '<figcaption>Score &amp; size</figcaption><div class="scroll"><img alt="Score &amp; size" '
        'src="data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=">'
    ) in render_page(replace(report, figures=drawn))
