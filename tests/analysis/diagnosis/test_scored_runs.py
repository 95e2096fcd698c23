from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pii_bench.analysis.diagnosis import scored_runs
from pii_bench.analysis.diagnosis.scored_runs import StoredCandidates, find_scores
from pii_bench.errors import MissingExtraError
from pii_bench.runs.predictions.prediction import Prediction
from pii_bench.systems.relevance.base import Candidate, gold_candidates
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import EVERYONE, couple
from tests.analysis.diagnosis.stored import query_run

if TYPE_CHECKING:
    import pytest

SAMPLE = couple()
CHOSEN = {"s1": ("Oslo",)}
DETECTED = {"s1": EVERYONE}


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

    monkeypatch.setattr(scored_runs, "build_relevance", refuse)

    _, (reason,) = find_scores([run])

    assert reason == (
        "the curve of gold, keyword on tiny.jsonl: keyword is not installed: run `make it`"
    )
