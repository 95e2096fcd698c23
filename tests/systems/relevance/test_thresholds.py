from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.systems.relevance.base import NEVER
from pii_bench.systems.relevance.thresholds import (
    Scored,
    best_threshold,
    macro_f1,
    read_thresholds,
    share_threshold,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def scored(*needed: str, **scores: float) -> Scored:
    return Scored(tuple(scores), tuple(scores.values()), frozenset(needed))


def test_the_best_threshold_lies_halfway_below_the_last_score_that_it_lets_in() -> None:
    # Right in both from 3 (excluded) to 6.
    assert best_threshold([scored("a", a=8, b=1), scored("c", c=6, d=3)]) == 4.5


def test_the_mean_over_samples_decides() -> None:
    # Down to 9 or 7: 1 and 0. Down to 5: 1 and 2/3. Down to 4: 1 and 2/5.
    samples = [scored("a", a=9), scored("b", x=7, b=5, y=4, z=4)]

    assert best_threshold(samples) == 4.5
    assert macro_f1(samples, 4.5) == pytest.approx((1 + 2 / 3) / 2)


def test_of_equal_thresholds_the_highest_is_taken() -> None:
    # 9 alone: 1 and 0. All: 1/2 and 1/2.
    samples = [scored("a", a=9, x=2, y=2), scored("b", b=2, z=2, w=2)]

    assert best_threshold(samples) == 5.5


def test_where_all_are_needed_the_lowest_score_is_the_threshold() -> None:
    assert best_threshold([scored("a", "b", a=2, b=1)]) == 1


def test_names_never_pass() -> None:
    samples = [scored("a", a=1, name=NEVER)]

    assert best_threshold(samples) == 1
    assert share_threshold([scored("a", a=1, b=1, name=NEVER)]) == 0.5


@pytest.mark.parametrize("rule", [best_threshold, share_threshold])
def test_nothing_to_choose_from_is_an_error(rule: Callable[[list[Scored]], float]) -> None:
    with pytest.raises(PiiBenchError, match="no person's name"):
        rule([scored("a", name=NEVER)])


SCORED = st.builds(
    lambda scores, needed: scored(*(f"t{n}" for n in needed), **scores),
    st.dictionaries(st.sampled_from(["t0", "t1", "t2", "t3"]), st.integers(0, 5), min_size=1),
    st.sets(st.integers(0, 3), min_size=1),
)


@given(st.lists(SCORED, min_size=1, max_size=5))
def test_no_score_makes_a_better_threshold(samples: list[Scored]) -> None:
    best = macro_f1(samples, best_threshold(samples))

    assert best >= max(macro_f1(samples, score) for score in range(6)) - 1e-9


def test_chance_lets_in_the_share_that_is_needed() -> None:
    # One of two and none of two.
    assert share_threshold([scored("a", a=0.1, b=0.2), scored("c", d=0.3, e=0.4)]) == 0.75


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "No such file"),
        ("{", "not valid JSON"),
        ("[]", "must be an object"),
        ('{"keyword": 0.5}', "must be an object of objects"),
        ('{"keyword": {"threshold": "0.5"}}', "each with a number 'threshold'"),
    ],
)
def test_a_broken_file_of_thresholds_is_named(text: str | None, what: str, tmp_path: Path) -> None:
    path = tmp_path / "thresholds.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(InputFileError, match=what) as caught:
        read_thresholds(path)

    assert caught.value.path == str(path)
