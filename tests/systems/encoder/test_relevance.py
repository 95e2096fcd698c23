"""The encoder's relevance for entities that something else found."""

from __future__ import annotations

from pii_bench.systems.encoder.relevance import EncoderScores
from pii_bench.systems.relevance.base import NEVER, Candidate


def test_only_what_the_dial_may_keep_has_a_score() -> None:
    text = "I am Ann Lee, born in 1982. Call me on +44 1632 960001, said Ann Lee."
    relevance = EncoderScores()

    scores = relevance.scores(
        "How old am I?",
        text,
        [
            Candidate("Ann Lee", "PER", 5),
            Candidate("1982", "DATETIME", 22),
            Candidate("+44 1632 960001", "CODE", 39),
        ],
    )

    assert scores[1] >= relevance.threshold
    assert (scores[0], scores[2]) == (NEVER, NEVER)


def test_the_weights_and_the_threshold_identify_it() -> None:
    relevance = EncoderScores()

    assert set(relevance.identity) == {"weights", "threshold"}
    assert relevance.identity["threshold"] == repr(relevance.threshold)
