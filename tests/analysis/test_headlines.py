from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.figures.curves import chosen
from pii_bench.analysis.headlines import (
    Tradeoff,
    by_reason,
    drops,
    headlines,
    published_headlines,
    tradeoffs,
)
from pii_bench.datasets.sample import reasons_of
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.rows import Row, Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import UNASKED, answer, asked, evaluated, headline, run_name

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample


SUBJECTS = ((("Ann Lee", "PER"), ("32", "DEM")),)


def published(dataset: str, f1: float, *, model: str = "gpt-5", task: Task = Task.MASKING) -> Row:
    return Row(Source.PUBLISHED, model, "naive", dataset, task, False, {"f1": f1, "rouge_l_f": f1})


def test_a_headline_is_the_mean_of_a_run() -> None:
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32"), asked("d", "32")]
    answers = {"a": answer("32"), "b": answer("33"), "c": answer("32"), "d": UNASKED}

    (found,) = headlines([evaluated(run_name(complete=False), samples, answers)])

    assert (found.run, found.metric, found.samples) == (run_name(complete=False), "f1", 3)
    assert found.value == pytest.approx(2 / 3)
    assert found.interval_low is not None
    assert found.interval_high is not None
    assert found.interval_low <= found.value <= found.interval_high


def test_without_a_scored_sample_there_is_none() -> None:
    assert headlines([evaluated(run_name(), [asked("a", "32")], {"a": UNASKED})]) == []


def test_a_published_figure_has_neither_samples_nor_interval() -> None:
    (found,) = published_headlines([published("single", 0.5)])

    assert (found.run.source, found.run.complete, found.value) == (Source.PUBLISHED, True, 0.5)
    assert (found.samples, found.interval_low, found.interval_high) == (None, None, None)


def test_published_single_and_multi_are_joined_by_the_papers_samples() -> None:
    found = published_headlines([published("single", 1.0), published("multi", 0.0)])

    (both,) = [each for each in found if each.run.dataset == "single+multi"]
    assert both.value == pytest.approx(1214 / (1214 + 1228))


def test_what_is_published_of_both_together_is_taken_as_it_is() -> None:
    rows = [published("single", 1.0), published("multi", 0.0), published("single+multi", 0.7)]

    (both,) = [e for e in published_headlines(rows) if e.run.dataset == "single+multi"]

    assert both.value == 0.7


def test_every_published_headline_is_there_once() -> None:
    found = published_headlines(published_rows())

    assert len({(each.run, each.metric) for each in found}) == len(found)
    assert {each.metric for each in found} == {"strict_f1", "ent_f1", "f1"}


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


def test_a_run_of_masking_has_both_parts_of_h() -> None:
    """The query needs 32 and Halifax, which was not found and so can be read; Ann is masked."""
    sample = asked("a", "Halifax", "32")
    run = evaluated(run_name(task=Task.MASKING), [sample], {"a": answer("32", subjects=SUBJECTS)})
    other = evaluated(run_name(), [sample], {"a": answer("32")})

    assert tradeoffs([run, other]) == [Tradeoff(run.name, protection=1.0, retention=1.0)]


def test_nothing_is_drawn_of_one_system_or_of_incomplete_ones() -> None:
    one, two, other = (
        Tradeoff(run_name(dataset, task=Task.MASKING, model=model), 0.5, protection)
        for dataset, model, protection in (
            ("single", "fake/one", 0.2),
            ("single", "fake/two", 0.9),
            ("multi", "fake/one", 0.5),
        )
    )
    part = Tradeoff(run_name(task=Task.MASKING, model="fake/part", complete=False), 1.0, 1.0)

    assert chosen([one, part, other]) == []
    assert chosen([one, two, part, other]) == [two, one]


def difficult(sample: Sample, *reasons: str) -> Sample:
    return replace(sample, meta={"reasons": list(reasons)})


def test_a_sample_counts_for_each_of_its_reasons() -> None:
    samples = [
        difficult(asked("right", "32"), "time", "who"),
        difficult(asked("wrong", "Halifax"), "time"),
    ]
    run = evaluated(run_name("frontier"), samples, {"right": answer("32"), "wrong": answer("32")})

    found = by_reason([run])

    assert [(each.reason, each.samples) for each in found] == [("time", 2), ("who", 1)]
    assert [each.value for each in found] == pytest.approx([0.5, 1.0])


def test_a_dataset_without_reasons_has_no_figures() -> None:
    run = evaluated(run_name(), [asked("one", "32")], {"one": answer("32")})

    assert by_reason([run]) == []


@pytest.mark.parametrize("meta", [{}, {"reasons": "time"}, {"reasons": None}])
def test_reasons_are_a_list(meta: dict[str, object]) -> None:
    assert reasons_of(replace(asked("one", "32"), meta=meta)) == ()
