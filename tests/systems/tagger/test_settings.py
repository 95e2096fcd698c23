from __future__ import annotations

import pytest

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.tagger.settings import SpanScore, span_score
from pii_bench.taxonomy import PiiType

ANN = DetectedSpan(0, 3, PiiType.PER)
OSLO = DetectedSpan(9, 13, PiiType.LOC)


def test_counts_are_summed_over_the_texts() -> None:
    # 2 of 3 predicted spans are right, 2 of 4 gold ones are found.
    score = span_score(
        [([ANN, OSLO], [ANN]), ([ANN], [ANN, OSLO, DetectedSpan(20, 22, OSLO.type)])]
    )

    assert (score.precision, score.recall, score.f1) == pytest.approx((2 / 3, 2 / 4, 4 / 7))


@pytest.mark.parametrize(
    "wrong", [DetectedSpan(0, 3, PiiType.ORG), DetectedSpan(0, 4, PiiType.PER)]
)
def test_boundaries_and_type_must_be_right(wrong: DetectedSpan) -> None:
    assert span_score([([wrong], [ANN])]) == SpanScore(0, 0, 0)


def test_nothing_in_no_texts_is_0() -> None:
    assert span_score([]) == span_score([([], [])]) == SpanScore(0, 0, 0)
