from __future__ import annotations

import pytest

from pii_bench.ranking.html import Shown, render_summary
from pii_bench.ranking.rows import Row, Source
from pii_bench.tasks import Task

HERE, AWAY = "this machine", "fake (https://api.example.org/v1)"
SENT = f"Unmasked text was sent to {AWAY}."


def shown(model: str, strategy: str, task: Task, to: str = HERE) -> Shown:
    return Shown(Row(Source.RUN, model, strategy, "demo", task, False, {}, unmasked_text_to=to))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([shown("a", "", Task.DETECTION)], "1 system on 1 dataset."),
        (
            [shown("a", "detection", Task.DETECTION), shown("a", "naive", Task.QUERY_RELATED)],
            "1 system on 1 dataset.",
        ),
        (
            [
                shown("a", "detection", Task.DETECTION),
                shown("a", "naive", Task.MASKING),
                shown("a", "self-cot", Task.MASKING),
                shown("b", "detection", Task.DETECTION),
            ],
            "3 systems on 1 dataset.",
        ),
    ],
    ids=["detection alone", "detection of a model that answers", "both"],
)
def test_each_system_counts_once(rows: list[Shown], words: str) -> None:
    assert f"<p>{words} No text left this machine." in render_summary(rows)


@pytest.mark.parametrize(
    ("recipients", "words"),
    [
        (["unknown"], "Who received the unmasked text of 1 system is not known."),
        (
            ["unknown", f"unknown, {AWAY}", HERE],
            f"{SENT} Who received the unmasked text of 2 systems is not known.",
        ),
        ([AWAY, HERE], SENT),
        (
            ["unknown", "fake (http://unknown/v1)"],
            (
                "Unmasked text was sent to fake (http://unknown/v1). "
                "Who received the unmasked text of 1 system is not known."
            ),
        ),
    ],
    ids=["unknown", "both", "named", "unknown in an address"],
)
def test_an_unknown_recipient_is_no_name(recipients: list[str], words: str) -> None:
    rows = [shown(f"m{number}", "naive", Task.MASKING, to) for number, to in enumerate(recipients)]

    assert f"on 1 dataset. {words} Best at" in render_summary(rows)
