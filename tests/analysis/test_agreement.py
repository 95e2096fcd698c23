from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.agreement import (
    Agreement,
    Consistency,
    agreements,
    consistencies,
    rank_correlation,
    transfers,
)
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import headline

if TYPE_CHECKING:
    from pii_bench.analysis.means import Headline


def systems(dataset: str, *values: float, source: Source = Source.RUN) -> list[Headline]:
    return [
        headline(value, dataset, model=f"fake/{number}", source=source)
        for number, value in enumerate(values)
    ]


def only(found: list[Agreement]) -> Agreement:
    (agreement,) = found
    return agreement


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [
        ([0.1, 0.2, 0.3], [0.5, 0.6, 0.9], 1.0),
        ([0.1, 0.2, 0.3], [0.9, 0.6, 0.5], -1.0),
        # Squared differences of ranks 1 + 1 + 0 + 0: 1 - 6 * 2 / (4 * 15).
        ([1, 2, 3, 4], [2, 1, 3, 4], 0.8),
        ([0.1, 0.2], [0.5, 0.6], None),
        ([0.1, 0.2, 0.3], [0.5, 0.5, 0.5], None),
        ([], [], None),
    ],
)
def test_rank_correlation(a: list[float], b: list[float], rho: float | None) -> None:
    assert rank_correlation(a, b) == (None if rho is None else pytest.approx(rho))


def test_two_datasets_agree_by_rho_and_by_the_mean_of_pcs() -> None:
    # The last system has no figure on multi and so does not count.
    figures = [*systems("single", 0.8, 0.5, 0.4, 0.9), *systems("multi", 0.4, 0.5, 0.2)]

    found = only(agreements(consistencies(figures)))

    # PCS 1 - 0.4 / 0.8, 1 and 1 - 0.2 / 0.4; ranks 3 2 1 and 2 3 1: 1 - 6 * 2 / (3 * 8).
    assert (found.dataset_a, found.dataset_b, found.systems) == ("single", "multi", 3)
    assert found.pcs == pytest.approx(2 / 3)
    assert found.rho == pytest.approx(0.5)
    assert (found.source_a, found.source_b) == ("run", "run")


def test_pcs_of_nothing_and_nothing_is_none_and_not_in_the_mean() -> None:
    nothing, half = consistencies([*systems("single", 0.0, 0.5), *systems("multi", 0.0, 0.5)])

    assert (nothing.pcs, half.pcs) == (None, 1.0)
    assert only(agreements([nothing, half])).pcs == 1.0
    assert only(agreements([nothing])).pcs is None


def test_systems_with_gold_incomplete_runs_and_people_are_left_out() -> None:
    figures = [
        headline(value, dataset, model=model, oracle=oracle, complete=complete, source=source)
        for dataset, value in (("single", 0.5), ("multi", 0.6))
        for model, oracle, complete, source in (
            ("fake/oracle", True, True, Source.RUN),
            ("fake/part", False, False, Source.RUN),
            ("human", False, True, Source.PUBLISHED),
        )
    ]

    assert consistencies(figures) == []


def test_a_run_stands_before_the_reference_of_its_system() -> None:
    figures = [
        *systems("single", 0.1, 0.2, 0.3, source=Source.REFERENCE),
        *systems("multi", 0.1, 0.2, 0.3, source=Source.REFERENCE),
        *systems("single", 0.9),
    ]

    found = only(agreements(consistencies(figures)))

    assert (found.source_a, found.source_b, found.systems) == ("run+reference", "reference", 3)
    assert found.rho == pytest.approx(-0.5)  # 0.9, 0.2, 0.3 against 0.1, 0.2, 0.3


def test_sets_taken_as_one_are_not_compared_with_their_parts() -> None:
    names = ("single", "multi", "single+multi", "hard")
    figures = [headline(0.5, name) for name in reversed(names)]

    assert [(each.dataset_a, each.dataset_b) for each in consistencies(figures)] == [
        ("single", "multi"),
        ("single", "hard"),
        ("multi", "hard"),
        ("single+multi", "hard"),
    ]


def test_ours_are_compared_with_the_published_by_alias_strategy_and_set() -> None:
    ours = [
        headline(0.6, "single", model="openai/gpt-4o-2024-08-06"),
        headline(0.6, "single", model="openai/gpt-4o-2024-08-06", strategy="self-cot"),
        headline(0.6, "single", model="openai/gpt-6-luna"),
    ]
    theirs = [
        headline(value, name, model="gpt-4o-2024-08-06", source=Source.PUBLISHED)
        for name, value in (("single", 0.75), ("multi", 0.75))
    ]

    found = [e for e in consistencies([*ours, *theirs]) if e.source_a is not Source.PUBLISHED]

    assert found == [
        Consistency(
            task=Task.QUERY_RELATED,
            metric="f1",
            model="openai/gpt-4o-2024-08-06",
            strategy="naive",
            source_a=Source.RUN,
            dataset_a="single",
            source_b=Source.PUBLISHED,
            dataset_b="single",
            value_a=0.6,
            value_b=0.75,
        )
    ]
    assert found[0].pcs == pytest.approx(0.8)


def test_tasks_metrics_and_sources_are_never_mixed() -> None:
    figures = [
        headline(0.5, dataset, task=task, metric=metric, source=source)
        for dataset in ("single", "multi")
        for task, metric in (
            (Task.DETECTION, "strict_f1"),
            (Task.DETECTION, "ent_f1"),
            (Task.MASKING, "f1"),
        )
        for source in (Source.RUN, Source.PUBLISHED)
    ]

    found = agreements(consistencies(figures))

    assert len({(a.task, a.metric, a.source_a, a.source_b) for a in found}) == len(found) == 6


@given(st.floats(0, 1), st.floats(0, 1))
def test_pcs_is_from_0_to_1_and_the_same_both_ways(a: float, b: float) -> None:
    def pcs(first: float, second: float) -> float | None:
        (found,) = consistencies([headline(first, "single"), headline(second, "multi")])
        return found.pcs

    found = pcs(a, b)
    assert found == pcs(b, a)
    assert (found is None) == (a == b == 0)
    assert found is None or 0 <= found <= 1


def test_our_sets_are_compared_with_those_of_others_over_all_that_read_the_query() -> None:
    figures = [
        *systems("single", 0.8, 0.5, 0.4),
        *systems("capid-12345678", 0.4, 0.5, 0.2),
        # Neither pairs of our own sets, nor systems that do not read the query.
        *systems("multi", 0.8),
        *systems("single+multi", 0.8, 0.5, 0.4),
        headline(0.9, "single", model="gold", strategy="all"),
        headline(0.1, "capid-12345678", model="gold", strategy="all"),
    ]

    with_single, with_multi = sorted(transfers(figures), key=lambda each: -each.systems)

    assert (with_single.dataset_a, with_single.dataset_b) == ("single", "capid-12345678")
    assert with_single.systems == 3
    assert with_single.rho == pytest.approx(0.5)
    assert (with_multi.dataset_a, with_multi.systems, with_multi.rho) == ("multi", 1, None)
