from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.chats import Preference, TextPair, text_questions
from pii_bench.analysis.utility.preferences import (
    PreferenceRow,
    collect_preferences,
    preferences_to_csv,
    preferences_to_table,
    text_pairs,
)
from pii_bench.analysis.utility.stored import Rewritten
from pii_bench.datasets.catalog import load_dataset
from tests.analysis.utility.runs import run_text_judge
from tests.builders import make_sample

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = make_sample("s1")


def test_the_texts_prompt_shows_both_texts_in_both_orders() -> None:
    pairs = text_pairs([SAMPLE, make_sample("s2")], {"s1": Rewritten("Somebody is 32.")})

    assert pairs == {"s1": TextPair("Somebody is 32.", "<Full Name> is 32.")}
    questions = text_questions(pairs, ("fake/one", "rewrite"))
    first, second = (message.content for message in questions.messages(SAMPLE))
    assert "Version A:\nSomebody is 32.\n\nVersion B:\n<Full Name> is 32.\n" in first
    assert "Version A:\n<Full Name> is 32.\n\nVersion B:\nSomebody is 32.\n" in second
    assert all(text.count(SAMPLE.description) == 1 for text in (first, second))


def row(**counts: int) -> PreferenceRow:
    outcomes = Counter({Preference(name): number for name, number in counts.items()})
    return PreferenceRow("demo", "fake/one+rewrite", "fake/judge", 12, 9, outcomes)


@pytest.mark.parametrize(
    ("counts", "preferred"),
    [
        ({"win": 3, "loss": 1}, 3 / 4),
        ({"win": 1, "tie": 1, "flip": 2}, 5 / 8),
        ({"flip": 4}, 1 / 2),
        ({}, None),
    ],
)
def test_ties_and_flips_count_half(counts: dict[str, int], preferred: float | None) -> None:
    assert row(**counts).preferred == preferred


def test_preferences_as_table_and_csv() -> None:
    table = preferences_to_table([row(win=3, loss=1, flip=2)])

    assert table.splitlines()[2].split("|")[4:12] == [
        *(" 9/12    ", " 3      ", " 1        ", " 0      ", " 2       ", " 0          "),
        *(" 0         ", " 0.667       "),
    ]
    assert preferences_to_csv([row(win=3, loss=1, flip=2)]).splitlines()[1] == (
        "demo,fake/one+rewrite,fake/judge,12,9,3,1,0,2,0,0,0.6667,"
    )


@pytest.mark.parametrize("rewritten_by", [(), ("fake/one",), ("fake/one", "detection", "naive")])
def test_a_run_that_does_not_name_one_rewriter_is_left_out(
    rewritten_by: tuple[str, ...], tmp_path: Path
) -> None:
    run_text_judge(tmp_path, load_dataset("demo"), {}, rewritten_by)
    left_out: list[str] = []

    assert collect_preferences(tmp_path, left_out) == []
    (message,) = left_out
    assert message.startswith("utility: fake/judge on demo: its manifest does not name the run")
