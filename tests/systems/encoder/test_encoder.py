"""The encoder that ships: as relevance, and on five kinds of text that people mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

import pii_bench
from pii_bench.datasets.sample import Sample
from pii_bench.files import sha256_of_value
from pii_bench.systems import BALANCED
from pii_bench.systems.encoder import EncoderScorer, encoder_systems
from pii_bench.systems.encoder.reader import SHIPPED
from pii_bench.systems.relevance.base import NEVER, Candidate
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES: Final = {
    "tenant": "Is my landlord allowed to leave the wall damp when a child of that age was ill?",
    "cv": "Which of my jobs should come first if I apply to a school workshop?",
    "medical": "Is the antibiotic safe together with what I take for my joints?",
    "ticket": "Does the address of that login belong to a hosting company, and how do I block it?",
    "family": "What care allowance could my father get with his illness and his income?",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_letter_masked(name: str, assert_golden: Callable[[str, str], None]) -> None:
    letter = (REPOSITORY / "tests" / "letters" / f"{name}.txt").read_text(encoding="utf-8")

    masked = pii_bench.mask(letter, QUERIES[name], "encoder")

    assert_golden(f"letters/{name}.txt", f"{QUERIES[name]}\n\n{masked.text}")


def test_only_entities_that_may_be_kept_have_a_score() -> None:
    text = "I am Ann Lee, born in 1982. Call me on +44 1632 960001, said Ann Lee."
    relevance = EncoderScorer()
    candidates = [
        Candidate("Ann Lee", "PER", 5),
        Candidate("1982", "DATETIME", 22),
        Candidate("+44 1632 960001", "CODE", 39),
        # What can be read nowhere is not needed.
        Candidate("tall", "DEM", 0),
    ]

    name, year, *others = relevance.scores("How old am I?", text, candidates)

    assert year >= relevance.threshold
    assert {name, *others} == {NEVER}
    assert relevance.identity.keys() == {"weights", "threshold"}
    assert relevance.identity["threshold"] == repr(relevance.threshold)


def test_pictures_alone_change_the_hash_of_a_request() -> None:
    detection, related = encoder_systems(SHIPPED, BALANCED)
    weights, threshold = (related.card.settings[name] for name in ("weights", "threshold"))
    sample = Sample("s1", "→ Ann Lee is 32.", "Old?", (), ())
    parts = [sample.description, sample.query]

    assert detection.request_hash(sample) == sha256_of_value([weights, parts[0]])
    assert related.request_hash(sample) == sha256_of_value([weights, threshold, *parts])

    sample = Sample("s1", "ℹ️Ann Lee is 32.", "Old?👋", (), ())
    parts = [sample.description, sample.query]
    assert detection.request_hash(sample) == sha256_of_value([weights, parts[0], "ℹ️"])
    assert related.request_hash(sample) == sha256_of_value([weights, threshold, *parts, "ℹ️", "👋"])
