from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.diagnosis.curve import (
    POINTS,
    ScoredCandidates,
    StoredCandidates,
    curve,
    find_scores,
)
from pii_bench.analysis.diagnosis.exposure import judge_answer
from pii_bench.errors import MissingExtraError
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.base import Candidate, choose, gold_candidates
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.systems.relevance.keyword import KeywordRelevance
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import EVERYONE, couple
from tests.analysis.diagnosis.stored import query_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from pii_bench.datasets.sample import Sample


SAMPLE = couple()
CHOSEN = {"s1": ("Oslo",)}
DETECTED = {"s1": EVERYONE}


@dataclass(frozen=True, slots=True)
class FixedScores:
    """The same scores for every sample (`GivesScores`)."""

    given: Mapping[str, float]
    threshold: float = 0.5

    def scores(self, sample: Sample) -> Mapping[str, float]:
        del sample
        return self.given


# Acme Tools and Oslo are needed; the names have no chance.
SCORES = {
    "Ann Lee": -math.inf,
    "Bo Ray": -math.inf,
    "Acme Tools": 0.9,
    "Initech": 0.7,
    "Oslo": 0.4,
    "Lima": 0.4,
    "32": 0.1,
    "40": 0.1,
}


def test_it_goes_from_keeping_nothing_to_keeping_all_that_has_a_chance() -> None:
    points = curve(FixedScores(SCORES), [couple()])

    assert [
        (p.threshold, p.own, p.exposure.plain_leak, p.exposure.over_masking) for p in points
    ] == [
        (math.inf, False, 0, 1),
        (0.9, False, 0, 1 / 2),
        (0.7, False, 1 / 6, 1 / 2),
        (0.5, True, 1 / 6, 1 / 2),
        (0.4, False, 2 / 6, 0),
        (0.1, False, 4 / 6, 0),
    ]


def test_what_is_not_detected_leaks_at_every_threshold() -> None:
    scores = {text: score for text, score in SCORES.items() if text != "Bo Ray"}

    points = curve(FixedScores(scores), [couple()])

    assert [p.exposure.leaked[2] for p in points] == [1] * 6


def test_what_has_no_chance_is_masked_at_every_threshold() -> None:
    points = curve(FixedScores(SCORES, -math.inf), [couple()])

    assert points[-1].own
    assert [p.exposure.leaked[2] for p in points] == [0] * 6


def test_samples_without_a_query_do_not_count() -> None:
    samples = [couple(), couple((), sample_id="s2", query=None)]

    assert curve(FixedScores(SCORES), samples) == curve(FixedScores(SCORES), samples[:1])


def test_without_scores_it_masks_nothing_at_its_two_thresholds() -> None:
    points = curve(FixedScores({}), [couple()])

    assert [(p.threshold, p.own) for p in points] == [(math.inf, False), (0.5, True)]
    assert {p.exposure.plain_leak for p in points} == {1}


def test_it_has_no_more_points_than_a_figure_needs() -> None:
    scores = {f"text {number}": float(number) for number in range(3 * POINTS)}

    points = curve(FixedScores(scores), [couple()])

    thresholds = [point.threshold for point in points]
    assert len(points) == POINTS + 2
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[:2] == [math.inf, 3 * POINTS - 1]
    assert thresholds[-2:] == [0.5, 0]


@given(st.dictionaries(st.sampled_from(sorted(SCORES)), st.floats(0, 1)), st.floats(0, 1))
def test_a_lower_threshold_never_leaks_less_nor_hides_more(
    scores: dict[str, float], threshold: float
) -> None:
    points = curve(FixedScores(scores, threshold), [couple()])

    leaks = [point.exposure.leak or 0 for point in points]
    hidden = [point.exposure.over_masking or 0 for point in points]
    assert leaks == sorted(leaks)
    assert hidden == sorted(hidden, reverse=True)
    assert sum(point.own for point in points) == 1


@dataclass(frozen=True, slots=True)
class ByLength:
    """Scores a candidate by the length of its text, or of its type where it has two."""

    threshold: float = 4
    name: str = "by length"
    identity: Mapping[str, str] = field(default_factory=dict)

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        assert query
        assert description
        return [len(each.text) if each.type != "DATETIME" else 8.0 for each in candidates]


def test_candidates_are_scored_by_text_the_best_of_its_types_counts() -> None:
    candidates = [
        Candidate("32", "DATETIME", 9),
        Candidate("Oslo", "LOC", 35),
        Candidate("32", "DEM", 9),
    ]
    system = ScoredCandidates(ByLength(), lambda _: candidates)

    assert system.scores(couple()) == {"32": 8, "Oslo": 4}
    assert system.threshold == 4


def test_at_its_own_threshold_it_is_what_the_system_answers() -> None:
    sample = couple(query="Does my employer pay enough for a home in this city?")
    relevance = KeywordRelevance(0.2)
    candidates = gold_candidates(sample)
    chosen = choose(relevance, sample.query or "", sample.description, candidates)

    points = curve(ScoredCandidates(relevance, gold_candidates), [sample])

    (own,) = (point for point in points if point.own)
    assert 0 < len(chosen) < len(candidates)
    assert own.exposure == judge_answer(sample, Prediction(Status.OK, EVERYONE, tuple(chosen)))


def test_a_relevance_system_gives_the_scores_of_its_run_again() -> None:
    run = query_run([SAMPLE], CHOSEN, DETECTED)

    ((found, system),), left_out = find_scores([run])

    relevance = build_relevance("keyword")
    candidates = gold_candidates(SAMPLE)
    assert (found, left_out) == (run, [])
    assert system.threshold == relevance.threshold
    assert [*system.scores(SAMPLE).values()] == relevance.scores(
        SAMPLE.query or "", SAMPLE.description, candidates
    )


def test_a_detectors_entities_are_those_that_it_answered() -> None:
    detected = {"s1": ((("Lima", "LOC"), ("Oslo", "LOC")), (("Bergen", "LOC"), ("7", "DEM")))}
    run = query_run([SAMPLE], CHOSEN, detected, model="numbers")

    ((_, system),), _ = find_scores([run])

    assert system.scores(SAMPLE).keys() == {"Lima", "Oslo", "Bergen", "7"}


def test_a_stored_text_stands_where_it_first_does() -> None:
    answer = Prediction(
        Status.OK, subjects=((("Lima", "LOC"), ("Acme Tools", "ORG"), ("x", "PER")),)
    )

    candidates = StoredCandidates({"s1": answer, "s2": Prediction(Status.EMPTY)})

    assert candidates(SAMPLE) == [
        Candidate("x", "PER", 0),
        Candidate("Acme Tools", "ORG", SAMPLE.description.index("Acme")),
        Candidate("Lima", "LOC", SAMPLE.description.index("Lima")),
    ]
    assert candidates(couple(sample_id="s2")) == []
    assert candidates(couple(sample_id="s3")) == []


def test_what_has_no_threshold_or_no_detection_has_no_scores() -> None:
    runs = [
        query_run([SAMPLE], CHOSEN, DETECTED, relevance="all"),
        query_run([SAMPLE], CHOSEN, DETECTED, prompt="naive"),
        query_run([SAMPLE], CHOSEN),
    ]

    assert find_scores(runs) == ([], [])


def test_a_system_that_has_changed_is_left_out() -> None:
    run = query_run([SAMPLE], CHOSEN, DETECTED, prompt_sha256="f" * 64)

    _, (reason,) = find_scores([run])

    assert reason == (
        "the curve of gold, keyword on tiny.jsonl: its threshold or weights have changed since; "
        "run again"
    )


def test_a_system_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = query_run([SAMPLE], CHOSEN, DETECTED)

    def refuse(_: str) -> NoReturn:
        raise MissingExtraError("keyword", "make it")

    monkeypatch.setattr("pii_bench.analysis.diagnosis.curve.build_relevance", refuse)

    _, (reason,) = find_scores([run])

    assert reason == (
        "the curve of gold, keyword on tiny.jsonl: keyword is not installed: run `make it`"
    )
