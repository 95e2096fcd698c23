from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.analysis.means import (
    FACTORS,
    CurvePoint,
    Tradeoff,
    by_reason,
    curves,
    drops,
    headlines,
    published_headlines,
    tradeoffs,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import reasons_of
from pii_bench.ranking.external import published_rows
from pii_bench.ranking.rows import Row, Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import (
    FAILED,
    UNASKED,
    answer,
    asked,
    detected,
    evaluated,
    headline,
    run_name,
)
from tests.builders import make_sample

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample


SIZES = {factor.name: factor for factor in FACTORS}
SUBJECTS = ((("Ann Lee", "PER"), ("32", "DEM")),)


def published(dataset: str, f1: float) -> Row:
    figures = {"f1": f1, "rouge_l_f": f1}
    return Row(Source.PUBLISHED, "gpt-5", "naive", dataset, Task.MASKING, False, figures)


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
    run = evaluated(run_name(complete=False), [asked("a", "32")], {"a": UNASKED})

    assert headlines([run]) == []
    assert curves([run]) == []


def test_published_single_and_multi_are_joined_by_the_papers_samples() -> None:
    rows = [published("single", 1.0), published("multi", 0.0)]

    single, _, both = published_headlines(rows)

    assert (single.run.source, single.run.complete, single.value) == (Source.PUBLISHED, True, 1.0)
    assert (single.samples, single.interval_low, single.interval_high) == (None, None, None)
    assert both.run.dataset == "single+multi"
    assert both.value == pytest.approx(1214 / (1214 + 1228))
    # What is published of both together is taken as it is.
    assert published_headlines([*rows, published("single+multi", 0.7)])[2].value == 0.7


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
    (nothing,) = drops([headline(0.0, "single+multi"), headline(0.0, "hard")])
    assert (nothing.drop, nothing.relative) == (0.0, None)


@pytest.mark.parametrize(
    "other",
    [
        {"model": "fake/two"},
        {"strategy": "self-cot"},
        {"task": Task.MASKING},
        {"metric": "ent_f1"},
        {"dataset": "multi"},
        {"complete": False},
    ],
)
def test_another_system_task_or_metric_or_an_incomplete_run_has_no_drop(
    other: dict[str, Any],
) -> None:
    figures = [headline(0.75, "single+multi"), headline(0.5, **{"dataset": "hard", **other})]

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


def along(points: list[CurvePoint], factor: str) -> list[tuple[int, int | None, int, float]]:
    return [(p.low, p.high, p.samples, p.value) for p in points if p.factor == factor]


@pytest.mark.parametrize(
    ("factor", "size", "ends"),
    [
        # The paper's curves fall past 5 subjects, 33 entities and 3,000 characters.
        ("subjects", 5, (5, 5)),
        ("subjects", 10, (10, None)),
        ("entities", 0, (0, 6)),
        ("entities", 33, (17, 33)),
        ("entities", 56, (56, None)),
        ("characters", 501, (501, 750)),
        ("characters", 3000, (1501, 3000)),
        ("related", 7, (7, 7)),
        ("related", 8, (8, None)),
    ],
)
def test_the_bin_of_a_size(factor: str, size: int, ends: tuple[int, int | None]) -> None:
    assert SIZES[factor].bin_of(size) == ends


def test_a_point_is_the_mean_over_the_samples_of_its_bin() -> None:
    # One needed: found, and not found. Two needed: one of them found, 2 * 1 / (1 + 2).
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32", "Halifax")]
    answers = {"a": answer("32"), "b": answer("33"), "c": answer("32")}

    points = curves([evaluated(run_name(), samples, answers)])

    assert along(points, "related") == [(1, 1, 2, 0.5), (2, 2, 1, 2 / 3)]
    assert along(points, "subjects") == [(1, 1, 3, (1 + 0 + 2 / 3) / 3)]
    # An interval needs two descriptions.
    many, one = [point for point in points if point.factor == "related"]
    assert (many.interval_low, many.interval_high) == (0, 1)
    assert (one.interval_low, one.interval_high) == (None, None)


def test_failures_count_as_zero_and_what_was_never_asked_not_at_all() -> None:
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32", "Halifax")]
    answers = {"a": answer("32"), "b": FAILED, "c": UNASKED}

    points = curves([evaluated(run_name(complete=False), samples, answers)])

    assert along(points, "related") == [(1, 1, 2, 0.5)]  # no bin for two


def test_detection_has_both_figures_and_nothing_of_the_query() -> None:
    run = evaluated(
        run_name(task=Task.DETECTION, strategy="detection"),
        [make_sample("a")],
        {"a": detected({"Ann Lee": "ORG", "32": "DEM"})},
    )

    points = curves([run])

    assert {point.factor for point in points} == {"subjects", "entities", "characters"}
    assert {(point.metric, point.value) for point in points} == {("strict_f1", 0.5), ("ent_f1", 1)}


@pytest.mark.parametrize("factor", SIZES)
def test_the_bins_of_a_factor_make_up_the_whole(factor: str) -> None:
    samples = load_dataset("demo").samples
    answers = {s.id: answer(*(e.text for e in s.entities[: len(s.id) % 3])) for s in samples}
    run = evaluated(run_name("demo"), samples, answers)

    points = [p for p in curves([run]) if p.factor == factor]

    mean = run.evaluation.macro("exact")
    assert mean is not None
    assert sum(p.samples for p in points) == len(samples)
    assert sum(p.samples * p.value for p in points) / len(samples) == pytest.approx(mean.f1)


def difficult(sample: Sample, *reasons: str) -> Sample:
    return replace(sample, meta={"reasons": list(reasons)})


def test_a_sample_counts_for_each_of_its_reasons() -> None:
    samples = [
        difficult(asked("right", "32"), "time", "who"),
        difficult(asked("wrong", "Halifax"), "time"),
        asked("easy", "32"),
    ]
    answers = {sample.id: answer("32") for sample in samples}
    run = evaluated(run_name("frontier"), samples, answers)

    found = by_reason([run])

    assert [(each.reason, each.samples) for each in found] == [("time", 2), ("who", 1)]
    assert [each.value for each in found] == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("meta", [{}, {"reasons": "time"}, {"reasons": None}])
def test_reasons_are_a_list(meta: dict[str, object]) -> None:
    assert reasons_of(replace(asked("one", "32"), meta=meta)) == ()
