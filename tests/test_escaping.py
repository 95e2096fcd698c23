from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.escaping import (
    csv_text,
    html_text,
    latex,
    markdown,
    markdown_code,
    markdown_table,
    terminal,
    visible,
)

# Every character, halves of surrogate pairs too.
ANY = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpt-4o, 模型, é\u0301", "gpt-4o, 模型, é\u0301"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("exe\u202egnp", r"exe\u202egnp"),
        ("a\u2028b", r"a\u2028b"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_invisible_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_ends_and_tabs_are_kept_for_the_terminal() -> None:
    assert terminal("a\tb\n\x1b[2J\r\n") == "a\tb\n\\x1b[2J\\r\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[0.9, 1.0], < 0.001, a_b", "[0.9, 1.0], < 0.001, a_b"),
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("<script>alert(1)</script>", r"\<script>alert(1)\</script>"),
        ("`code`", r"\`code\`"),
        ("[a](javascript:x)", r"[a\](javascript:x)"),
        ("a\nb", r"a\\nb"),
    ],
)
def test_markdown_syntax_is_escaped(text: str, shown: str) -> None:
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model:m|a", "`model:m|a`"),
        ("a `b` c", "`` a `b` c ``"),
        ("a\n# b", r"`a\n# b`"),
    ],
)
def test_markdown_code_cannot_be_closed_by_its_text(text: str, shown: str) -> None:
    assert markdown_code(text) == shown


def test_a_cell_adds_neither_a_column_nor_a_line_to_a_table() -> None:
    assert markdown_table(["Model", "F1"], [["a|b\n", 0.5]]).splitlines() == [
        "| Model   | F1   |",
        "|:--------|:-----|",
        r"| a\|b\\n | 0.5  |",
    ]


def test_html_and_latex_are_escaped() -> None:
    assert html_text("<b>\"x\" & 'y'\x1b") == "&lt;b&gt;&quot;x&quot; &amp; &#x27;y&#x27;\\x1b"
    assert latex("50 % of a_b & \\x^2 ~{}$#") == (
        r"50 \% of a\_b \& \textbackslash{}x\^{}2 \~{}\{\}\$\#"
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", r"\t=1"),
        (-1, "-1"),
        (-0.5, "-0.5000"),
        (True, "True"),
        (None, ""),
        (math.nan, ""),
    ],
)
def test_a_text_in_csv_is_no_formula(cell: object, shown: str) -> None:
    assert csv_text(["cell", "n"], [[cell, 2]]) == f"cell,n\n{shown},2\n"


def test_csv_figures_have_the_requested_format() -> None:
    assert csv_text(["f"], [[1 / 3]], figure=".6g") == "f\n0.333333\n"


@given(ANY)
def test_every_escape_is_safe_for_every_text(text: str) -> None:
    (_, (cell, _)) = csv.reader(io.StringIO(csv_text(["cell", "n"], [[text, 1]]), newline=""))
    shown = [visible(text), markdown(text), markdown_code(text), html_text(text), latex(text), cell]

    for each in shown:
        each.encode()
        assert "\x1b" not in each
        assert len(each.splitlines()) <= 1
    assert "<" not in html_text(text)
    assert not cell.startswith(("=", "+", "-", "@"))
