from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.diagnosis.exposure import (
    POINTS,
    TIERS,
    Exposure,
    ScoredCandidates,
    curve,
    find_scores,
    judge,
    judge_answer,
    stored_candidates,
)
from pii_bench.errors import MissingExtraError
from pii_bench.masking.masked import make_plan
from pii_bench.systems.predictions import Prediction
from pii_bench.systems.relevance.base import Candidate, choose, gold_candidates
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.systems.relevance.keyword import KeywordRelevance
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import DESCRIPTION, EVERYONE, PEOPLE, couple, query_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEEDED = ("Acme Tools", "Oslo")


def tiers(one: int, two: int, three: int) -> Counter[int]:
    return Counter({1: one, 2: two, 3: three})


# Unneeded: two names of tier 3; two ages, an employer and a city of tier 2.
# Other than PII: ", , is with in ." twice and "sells 7 saws.", 11 characters each.
PERFECT = Exposure(unneeded=tiers(0, 4, 2), needed=2, other_characters=33)


def spans_of(*texts: str) -> list[tuple[int, int]]:
    return make_plan(DESCRIPTION, [(text, "PER") for text in texts], ()).spans


@pytest.mark.parametrize(
    ("masked", "changes"),
    [
        (["Ann Lee", "Bo Ray", "32"], {}),
        (["Ann Lee", "32"], {"leaked": tiers(0, 0, 1)}),
        # A part that can be read is a leak.
        (["Ann", "Bo Ray", "32"], {"leaked": tiers(0, 0, 1)}),
        (["Ann", "Lee", "Bo Ray", "32"], {}),
        (
            ["Ann Lee", "Bo Ray", "32", "Oslo", "saws"],
            {"needed_masked": 1, "other_characters_masked": 4},
        ),
        # A wider mask hides what is in it: two commas and "is" are no PII.
        (["Ann Lee, 32, is", "Bo Ray"], {"other_characters_masked": 4}),
    ],
)
def test_what_a_masking_leaks_and_hides(masked: list[str], changes: dict[str, Any]) -> None:
    exposure = judge(couple(), spans_of(*masked, "40", "Initech", "Lima"))

    assert exposure == replace(PERFECT, **changes)


def test_rates_of_an_exposure() -> None:
    exposure = replace(PERFECT, leaked=tiers(0, 0, 1), needed_masked=1, other_characters_masked=4)

    assert exposure.leak == 3 / 14
    assert exposure.plain_leak == 1 / 6
    assert [exposure.leak_of(tier) for tier in TIERS] == [None, 0, 1 / 2]
    assert exposure.over_masking == 1 / 2
    assert exposure.text_over_masking == 4 / 33


def test_a_needed_text_can_be_read_as_long_as_one_occurrence_is_whole() -> None:
    first, second = DESCRIPTION.index("Acme"), DESCRIPTION.rindex("Acme")

    assert judge(couple(), [(first, first + 4)]).needed_masked == 0
    assert judge(couple(), [(first, first + 4), (second, second + 1)]).needed_masked == 1


@pytest.mark.parametrize(
    ("hidden", "repeated", "leaked"),
    [
        (spans_of("Acme Tools"), (1, 0, 0), 4),
        # A detector of spans may miss one.
        (spans_of("Acme Tools")[:1], (1, 1, 0), 5),
        ([], (1, 0, 1), 5),
    ],
)
def test_a_repeated_text_is_masked_at_all_its_places_some_or_none(
    hidden: list[tuple[int, int]], repeated: tuple[int, ...], leaked: int
) -> None:
    """Acme Tools stands twice; here it is not needed."""
    exposure = judge(couple((("A", "Oslo"),)), hidden)

    counts = exposure.repeated, exposure.repeated_in_part, exposure.repeated_open
    assert (counts, exposure.leaked) == (repeated, tiers(0, leaked, 2))


def test_one_text_of_two_people_is_needed_if_either_needs_it() -> None:
    people = {"A": PEOPLE["A"], "B": [("Oslo", "LOC", "City/Region")]}

    exposure = judge(couple(people=people), [])

    assert (exposure.needed, exposure.unneeded) == (2, tiers(0, 1, 1))


def test_a_text_of_two_tiers_has_the_higher() -> None:
    people = {"A": [("7", "DEM", "Age"), ("7", "DATETIME", "Duration")]}

    assert judge(couple((), people=people), []).leaked == tiers(0, 1, 0)


def test_without_an_answer_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match=r"sample 's1' has no answer \(refused\)"):
        judge_answer(couple(), Prediction(Status.REFUSED))


def test_rates_of_nothing_are_undefined() -> None:
    nothing = Exposure()

    assert nothing.leak is nothing.plain_leak is nothing.over_masking is None
    assert nothing.text_over_masking is None


SPANS = st.lists(
    st.tuples(st.integers(0, len(DESCRIPTION)), st.integers(0, len(DESCRIPTION))).map(
        lambda ends: (min(ends), max(ends))
    )
)


@given(SPANS, SPANS)
def test_more_masking_never_leaks_more_nor_hides_less(
    spans: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    less, larger = judge(couple(), spans), judge(couple(), [*spans, *more])

    assert less.leaked >= larger.leaked
    assert less.needed_masked <= larger.needed_masked
    assert less.other_characters_masked <= larger.other_characters_masked
    everything = judge(couple(), [(0, len(DESCRIPTION))])
    assert everything == replace(PERFECT, needed_masked=2, other_characters_masked=33)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Scores every candidate by its text and type (`Relevance`)."""

    given: Mapping[tuple[str, str], float]
    threshold: float
    name: str = "fixed"
    identity: Mapping[str, str] = field(default_factory=dict)

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        assert query
        assert description
        return [self.given[each.text, each.type] for each in candidates]


def fixed(scores: Mapping[str, float], threshold: float = 0.5) -> ScoredCandidates:
    """The same candidates with the same scores for every sample."""
    relevance = Fixed({(text, ""): score for text, score in scores.items()}, threshold)
    return ScoredCandidates(relevance, lambda _: [Candidate(text, "", 0) for text in scores])


SAMPLE = couple()
CHOSEN = {"s1": ("Oslo",)}
DETECTED = {"s1": EVERYONE}

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
    points = curve(fixed(SCORES), [couple()])

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


@pytest.mark.parametrize(
    ("scores", "own", "leaked"),
    [
        # What is not detected leaks at every threshold,
        ({text: score for text, score in SCORES.items() if text != "Bo Ray"}, 0.5, 1),
        # what has no chance is masked at every threshold.
        (SCORES, -math.inf, 0),
    ],
)
def test_what_no_threshold_changes(scores: dict[str, float], own: float, leaked: int) -> None:
    points = curve(fixed(scores, own), [couple()])

    assert [p.exposure.leaked[3] for p in points] == [leaked] * 6
    assert [p.threshold for p in points if p.own] == [own]


def test_samples_without_a_query_do_not_count() -> None:
    samples = [couple(), couple((), sample_id="s2", query=None)]

    assert curve(fixed(SCORES), samples) == curve(fixed(SCORES), samples[:1])


def test_without_scores_it_masks_nothing_at_its_two_thresholds() -> None:
    points = curve(fixed({}), [couple()])

    assert [(p.threshold, p.own, p.exposure.plain_leak) for p in points] == [
        (math.inf, False, 1),
        (0.5, True, 1),
    ]


def test_it_has_no_more_points_than_a_figure_needs() -> None:
    scores = {f"text {number}": float(number) for number in range(3 * POINTS)}

    points = curve(fixed(scores), [couple()])

    thresholds = [point.threshold for point in points]
    assert len(points) == POINTS + 2
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[:2] == [math.inf, 3 * POINTS - 1]
    assert thresholds[-2:] == [0.5, 0]


@given(st.dictionaries(st.sampled_from(sorted(SCORES)), st.floats(0, 1)), st.floats(0, 1))
def test_a_lower_threshold_never_leaks_less_nor_hides_more(
    scores: dict[str, float], threshold: float
) -> None:
    points = curve(fixed(scores, threshold), [couple()])

    leaks = [point.exposure.leak or 0 for point in points]
    hidden = [point.exposure.over_masking or 0 for point in points]
    assert leaks == sorted(leaks)
    assert hidden == sorted(hidden, reverse=True)
    assert sum(point.own for point in points) == 1


def test_candidates_are_scored_by_text_the_best_of_its_types_counts() -> None:
    candidates = [
        Candidate("32", "DATETIME", 9),
        Candidate("Oslo", "LOC", 35),
        Candidate("32", "DEM", 9),
    ]
    scores = {("32", "DATETIME"): 8.0, ("Oslo", "LOC"): 4.0, ("32", "DEM"): 2.0}
    system = ScoredCandidates(Fixed(scores, 4), lambda _: candidates)

    assert system.scores(couple()) == {"32": 8, "Oslo": 4}


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
    found_too = {"s1": ((("Lima", "LOC"), ("Oslo", "LOC")), (("Bergen", "LOC"), ("7", "DEM")))}
    of_detector = query_run([SAMPLE], CHOSEN, found_too, model="numbers")

    ((found, system), (_, of_answers)), left_out = find_scores([run, of_detector])

    assert of_answers.scores(SAMPLE).keys() == {"Lima", "Oslo", "Bergen", "7"}
    relevance = build_relevance("keyword")
    scores = relevance.scores(SAMPLE.query or "", SAMPLE.description, gold_candidates(SAMPLE))
    assert (found, left_out) == (run, [])
    assert system.relevance.threshold == relevance.threshold
    assert [*system.scores(SAMPLE).values()] == scores


def test_a_stored_text_stands_where_it_first_does() -> None:
    answer = Prediction(
        Status.OK, subjects=((("Lima", "LOC"), ("Acme Tools", "ORG"), ("x", "PER")),)
    )

    assert stored_candidates({"s1": answer}, SAMPLE) == [
        Candidate("x", "PER", 0),
        Candidate("Acme Tools", "ORG", SAMPLE.description.index("Acme")),
        Candidate("Lima", "LOC", SAMPLE.description.index("Lima")),
    ]
    assert stored_candidates({"s1": Prediction(Status.EMPTY)}, SAMPLE) == []
    assert stored_candidates({}, SAMPLE) == []


def test_what_has_no_threshold_or_no_detection_has_no_scores() -> None:
    runs = [
        query_run([SAMPLE], CHOSEN, DETECTED, relevance="all"),
        query_run([SAMPLE], CHOSEN, DETECTED, prompt="naive"),
        query_run([SAMPLE], CHOSEN),
    ]

    assert find_scores(runs) == ([], [])


def test_a_system_that_has_changed_or_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = query_run([SAMPLE], CHOSEN, DETECTED, prompt_sha256="f" * 64)
    owner = "the curve of gold, keyword on tiny.jsonl"
    reason = f"{owner}: its threshold or weights have changed since; run again"
    assert find_scores([changed]) == ([], [reason])

    def refuse(_: str) -> NoReturn:
        raise MissingExtraError("keyword", "make it")

    monkeypatch.setattr("pii_bench.analysis.diagnosis.exposure.build_relevance", refuse)
    assert find_scores([changed]) == ([], [f"{owner}: keyword is not installed: run `make it`"])
