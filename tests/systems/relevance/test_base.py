from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.systems.relevance.base import (
    NEVER,
    Candidate,
    Constant,
    RandomChoice,
    ScoredSample,
    best_threshold,
    choose,
    gold_candidates,
    macro_f1,
    read_thresholds,
    relative_scores,
    share_threshold,
)
from pii_bench.systems.relevance.catalog import build_relevance
from tests.builders import unlisted
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANN = Candidate("Ann Lee", "PER", 0)
AGE = Candidate("32", "DEM", 11)
CITY = Candidate("Leeds", "LOC", 17)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (
            build(
                "Ann Lee is 32. Bo lives in Leeds.",
                {"32": "Age", "Ann Lee": "Full Name"},
                {"Leeds": "City/Region", "Bo": "Full Name"},
            ),
            [("Ann Lee", "PER", 0), ("32", "DEM", 11), ("Bo", "PER", 15), ("Leeds", "LOC", 27)],
        ),
        (
            build("Both live in Leeds.", {"Leeds": "City/Region"}, {"Leeds": "City/Region"}),
            [("Leeds", "LOC", 13)],
        ),
        (
            build("At 32, she waited 32.", {"32": "Age"}, {"32": "Duration"}),
            [("32", "DATETIME", 3), ("32", "DEM", 3)],
        ),
    ],
    ids=["in the order of the text", "shared by two subjects", "a text of two types"],
)
def test_gold_candidates(sample: Sample, expected: list[tuple[str, str, int]]) -> None:
    assert gold_candidates(sample) == [Candidate(*each) for each in expected]


@pytest.mark.parametrize(("text", "start"), [("Leeds", 8), ("York", 0)], ids=["there", "absent"])
def test_an_entity_without_spans_is_searched_for_in_the_description(text: str, start: int) -> None:
    sample = Sample("s1", "Born in Leeds.", None, (Subject("A", (Entity(text, "LOC"),)),), ())

    assert gold_candidates(unlisted(sample)) == [Candidate(text, "LOC", start)]


def test_a_score_equal_to_the_threshold_is_chosen_and_a_lower_one_is_not() -> None:
    at, below = Constant("at", 0.5, threshold=0.5), Constant("below", 0.4, threshold=0.5)

    assert choose(at, "", "", [CITY, AGE, CITY]) == ["Leeds", "32"]
    assert choose(below, "", "", [CITY, AGE]) == []


def test_names_get_never_and_do_not_count_in_the_mean() -> None:
    # The mean of 11 and 17 is 14.
    assert relative_scores([AGE, ANN, CITY], {AGE: 11.0, CITY: 17.0}) == [-3.0, NEVER, 3.0]
    assert relative_scores([ANN], {}) == [NEVER]
    assert relative_scores([], {}) == []


MANY = [Candidate(str(number), "CODE", number) for number in range(1000)]


@pytest.mark.parametrize(("name", "chosen"), [("all", ["Ann Lee", "32"]), ("none", [])])
def test_all_chooses_every_candidate_and_none_chooses_nothing(name: str, chosen: list[str]) -> None:
    assert choose(build_relevance(name), "Am I old?", "Ann Lee is 32.", [ANN, AGE]) == chosen


def test_random_chooses_at_its_rate_and_never_a_name() -> None:
    system = RandomChoice(threshold=0.75)
    chosen = choose(system, "Why?", "", [ANN, *MANY])

    assert system.identity == {"seed": "0", "threshold": "0.75"}
    # A quarter of 1,000, within three standard deviations of 14.
    assert 208 < len(chosen) < 292
    assert "Ann Lee" not in chosen


@given(st.text(), st.text(), st.integers(0, 999))
def test_a_random_score_depends_only_on_query_and_candidate(
    query: str, description: str, place: int
) -> None:
    system = RandomChoice(threshold=0.5)

    alone = system.scores(query, description, [MANY[place]])

    assert alone == [system.scores(query, "", MANY)[place]]
    assert alone != system.scores(query + "?", description, [MANY[place]])


def scored(*needed: str, **scores: float) -> ScoredSample:
    return ScoredSample(tuple(scores), tuple(scores.values()), frozenset(needed))


@pytest.mark.parametrize(
    ("samples", "threshold"),
    [
        # Both samples are right from above 3 to 6: the mean of 3 and 6.
        ([scored("a", a=8, b=1), scored("c", c=6, d=3)], 4.5),
        # F1 of the samples at 9 or 7: 1 and 0; at 5: 1 and 2/3; at 4: 1 and 2/5.
        ([scored("a", a=9), scored("b", x=7, b=5, y=4, z=4)], 4.5),
        # F1 at 9: 1 and 0; at 2: 1/2 and 1/2. The means are equal, so the higher one.
        ([scored("a", a=9, x=2, y=2), scored("b", b=2, z=2, w=2)], 5.5),
        # If all candidates are needed: the lowest score.
        ([scored("a", "b", a=2, b=1)], 1),
        # Names are not candidates.
        ([scored("a", a=1, name=NEVER)], 1),
    ],
)
def test_the_best_threshold(samples: list[ScoredSample], threshold: float) -> None:
    assert best_threshold(samples) == threshold


def test_macro_f1_is_the_mean_over_samples() -> None:
    samples = [scored("a", a=9), scored("b", x=7, b=5, y=4, z=4)]

    assert macro_f1(samples, 4.5) == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("rule", [best_threshold, share_threshold])
def test_samples_with_names_only_are_an_error(rule: Callable[[list[ScoredSample]], float]) -> None:
    with pytest.raises(PiiBenchError, match="other than people's names"):
        rule([scored("a", name=NEVER)])


SCORED = st.builds(
    lambda scores, needed: scored(*(f"t{n}" for n in needed), **scores),
    st.dictionaries(st.sampled_from(["t0", "t1", "t2", "t3"]), st.integers(0, 5), min_size=1),
    st.sets(st.integers(0, 3), min_size=1),
)


@given(st.lists(SCORED, min_size=1, max_size=5))
def test_no_other_threshold_has_a_higher_macro_f1(samples: list[ScoredSample]) -> None:
    best = macro_f1(samples, best_threshold(samples))

    assert best >= max(macro_f1(samples, score) for score in range(6)) - 1e-9


def test_the_share_threshold_is_one_minus_the_needed_share() -> None:
    # One of four candidates is needed.
    assert share_threshold([scored("a", a=0.1, b=0.2), scored("c", d=0.3, e=0.4)]) == 0.75
    assert share_threshold([scored("a", a=1, b=1, name=NEVER)]) == 0.5


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "must be a JSON object"),
        ('{"keyword": 0.5}', "'keyword' must be an object"),
        ('{"keyword": {"threshold": "0.5"}}', "'threshold' must be a number"),
    ],
)
def test_an_error_names_the_broken_file_of_thresholds(
    text: str | None, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "thresholds.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(InputFileError, match=what) as caught:
        read_thresholds(path)

    assert caught.value.path == str(path)
