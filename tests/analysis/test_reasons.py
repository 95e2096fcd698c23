from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.reasons import by_reason
from pii_bench.datasets.sample import reasons_of
from tests.analysis.evaluated import answer, asked, evaluated, run_name

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample


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
