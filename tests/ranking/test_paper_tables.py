from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import UnknownNameError
from pii_bench.models.catalog import MODELS
from pii_bench.ranking.external import PUBLISHED, published_rows
from pii_bench.ranking.paper_tables import (
    PAPER_TABLES,
    paper_table,
    paper_table_records,
    published_name,
)
from pii_bench.ranking.rows import SUBJECT_METRICS, Row, Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable

GPT_4O = "openai/gpt-4o-2024-08-06"


OURS = Row(
    source=Source.RUN,
    model=GPT_4O,
    strategy="self-cot",
    dataset="single",
    task=Task.QUERY_RELATED,
    oracle=False,
    metrics={},
    scored=200,
    gold=200,
)


def ours(dataset: str, metrics: dict[str, float], **changes: Any) -> Row:
    return replace(OURS, dataset=dataset, metrics=metrics, **changes)


def cells(markdown: str, *names: str) -> list[list[str]]:
    """The cells of the lines of a table that hold all names."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [line for line in split if set(names) <= set(line)]


def test_a_table_of_strategies(assert_golden: Callable[[str, str], None]) -> None:
    rows = [
        ours("hard", {"f1": 0.5, "rouge_l_f": 0.44}),
        ours("distract", {"f1": 0.7, "rouge_l_f": 0.7}, scored=150),
        ours("hard", {"f1": 0.48, "rouge_l_f": 0.48}, source=Source.REFERENCE),
        ours("hard", {"f1": 0.6, "rouge_l_f": 0.6}, strategy="self-consistency-vote"),
        ours("hard", {"f1": 0.4, "rouge_l_f": 0.4}, model="bilstm-crf", strategy="embedding"),
        ours("hard", {"f1": 0.9, "rouge_l_f": 0.9}, model="gold", strategy="all", oracle=True),
        ours("single", {"f1": 0.1, "rouge_l_f": 0.1}, strategy="naive"),
        ours("hard", {"f1": 0.2, "rouge_l_f": 0.2}, task=Task.MASKING, strategy="naive"),
    ]

    assert_golden("paper-table-5.md", paper_table(5, rows, published_rows()))


def test_a_table_of_detection(assert_golden: Callable[[str, str], None]) -> None:
    rows = [
        ours(
            "single",
            {"ent_f1": 0.9},
            model="bilstm-crf",
            strategy="detection",
            task=Task.DETECTION,
            undefined=SUBJECT_METRICS,
        ),
        ours(
            "multi",
            {"strict_f1": 0.781, "ent_f1": 0.806, "rouge_l_f": 0.8},
            model="openai/Qwen/Qwen2.5-7B-Instruct@localhost:8000",
            strategy="detection",
            task=Task.DETECTION,
        ),
    ]

    assert_golden("paper-table-6.md", paper_table(6, rows, published_rows()))


def test_the_lines_of_a_table_as_records() -> None:
    rows = [
        ours("single", {"f1": 0.75}, strategy="naive", scored=4, gold=4),
        ours("single", {"f1": 0.5}, strategy="ps-cot", scored=3, gold=4),
        ours("single", {"f1": 1.0}, model="gold", strategy="gold", oracle=True),
    ]
    theirs = [
        ours(
            "single",
            {"f1": 0.5, "rouge_l_f": 0.75},
            source=Source.PUBLISHED,
            model="gpt-4o-2024-08-06",
            strategy=strategy,
        )
        for strategy in ("naive", "ps-cot")
    ]

    records = paper_table_records(7, rows, theirs)

    f1, rouge = (
        {"task": "query-related", "dataset": "single", "metric": metric}
        for metric in ("f1", "rouge_l_f")
    )
    by_paper = [f1 | {"value": 0.5}, rouge | {"value": 0.75}]
    named = ("source", "model", "strategy", "oracle", "figures")
    assert {record["table"] for record in records} == {7}
    assert [tuple(record[name] for name in named) for record in records] == [
        ("published", "gpt-4o-2024-08-06", "naive", False, by_paper),
        (
            *("run", GPT_4O, "naive", False),
            [f1 | {"value": 0.75, "scored": 4, "gold": 4, "difference": 0.25}],
        ),
        ("published", "gpt-4o-2024-08-06", "ps-cot", False, by_paper),
        # Where samples are missing there is no difference.
        ("run", GPT_4O, "ps-cot", False, [f1 | {"value": 0.5, "scored": 3, "gold": 4}]),
        ("run", "gold", "gold", True, [f1 | {"value": 1.0, "scored": 200, "gold": 200}]),
    ]


def test_single_and_multi_are_joined_by_their_samples() -> None:
    # One sample at 1 and three at 0.2: 1.6 / 4.
    rows = [
        ours("single", {"f1": 1.0}, task=Task.MASKING, scored=1, gold=1),
        ours("multi", {"f1": 0.2}, task=Task.MASKING, scored=3, gold=3),
    ]

    (line,) = cells(paper_table(4, rows, []), "run")

    assert line == ["self-cot", GPT_4O, "run", "0.400", ""]
    assert cells(paper_table(4, rows[:1], []), "run") == []


def test_another_form_of_output_is_another_row() -> None:
    rows = [ours("single", {"strict_f1": 0.9}, strategy="detection+schema", task=Task.DETECTION)]

    markdown = paper_table(6, rows, published_rows())

    (line,) = cells(markdown, "run")
    assert line[:4] == ["detection+schema", GPT_4O, "run", "0.900"]
    below = markdown.split("## ")[1]
    assert below.startswith("Ours that this table of the paper does not have")
    assert "detection+schema" in below


def test_every_published_row_stands_in_the_table_that_its_note_names() -> None:
    tables = {
        number: paper_table(number, [], published_rows()) for number in PAPER_TABLES if number != 8
    }
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        figures = [r for r in csv.DictReader(file) if r["task"] != "privacy_utility"]

    shown = {
        number: sorted(cell for line in cells(markdown) for cell in line if cell[:1].isdigit())
        for number, markdown in tables.items()
    }
    assert shown == {
        number: sorted(f"{float(r['value']):.3f}" for r in figures if int(r["table"]) == number)
        for number in tables
    }


def test_the_tables_are_those_of_the_file() -> None:
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        numbers = {int(record["table"]) for record in csv.DictReader(file)}

    # Of two tables of the ACL version the file has no figures.
    assert list(PAPER_TABLES) == sorted(numbers | {22, 24})


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (2, "people who annotate samples of ours in the web application (`pii-bench serve`)"),
        (8, "answers to masked prompts, and a judge of them: `pii-bench utility` gets both"),
        (18, "was never released: no run of ours is on it. Nearest is table 6, on `single`."),
        (19, "was never released: no run of ours is on it. Nearest is table 7, on `single`."),
        (20, "was never released: no run of ours is on it. Nearest is table 4, on `single+multi`."),
        (22, "of the paper: not available\n\n`data/published/paper_results.csv` has no figures"),
        (24, "of the paper: not available\n\n`data/published/paper_results.csv` has no figures"),
    ],
)
def test_tables_that_no_run_can_fill_say_why(number: int, reason: str) -> None:
    runs = [
        ours("single", {"strict_f1": 0.5}, strategy="detection", task=Task.DETECTION),
        ours("single", {"f1": 0.5}, strategy="naive"),
    ]

    markdown = paper_table(number, runs, published_rows())

    assert reason in markdown
    assert cells(markdown, "run") == []


def test_people_have_a_line_in_the_table_of_people_alone() -> None:
    people = [
        ours("single", metrics, model="people", task=task, source=Source.HUMAN)
        for metrics, task in (
            ({"strict_f1": 0.9}, Task.DETECTION),
            ({"f1": 0.8}, Task.QUERY_RELATED),
        )
    ]

    assert cells(paper_table(2, people, published_rows()), "people") == [
        ["people", "human", "0.900", "", "", "", "0.800", "", "", ""]
    ]
    assert paper_table_records(2, people, [])[0]["model"] == "people"
    assert cells(paper_table(6, people, published_rows()), "people") == []


@pytest.mark.parametrize("function", [paper_table, paper_table_records])
def test_an_unknown_table_is_refused_with_those_there_are(function: Callable[..., object]) -> None:
    with pytest.raises(UnknownNameError, match=r"table of the paper '3'.*allowed: 2, 4, 5"):
        function(3, [], [])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("openai/gpt-4o-2024-08-06@proxy.example.org", "gpt-4o-2024-08-06"),
        ("openai/gpt-5-2025-08-07", "gpt-5"),
        ("anthropic/claude-3-5-sonnet-20241022", "claude-3.5-sonnet"),
        ("openai/deepseek-ai/DeepSeek-V3@localhost:8000", "deepseek-v3"),
        ("openai/Qwen/Qwen2.5-7B-Instruct@10.0.0.2", "qwen2.5-7b-instruct"),
        ("bilstm-crf", "bilstm-crf"),
        ("deepseek/deepseek-chat", None),  # three models in turn
        ("openai/gpt-6-luna", None),
        ("openai/unheard-of", None),
        ("presidio", None),
        ("local/smollm2-135m-instruct", None),
    ],
)
def test_the_papers_name_of_a_model(model: str, name: str | None) -> None:
    assert published_name(model) == name


def test_every_model_of_the_paper_but_people_and_the_tagger_has_an_alias() -> None:
    names = {row.model for row in published_rows()}
    known = {published_name(card.full_name) for card in MODELS.values()}

    assert names - known == {"human", "bilstm-crf"}
