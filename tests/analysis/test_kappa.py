from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pii_bench.analysis.kappa import cohen_kappa, fleiss_kappa

# Fleiss 1971: how many of 14 raters put each of ten subjects into each of five categories, as
# printed in the literature; kappa 0.210.
FLEISS = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)


def test_fleiss_kappa_of_the_literature() -> None:
    units = [tuple(label for label, n in enumerate(row) for _ in range(n)) for row in FLEISS]

    assert fleiss_kappa(Counter(units)) == pytest.approx(0.210, abs=0.0005)


@pytest.mark.parametrize(
    ("yes_yes", "yes_no", "no_yes", "no_no", "expected"),
    [(20, 5, 10, 15, 0.4), (45, 15, 25, 15, 0.1304), (25, 35, 5, 35, 0.2593)],
)
def test_cohen_kappa_of_the_literature(
    yes_yes: int, yes_no: int, no_yes: int, no_no: int, expected: float
) -> None:
    cells = {(1, 1): yes_yes, (1, 0): yes_no, (0, 1): no_yes, (0, 0): no_no}

    assert cohen_kappa(cells) == pytest.approx(expected, abs=0.0001)


def test_one_label_for_everything_is_full_agreement() -> None:
    assert cohen_kappa({("", ""): 7}) == 1
    assert fleiss_kappa({("", "", ""): 7}) == 1


def test_kappa_is_undefined_without_two_raters() -> None:
    assert cohen_kappa({}) is None
    assert fleiss_kappa({("PER",): 1, ("LOC",): 1, (): 1}) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1))
def test_cohen_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    if len({*first, *second}) > 1:
        theirs = cohen_kappa_score(first, second)
        assert cohen_kappa(Counter(pairs)) == pytest.approx(theirs)
