from __future__ import annotations

import pytest

from pii_bench.analysis.curves import FACTORS, CurvePoint, curves
from pii_bench.datasets.catalog import load_dataset
from pii_bench.tasks import Task
from tests.analysis.evaluated import (
    FAILED,
    UNASKED,
    answer,
    asked,
    detected,
    evaluated,
    run_name,
)
from tests.builders import make_sample


def along(points: list[CurvePoint], factor: str) -> list[tuple[int, int | None, int, float]]:
    return [(p.low, p.high, p.samples, p.value) for p in points if p.factor == factor]


@pytest.mark.parametrize(
    ("factor", "size", "ends"),
    [
        ("subjects", 1, (1, 1)),
        ("subjects", 9, (9, 9)),
        ("subjects", 10, (10, None)),
        ("subjects", 25, (10, None)),
        ("entities", 0, (0, 6)),
        ("entities", 6, (0, 6)),
        ("entities", 7, (7, 9)),
        ("entities", 56, (56, None)),
        ("characters", 501, (501, 750)),
        ("related", 0, (0, 0)),
        ("related", 7, (7, 7)),
        ("related", 8, (8, None)),
    ],
)
def test_the_bin_of_a_size(factor: str, size: int, ends: tuple[int, int | None]) -> None:
    assert FACTORS[factor].bin_of(size) == ends


@pytest.mark.parametrize(
    ("factor", "cut"), [("subjects", 5), ("entities", 33), ("characters", 3000)]
)
def test_where_the_papers_curves_fall_one_bin_ends_and_another_begins(
    factor: str, cut: int
) -> None:
    assert FACTORS[factor].bin_of(cut)[1] == cut
    assert FACTORS[factor].bin_of(cut + 1)[0] == cut + 1


def test_a_point_is_the_mean_over_the_samples_of_its_bin() -> None:
    # One needed: found, and not found. Two needed: one of them found, 2 * 1 / (1 + 2).
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32", "Halifax")]
    answers = {"a": answer("32"), "b": answer("33"), "c": answer("32")}

    points = curves([evaluated(run_name(), samples, answers)])

    assert along(points, "related") == [(1, 1, 2, 0.5), (2, 2, 1, 2 / 3)]
    assert along(points, "subjects") == [(1, 1, 3, (1 + 0 + 2 / 3) / 3)]


def test_failures_count_as_zero_and_what_was_never_asked_not_at_all() -> None:
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32", "Halifax")]
    answers = {"a": answer("32"), "b": FAILED, "c": UNASKED}

    points = curves([evaluated(run_name(complete=False), samples, answers)])

    assert along(points, "related") == [(1, 1, 2, 0.5)]  # no bin for two


def test_without_any_scored_sample_there_is_no_point() -> None:
    assert curves([evaluated(run_name(complete=False), [asked("a", "32")], {"a": UNASKED})]) == []


def test_detection_has_both_figures_and_nothing_of_the_query() -> None:
    run = evaluated(
        run_name(task=Task.DETECTION, strategy="detection"),
        [make_sample("a")],
        {"a": detected({"Ann Lee": "ORG", "32": "DEM"})},
    )

    points = curves([run])

    assert {point.factor for point in points} == {"subjects", "entities", "characters"}
    assert {(point.metric, point.value) for point in points} == {("strict_f1", 0.5), ("ent_f1", 1)}


def test_who_names_no_subjects_has_ent_f1_alone() -> None:
    run = evaluated(
        run_name(task=Task.DETECTION, strategy="detection"),
        [make_sample("a")],
        {"a": detected({"Ann Lee": "PER"})},
        names_subjects=False,
    )

    assert {point.metric for point in curves([run])} == {"ent_f1"}


def test_an_interval_holds_its_point_and_needs_two_descriptions() -> None:
    samples = [asked(f"s{number}", "32") for number in range(6)]
    answers = {
        sample.id: answer("32" if place % 2 else "33") for place, sample in enumerate(samples)
    }
    alone = evaluated(run_name(model="fake/two"), samples[:1], {"s0": answer("32")})

    (many,) = [
        p for p in curves([evaluated(run_name(), samples, answers)]) if p.factor == "related"
    ]
    (one,) = [p for p in curves([alone]) if p.factor == "related"]

    assert many.interval_low is not None
    assert many.interval_high is not None
    assert 0 <= many.interval_low < many.value == 0.5 < many.interval_high <= 1
    assert (one.interval_low, one.interval_high) == (None, None)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_bins_of_a_factor_make_up_the_whole(factor: str) -> None:
    samples = load_dataset("demo").samples
    answers = {s.id: answer(*(e.text for e in s.entities[: len(s.id) % 3])) for s in samples}
    run = evaluated(run_name("demo"), samples, answers)

    points = [p for p in curves([run]) if p.factor == factor]

    mean = run.evaluation.macro("exact")
    assert mean is not None
    assert sum(p.samples for p in points) == len(samples)
    assert sum(p.samples * p.value for p in points) / len(samples) == pytest.approx(mean.f1)
