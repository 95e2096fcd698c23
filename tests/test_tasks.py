from __future__ import annotations

from pii_bench.datasets.sample import applicable
from pii_bench.tasks import Task
from tests.builders import make_sample


def test_a_sample_without_query_is_only_for_detection() -> None:
    samples = [make_sample("s1"), make_sample("s2", query=None, related=[])]

    assert [sample.id for sample in applicable(Task.DETECTION, samples)] == ["s1", "s2"]
    assert [sample.id for sample in applicable(Task.QUERY_RELATED, samples)] == ["s1"]
    assert [sample.id for sample in applicable(Task.MASKING, samples)] == ["s1"]
