from __future__ import annotations

import pytest

from pii_bench.ranking.statistics.bootstrap import Interval, difference_interval, intervals
from pii_bench.ranking.statistics.comparison import compare
from pii_bench.ranking.statistics.detectable import smallest_detectable
from pii_bench.ranking.statistics.scores import Scores
from tests.ranking.statistics.of_values import parted, scores

FIRST = scores([1.0, 0.5, 0.25, 1.0, 1.0, 0.75])
SECOND = scores([0.5, 0.5, 0.5, 0.0, 0.0, 0.5])


def test_both_means_their_difference_and_what_can_be_said_of_it() -> None:
    found = compare(FIRST, SECOND)

    assert found is not None
    assert (found.first.figure, found.second.figure) == (0.75, 2 / 6)
    assert found.difference == pytest.approx(2.5 / 6)
    assert [
        found.first_interval,
        found.second_interval,
        found.difference_interval,
    ] == intervals([FIRST, SECOND, FIRST.minus(SECOND)])
    assert found.detectable == smallest_detectable(FIRST, SECOND)
    # In quarters 2, 1, 4, 4, 1, of sum 12 with 10 observed: the two ones may be turned singly.
    assert found.p == pytest.approx(2 * 3 / 2**5)


def test_the_other_way_round_the_difference_is_the_opposite() -> None:
    there, back = compare(FIRST, SECOND), compare(SECOND, FIRST)

    assert there is not None
    assert back is not None
    assert back.difference == -there.difference
    assert (back.p, back.detectable) == (there.p, there.detectable)
    assert there.difference_interval is not None
    assert back.difference_interval == Interval(
        -there.difference_interval.high, -there.difference_interval.low
    )


def test_samples_where_they_differ_most_come_first_and_equals_not_at_all() -> None:
    found = compare(FIRST, SECOND)

    assert found is not None
    assert found.most_different(3) == [("s3", 1.0, 0.0), ("s4", 1.0, 0.0), ("s0", 1.0, 0.5)]
    assert [sample_id for sample_id, _, _ in found.most_different(10)] == [
        *("s3", "s4", "s0"),
        *("s2", "s5"),
    ]


def test_samples_are_told_apart_by_which_is_higher() -> None:
    found = compare(FIRST, SECOND)

    assert found is not None
    assert found.tally() == (4, 1, 1)


def test_only_samples_that_both_have_are_compared() -> None:
    ids = ("s1", "s3", "s9")
    some = Scores(ids, ids, (0.5, 0.5, 1.0))

    found = compare(FIRST, some)

    assert found is not None
    assert found.first == Scores(("s1", "s3"), ("s1", "s3"), (0.5, 1.0))
    assert found.second == Scores(("s1", "s3"), ("s1", "s3"), (0.5, 0.5))


def test_without_a_sample_in_common_there_is_nothing_to_compare() -> None:
    assert compare(FIRST, Scores(("s9",), ("s9",), (1.0,))) is None


def test_two_h_differ_by_more_than_the_mean_of_their_samples() -> None:
    # Each protects where the other retains: of its samples, every H is 0.
    first, second = parted([1, 0] * 4, [0, 1] * 4), parted([0.5] * 8, [0.25] * 8)

    found = compare(first, second)

    assert found is not None
    assert found.first.figure == 0.5
    assert found.second.figure == pytest.approx(1 / 3)
    assert found.difference == pytest.approx(1 / 6)
    assert found.difference_interval == difference_interval(first, second)
    assert found.tally() == (0, 8, 0)
