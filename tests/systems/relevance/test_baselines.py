from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.relevance.base import Candidate, choose
from pii_bench.systems.relevance.baselines import RandomChoice
from pii_bench.systems.relevance.catalog import build_relevance

ANN = Candidate("Ann Lee", "PER", 0)
AGE = Candidate("32", "DEM", 11)
MANY = [Candidate(str(number), "CODE", number) for number in range(1000)]


def test_all_chooses_names_too() -> None:
    assert choose(build_relevance("all"), "Am I old?", "Ann Lee is 32.", [ANN, AGE]) == [
        "Ann Lee",
        "32",
    ]


def test_none_chooses_nothing() -> None:
    assert choose(build_relevance("none"), "Am I old?", "Ann Lee is 32.", [ANN, AGE]) == []


def test_random_chooses_at_its_rate_but_no_name() -> None:
    chosen = choose(RandomChoice(threshold=0.75), "Why?", "", [ANN, *MANY])

    # A quarter of 1,000, within three standard deviations of 14.
    assert 208 < len(chosen) < 292
    assert "Ann Lee" not in chosen


@given(st.text(), st.text(), st.integers(0, 999))
def test_a_draw_depends_on_query_and_candidate_alone(
    query: str, description: str, place: int
) -> None:
    system = RandomChoice(threshold=0.5)

    alone = system.scores(query, description, [MANY[place]])

    assert alone == [system.scores(query, "", MANY)[place]]
    assert alone != system.scores(query + "?", description, [MANY[place]])


def test_a_random_choice_is_named_by_seed_and_threshold() -> None:
    assert RandomChoice(threshold=0.75).identity == {"seed": "0", "threshold": "0.75"}
