from __future__ import annotations

import math

import pytest

from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.systems.relevance.base import Candidate, choose, gold_candidates, relative_scores
from pii_bench.systems.relevance.baselines import Constant
from tests.datasets.check.samples import build

ANN = Candidate("Ann Lee", "PER", 0)
AGE = Candidate("32", "DEM", 11)
CITY = Candidate("Leeds", "LOC", 17)


def test_gold_candidates_stand_in_the_order_of_the_text() -> None:
    sample = build(
        "Ann Lee is 32. Bo Roe lives in Leeds.",
        {"32": "Age", "Ann Lee": "Full Name"},
        {"Leeds": "City/Region", "Bo Roe": "Full Name"},
    )

    assert gold_candidates(sample) == [
        Candidate("Ann Lee", "PER", 0),
        Candidate("32", "DEM", 11),
        Candidate("Bo Roe", "PER", 15),
        Candidate("Leeds", "LOC", 31),
    ]


def test_what_two_subjects_share_is_one_candidate() -> None:
    sample = build("Both live in Leeds.", {"Leeds": "City/Region"}, {"Leeds": "City/Region"})

    assert gold_candidates(sample) == [Candidate("Leeds", "LOC", 13)]


def test_a_text_of_two_types_is_two_candidates() -> None:
    sample = build("At 32, she waited 32.", {"32": "Age"}, {"32": "Duration"})

    assert [candidate.type for candidate in gold_candidates(sample)] == ["DATETIME", "DEM"]


@pytest.mark.parametrize(("text", "start"), [("Leeds", 8), ("York", 0)], ids=["there", "absent"])
def test_an_entity_without_spans_is_sought(text: str, start: int) -> None:
    sample = Sample("s1", "Born in Leeds.", None, (Subject("A", (Entity(text, "LOC"),)),), ())

    assert gold_candidates(sample) == [Candidate(text, "LOC", start)]


def test_those_at_the_threshold_are_chosen_and_those_below_are_not() -> None:
    at, below = Constant("at", 0.5, threshold=0.5), Constant("below", 0.4, threshold=0.5)

    assert choose(at, "", "", [CITY, AGE, CITY]) == ["Leeds", "32"]
    assert choose(below, "", "", [CITY, AGE]) == []


def test_scores_are_relative_to_the_mean_of_all_but_persons() -> None:
    scores = relative_scores([AGE, ANN, CITY], lambda others: [float(c.start) for c in others])

    # The mean of 11 and 17 is 14.
    assert scores == [-3.0, -math.inf, 3.0]


def test_persons_alone_need_no_scores() -> None:
    def refuse(_: object) -> list[float]:
        raise AssertionError

    assert relative_scores([ANN], refuse) == [-math.inf]
    assert relative_scores([], refuse) == []
