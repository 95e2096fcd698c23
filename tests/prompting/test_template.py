from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PromptError
from pii_bench.prompting.template import Template, content_hash, load_template, read_prompt_text

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = frozenset({"description", "query"})


def prompt_file(folder: Path, text: str) -> Path:
    path = folder / "naive.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_placeholders_are_filled(tmp_path: Path) -> None:
    template = load_template(prompt_file(tmp_path, "D: {{description}}\nQ: {{query}}\n"), FIELDS)

    assert template.name == "naive"
    assert template.render({"description": "Ann", "query": "Why?"}) == "D: Ann\nQ: Why?"


def test_a_placeholder_may_stand_twice(tmp_path: Path) -> None:
    template = load_template(prompt_file(tmp_path, "{{query}} {{query}}"), frozenset({"query"}))

    assert template.render({"query": "Why?"}) == "Why? Why?"


def test_single_braces_and_dollars_are_text(tmp_path: Path) -> None:
    text = 'Subject1{"text": "TYPE"} }} $query ${query} $$ {{query}}'
    template = load_template(prompt_file(tmp_path, text), frozenset({"query"}))

    assert template.render({"query": "?"}) == 'Subject1{"text": "TYPE"} }} $query ${query} $$ ?'


@given(st.text(), st.text())
def test_values_stay_as_they_are(description: str, query: str) -> None:
    template = Template("naive", "<{{description}}|{{query}}>")

    rendered = template.render({"description": description, "query": query})

    assert rendered == f"<{description}|{query}>"


def test_a_value_that_looks_like_a_placeholder_is_not_filled() -> None:
    template = Template("naive", "{{description}} / {{query}}")

    rendered = template.render({"description": "{{query}} \\1 $query", "query": "{{description}}"})

    assert rendered == "{{query}} \\1 $query / {{description}}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{{description}}", "no placeholder for query"),
        ("nothing", "no placeholder for description, query"),
        (
            "{{description}} {{query}} {{choices}}",
            "nothing fills choices (allowed: description, query)",
        ),
        (
            "{{description}} {{Query}} {{query}}",
            "nothing fills Query (allowed: description, query)",
        ),
        (
            "{{description}}\n{{ query }}",
            "'{{' that opens no placeholder (Invalid placeholder in string: line 2, col 2)",
        ),
        (
            "{{description}} {{query}} {{",
            "'{{' that opens no placeholder (Invalid placeholder in string: line 1, col 28)",
        ),
        ("", "the file is empty"),
        (" \n", "the file is empty"),
    ],
)
def test_a_prompt_that_does_not_fit_its_strategy(tmp_path: Path, text: str, what: str) -> None:
    path = prompt_file(tmp_path, text)

    with pytest.raises(PromptError) as caught:
        load_template(path, FIELDS)

    assert str(caught.value) == f"{path}: {what}"


def test_a_prompt_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="No such file or directory"):
        load_template(tmp_path / "naive.txt", FIELDS)


def test_a_prompt_that_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "naive.txt").write_bytes(b"\xff{{description}}{{query}}")

    with pytest.raises(PromptError, match=r"naive\.txt: .*invalid start byte"):
        load_template(tmp_path / "naive.txt", FIELDS)


def test_white_space_around_a_prompt_is_not_sent(tmp_path: Path) -> None:
    assert read_prompt_text(prompt_file(tmp_path, "\n  text \n\n")) == "text"


def test_the_hash_of_one_text() -> None:
    # printf '\0\0\0\0\0\0\0\1a' | sha256sum
    assert content_hash("a") == "3b196fd4907bedf51c3090e9835f2f7cb61e7ee1b2299ea3b8fed9b4183a822a"


@given(st.lists(st.text(alphabet="ab", max_size=2), max_size=3), st.data())
def test_texts_that_differ_have_hashes_that_differ(texts: list[str], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.text(alphabet="ab", max_size=2), max_size=3))

    assert (content_hash(*texts) == content_hash(*others)) == (texts == others)
