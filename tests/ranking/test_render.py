from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.ranking.html import leaderboard_page
from pii_bench.ranking.render import (
    summarise,
    to_csv,
    to_latex,
    to_markdown,
    to_table,
    write_leaderboard,
)
from pii_bench.ranking.rows import SUBJECT_METRICS, Row, Source, rank
from pii_bench.ranking.stored import collect
from pii_bench.tasks import Status, Task
from tests.ranking.stored_runs import ANN, BO, FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


VERSIONS = re.compile(r"\b(norm|match|rougeL|parser|pii_bench|scipy|rapidfuzz|python):[^|`,\n]+")

PUBLISHED = Row(
    source=Source.PUBLISHED,
    model="gpt-4o-2024-08-06",
    strategy="naive",
    dataset="single+multi",
    task=Task.MASKING,
    oracle=False,
    metrics={"f1": 0.72, "rouge_l_f": 0.72},
    note="paper, table 4",
)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Two models, a reference run, an oracle, an incomplete run and a published figure."""
    monkeypatch.chdir(tmp_path)
    dataset = tiny_dataset(Path("tiny.jsonl"))  # the signature holds no folder
    runs, reference = tmp_path / "results" / "runs", tmp_path / "results" / "reference"
    ages = {"s1": '### Answer: ["32"]', "s2": "### Answer: ['40']"}
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": "I found nobody."})
    store_run(runs, dataset, "naive", ages | {"s2": '### Answer: ["41"]'})
    store_run(runs, dataset, "naive-choice", ages)
    store_run(
        runs,
        dataset,
        "naive",
        {"s1": ages["s1"], "s2": FAILED},
        model="fake/two",
        unmasked_text_to="fake (https://api.example.org/v1)",
    )
    store_run(reference, dataset, "detection", {"s1": ANN, "s2": BO}, model="fake/three")
    return rank([*collect(tmp_path / "results").rows, PUBLISHED])


def test_the_leaderboard_in_each_format(
    rows: list[Row], assert_golden: Callable[[str, str], None]
) -> None:
    # All but the style and the scripts.
    (main,) = re.findall("<main>.*</main>\n", leaderboard_page(rows), re.DOTALL)
    formats = {"csv": to_csv(rows), "md": to_markdown(rows), "tex": to_latex(rows), "html": main}
    for suffix, text in formats.items():
        assert_golden(f"leaderboard.{suffix}", VERSIONS.sub(r"\1:*", text))


def test_names_cannot_break_out_of_a_table() -> None:
    row = replace(PUBLISHED, model="<script>1</script>", strategy="50%_&{x}", signature="<b>")

    assert "<script>1" not in leaderboard_page([row])
    assert "<code><b>" not in leaderboard_page([row])
    assert r"50\%\_\&\{x\}" in to_latex([row])


def test_what_needs_subjects_is_a_dash_where_none_are_named() -> None:
    without = replace(PUBLISHED, task=Task.DETECTION, metrics={"ent_f1": 0.85})

    line = to_table([replace(without, undefined=SUBJECT_METRICS)]).splitlines()[-1]

    assert [cell.strip() for cell in line.split("|")[4:7]] == ["-", "0.850", "-"]


@pytest.mark.parametrize(
    ("recipient", "shown"),
    [
        ("this machine", "this machine"),
        ("unknown", "unknown"),
        ("", ""),
        ("openai (https://api.openai.com/v1)", "openai (api.openai.com)"),
        ("openai (http://10.0.0.2:8000)", "openai (10.0.0.2:8000)"),
        ("unknown, openai (https://api.openai.com/v1)", "unknown, openai (api.openai.com)"),
    ],
)
def test_of_who_is_sent_unmasked_text_the_table_names_the_host(recipient: str, shown: str) -> None:
    row = replace(PUBLISHED, unmasked_text_to=recipient)

    line = to_table([row]).splitlines()[-1]

    assert line.split("|")[-3].strip() == shown
    [written] = csv.DictReader(to_csv([row]).splitlines())
    assert written["unmasked_text_to"] == recipient


def test_no_results_are_a_table_without_rows() -> None:
    assert to_csv([]).count("\n") == 1
    assert to_markdown([]).startswith("# Leaderboard\n")


def test_each_format_is_a_file_and_the_folder_is_made(tmp_path: Path) -> None:
    files = write_leaderboard([PUBLISHED], tmp_path / "elsewhere")

    assert {path.name: path.read_text(encoding="utf-8") for path in files} == {
        "leaderboard.csv": to_csv([PUBLISHED]),
        "leaderboard.md": to_markdown([PUBLISHED]),
        "leaderboard.tex": to_latex([PUBLISHED]),
        "leaderboard.html": leaderboard_page([PUBLISHED]),
    }


RAN = {("m", "naive", "single"), ("m", "naive", "multi"), ("m", "detection", "single")}


def row(
    source: Source,
    model: str,
    strategy: str,
    task: Task,
    metrics: Mapping[str, float],
    *,
    dataset: str = "single",
    scored: int = 10,
    oracle: bool = False,
) -> Row:
    return Row(source, model, strategy, dataset, task, oracle, metrics, scored=scored, gold=10)


def masking(source: Source, model: str, strategy: str, h: float, dataset: str = "single") -> Row:
    metrics = {"h": h, "protection": 0.6, "retention": 0.75, "f1": 0.5}
    return row(source, model, strategy, Task.MASKING, metrics, dataset=dataset)


def test_a_run_stands_above_the_ladder_and_the_best_published_figure() -> None:
    multi = {"h": 0.5, "protection": 0.9, "retention": 0.345}
    rows = [
        masking(Source.RUN, "m", "naive", 0.7),
        row(Source.RUN, "m", "naive", Task.MASKING, multi, dataset="multi"),
        masking(Source.REFERENCE, "gold", "random", 0.4),
        masking(Source.REFERENCE, "bilstm-crf", "gold", 0.9),
        masking(Source.REFERENCE, "spacy", "embedding", 0.3),
        row(Source.PUBLISHED, "a", "naive", Task.MASKING, {"f1": 0.8}),
        row(Source.PUBLISHED, "b", "naive", Task.MASKING, {"f1": 0.85}),
        row(Source.PUBLISHED, "told", "naive-choice", Task.MASKING, {"f1": 0.99}, oracle=True),
        # Another run, of somebody who shares the folder.
        masking(Source.RUN, "other", "naive", 0.99),
    ]

    assert summarise(rows, dict.fromkeys(sorted(RAN, reverse=True)), [Task.MASKING]) == (
        "masking (H; published: F1 in brackets)\n"
        "\n"
        "                                         single    multi\n"
        "-------------------------------------  --------  -------\n"
        "m+naive                                   0.700    0.500\n"
        "choose at random (gold+random)            0.400\n"
        "told what is needed (bilstm-crf+gold)     0.900\n"
        "best published, on the paper's data     (0.850)\n"
        "\n"
        "Of the values that a query does not need, 40% (single) and 10% (multi) can still be "
        "read.\n"
        "Of those that it needs, 25% (single) and 66% (multi) are hidden.\n"
        "H on single is 0.700: choosing at random gives 0.400, and being told what is needed "
        "0.900.\n"
    )


def test_readers_people_and_the_best_published_system_stand_beside_queries() -> None:
    rows = [
        row(source, model, "naive", Task.QUERY_RELATED, {"f1": f1})
        for source, model, f1 in (
            (Source.RUN, "m", 0.5),
            (Source.READING, "readers", 0.99),
            (Source.HUMAN, "people", 0.9),
            (Source.PUBLISHED, "b", 0.7),
            (Source.PUBLISHED, "a", 0.6),
            (Source.PUBLISHED, "human", 0.95),
        )
    ]

    lines = summarise(rows, {("m", "naive", "single")}, [Task.QUERY_RELATED]).splitlines()

    assert [line.rsplit(maxsplit=1) for line in lines[-4:]] == [
        ["blind readers (a large language model)", "0.990"],
        ["people, each alone", "0.900"],
        ["best published, on the paper's data", "0.700"],
        ["people, on the paper's data", "0.950"],
    ]


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (
            0.25,
            (
                "Of the values that a query does not need, 40% can still be read.\n"
                "Of those that it needs, 25% are hidden.\n"
                "25.0% of the samples have no usable answer: their values count as both.\n"
            ),
        ),
        (1.0, "\n\nNo sample has a usable answer.\n"),
    ],
)
def test_samples_without_a_usable_answer_are_named_with_what_leaks(
    failed: float, words: str
) -> None:
    rates = {Status.OK: 1 - failed, Status.MALFORMED: failed}
    own = replace(masking(Source.RUN, "m", "naive", 0.7), rates=rates)

    assert summarise([own], RAN, [Task.MASKING]).endswith(words)


def test_nothing_is_said_of_a_mean_over_several_systems() -> None:
    rows = [masking(Source.RUN, "m", strategy, 0.7) for strategy in ("naive", "self-cot")]

    shown = summarise(rows, {("m", row.strategy, "single") for row in rows}, [Task.MASKING])

    assert [line.split() for line in shown.splitlines()[-2:]] == [
        ["m+naive", "0.700"],
        ["m+self-cot", "0.700"],
    ]


def test_a_detector_that_names_no_subjects_has_ent_f1_in_brackets() -> None:
    rows = [row(Source.RUN, "m", "detection", Task.DETECTION, {"ent_f1": 0.65}, scored=4)]

    shown = summarise(rows, RAN, [Task.DETECTION])

    assert shown.splitlines()[-1].split() == ["m", "(0.650)", "4/10"]


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "provider/a-model-with-a-name-that-goes-on-and-on-2026-11-22-preview"
    sets = ("single", "multi", "hard", "distract")
    rates = {Status.OK: 0.75, Status.MALFORMED: 0.25}
    rows = [
        replace(masking(Source.RUN, long, "self-consistency", 0.5, dataset=name), rates=rates)
        for name in sets
    ]
    ran = {(long, "self-consistency", name): None for name in sets}

    assert max(map(len, summarise(rows, ran, [Task.MASKING]).splitlines())) <= 100
