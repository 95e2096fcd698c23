"""Quotations of the documentation equal the data and the results."""

from __future__ import annotations

import json
import re
import shutil
from statistics import mean
from typing import TYPE_CHECKING

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from tests.builders import read_csv
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PAGE = REPOSITORY / "docs" / "frontier.md"
TUNING_PAGE = REPOSITORY / "docs" / "fine-tuning.md"
TUNING = REPOSITORY / "results" / "fine-tuning"
FIGURES = ("f1", "precision", "recall")


def test_the_page_on_frontier_quotes_the_set() -> None:
    samples = {sample.id: sample for sample in load_dataset("frontier").samples}
    quoted = re.findall(
        r"^## (\S+)\n.*?^`(frontier-\d+)`\n\n```text\n(.*?)\n```\n\n> (.*?)\n\nNeeded: (.*?)\.\n",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )

    assert len(quoted) == 9
    for reason, sample_id, text, query, needed in quoted:
        sample = samples[sample_id]
        texts = [" ".join(related.text.split()) for related in sample.related]
        assert reason in sample.meta["reasons"]
        assert (text, query) == (sample.description, sample.query)
        assert needed == (", ".join(f"`{each}`" for each in texts) or "nothing")


def test_the_page_on_fine_tuning_quotes_its_run() -> None:
    page = TUNING_PAGE.read_text(encoding="utf-8")
    told = re.findall(r"^\| `(local/[^`]+)` \| (.*) \|$", page, re.MULTILINE)
    losses = [float(row["loss"]) for row in read_csv(TUNING / "loss.csv")]
    seconds = json.loads((TUNING / "training.json").read_text(encoding="utf-8"))["seconds"]

    assert told == [
        (row["model"], " | ".join([row["dataset"], row["scored"], *rounded(row)]))
        for row in read_csv(TUNING / "rows.csv")
    ]
    assert re.findall(r"^\| (\d+) to (\d+) \| ([\d.]+) \|$", page, re.MULTILINE) == [
        (str(first + 1), str(first + 20), f"{mean(losses[first : first + 20]):.3f}")
        for first in range(0, len(losses), 20)
    ]
    assert f"{len(losses)} steps took {seconds / 60:.0f} minutes" in page


def test_the_rows_before_and_after_fine_tuning_follow_from_the_stored_answers(
    tmp_path: Path,
) -> None:
    shutil.copytree(TUNING / "runs", tmp_path / "runs")

    assert main(["leaderboard", "--results", str(tmp_path)]) == 0

    found = [row for row in read_csv(tmp_path / "leaderboard.csv") if row["source"] == "run"]
    assert [(row["model"], row["dataset"], rounded(row)) for row in found] == [
        (row["model"], row["dataset"], rounded(row)) for row in read_csv(TUNING / "rows.csv")
    ]


def rounded(row: dict[str, str]) -> list[str]:
    valid = float(row["rate_ok"]) + float(row["rate_repaired"])
    return [f"{figure:.3f}" for figure in (valid, *(float(row[name]) for name in FIGURES))]
