from __future__ import annotations

import pytest

from pii_bench.analysis.drops import drops
from pii_bench.analysis.headlines import published_headlines
from pii_bench.ranking.published import published_rows
from pii_bench.tasks import Task
from tests.analysis.evaluated import headline


def test_a_drop_is_from_single_and_multi_together() -> None:
    figures = [headline(0.75, "single+multi"), headline(0.5, "hard"), headline(0.9, "distract")]

    hard, distract = drops(figures)

    assert (hard.run.dataset, hard.base, hard.value) == ("hard", 0.75, 0.5)
    assert (hard.drop, hard.relative) == (0.25, 0.25 / 0.75)
    assert distract.drop == pytest.approx(-0.15)


def test_from_nothing_there_is_no_relative_drop() -> None:
    (found,) = drops([headline(0.0, "single+multi"), headline(0.0, "hard")])

    assert (found.drop, found.relative) == (0.0, None)


def test_systems_tasks_and_metrics_are_not_mixed() -> None:
    base = headline(0.75, "single+multi")
    others = [
        headline(0.5, "hard", model="fake/two"),
        headline(0.5, "hard", strategy="self-cot"),
        headline(0.5, "hard", task=Task.MASKING),
        headline(0.5, "hard", metric="ent_f1"),
        headline(0.5, "multi"),
    ]

    assert drops([base, *others]) == []


@pytest.mark.parametrize("incomplete", ["single+multi", "hard"])
def test_incomplete_runs_have_no_drop(incomplete: str) -> None:
    figures = [
        headline(0.75, name, complete=name != incomplete) for name in ("single+multi", "hard")
    ]

    assert drops(figures) == []


def test_the_papers_gpt_4o_drops_on_hard() -> None:
    # Tables 7, 21 and 5: naive has 0.63 on single, and 0.36 on hard.
    found = drops(published_headlines(published_rows()))

    (drop,) = [
        each
        for each in found
        if (each.run.model, each.run.strategy, each.run.dataset, each.run.task)
        == ("gpt-4o-2024-08-06", "naive", "hard", Task.QUERY_RELATED)
    ]
    assert drop.value == 0.36
    assert 0.2 < drop.drop < 0.3
