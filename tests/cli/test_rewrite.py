"""Texts that a chat model rewrites, with answers from a replay file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from tests.builders import read_lines, sample_record, write_lines

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

QUERY: Final = "Is the pay of 41,000 dollars a year fair in Oslo?"
LEFT: Final = (
    "of 2 values that encoder finds and the query does not need, the new text still reveals 1 "
    "(PER 1): 1 in part"
)
LETTER: Final = "I am Ann Lee, ann.lee@mail.example, and earn 41,000 dollars in Oslo."


def scripted(**texts: str) -> str:
    """Return a replay model with a rewritten text for each sample id."""
    lines = [
        {"id": name, "prompt": "rewrite", "text": f"### Text:\n{text}", "finish": "stop"}
        for name, text in texts.items()
    ]
    return f"replay:{write_lines(Path('answers.jsonl'), lines)}"


@pytest.fixture
def three() -> Path:
    """Three samples about Ann Lee, 32."""
    return write_lines(Path("three.jsonl"), [sample_record(f"s{n}") for n in (1, 2, 3)])


def run(*options: object) -> int:
    return main(["run", "--task", "rewrite", *map(str, options)])


def test_rewritten_texts_are_scored_by_what_they_reveal(three: Path, capsys: Capsys) -> None:
    model = scripted(s1="The person is thirty-two.", s2="Ann is 32.", s3="A person of some age.")

    assert run("--model", model, "--dataset", three, "--json") == 0

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["task"], row["strategy"], row["scored"]) == ("rewrite", "rewrite", 3)
    # The name leaks in part once; the age is kept twice.
    figures = {name: round(row[name], 4) for name in ("protection", "retention", "h")}
    assert figures == {"protection": 0.6667, "retention": 0.6667, "h": 0.6667}
    leaks = [round(row[f"leak_{how}"], 4) for how in ("readable", "restated", "part")]
    assert leaks == [0, 0, 0.3333]
    assert "|leaks:restated-2|" in row["signature"]
    # Stored raw, as any response is.
    (responses,) = Path().glob("results/runs/*/rewrite/*.jsonl")
    assert read_lines(responses)[0]["text"] == "### Text:\nThe person is thirty-two."


def test_rewritten_texts_made_elsewhere_are_scored(three: Path, capsys: Capsys) -> None:
    lines = [{"id": f"s{number}", "rewritten": "Somebody is 32."} for number in (1, 2, 3)]
    predictions = write_lines(Path("mine.jsonl"), lines)

    assert main(["score", str(predictions), "--dataset", str(three), "--json"]) == 0

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["task"], row["h"]) == ("rewrite", 1)


# `pii-bench mask --rewrite`.


@pytest.fixture
def letter() -> Path:
    path = Path("letter.txt")
    path.write_text(LETTER, encoding="utf-8")
    return path


def mask(*options: object) -> int:
    return main(["mask", "--rewrite", "--query", QUERY, *map(str, options)])


def test_a_text_is_rewritten_and_revealed_values_are_counted(letter: Path, capsys: Capsys) -> None:
    written = "I earn 41,000 dollars in Oslo. Ask Ann."

    assert mask(letter, "--model", scripted(text=written)) == 0

    output = capsys.readouterr()
    assert output.out == f"{written}\n"
    assert output.err.splitlines() == [
        "pii-bench mask: the unmasked text goes to: this machine",
        f"pii-bench mask: {LEFT}",
    ]
    assert {path.name for path in Path().iterdir()} == {"letter.txt", "answers.jsonl"}


def test_explain_lists_what_the_new_text_reveals(letter: Path, capsys: Capsys) -> None:
    assert mask(letter, "--model", scripted(text="Ask Ann."), "--explain") == 0

    lines = capsys.readouterr().err.splitlines()
    assert lines[2].split() == ["type", "text", "needed", "in", "the", "new", "text"]
    assert ["PER", "Ann", "Lee", "in", "part"] in [line.split() for line in lines]


def test_a_corpus_is_rewritten(letter: Path, capsys: Capsys) -> None:
    folder = Path("in")
    folder.mkdir()
    letter.rename(folder / "letter.txt")
    model = scripted(text="I earn 41,000 dollars.")

    assert mask(folder, "--out", "out", "--model", model) == 0

    assert Path("out/letter.txt").read_text() == "I earn 41,000 dollars."
    assert "texts: 1" in capsys.readouterr().err


def test_nothing_is_printed_if_the_model_fails_and_no_message_quotes(
    letter: Path, capsys: Capsys
) -> None:
    assert mask(letter, "--model", scripted(text=" ")) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert "its answer is empty; nothing is masked" in output.err
    assert "Ann" not in output.err
