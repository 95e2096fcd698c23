from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.noise import (
    MISREAD,
    in_capitals,
    in_small_letters,
    misread,
    with_typos,
    without_punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Noise = Callable[[str, Random, float], str]

ALL = (with_typos, misread, without_punctuation, in_small_letters, in_capitals)


@pytest.mark.parametrize(
    ("noise", "text", "told"),
    [
        (misread, "Is 501 more?", "ls SOl rn0rc?"),
        (without_punctuation, "No, Al. At 4.50, yes!", "No Al At 4.50 yes!"),
        (in_small_letters, "Ann of IBM", "ann of ibm"),
        (in_capitals, "Ann of Gießen", "ANN OF GIESSEN"),
    ],
)
def test_everything_is_changed_at_a_rate_of_one(noise: Noise, text: str, told: str) -> None:
    assert noise(text, Random(1), 1) == told


def test_letters_alone_are_misread_by_the_table_of_letters() -> None:
    assert misread("lo 10", Random(1), 1, MISREAD) == "10 10"


@pytest.mark.parametrize("noise", ALL)
@given(text=st.text(), seed=st.integers())
def test_nothing_is_changed_at_a_rate_of_nothing(noise: Noise, text: str, seed: int) -> None:
    assert noise(text, Random(seed), 0) == text


@pytest.mark.parametrize("noise", ALL)
@given(text=st.text(), seed=st.integers())
def test_a_seed_gives_one_text(noise: Noise, text: str, seed: int) -> None:
    assert noise(text, Random(seed), 0.5) == noise(text, Random(seed), 0.5)


@given(text=st.text(alphabet=st.characters(exclude_categories=["L"])), seed=st.integers())
def test_only_letters_are_mistyped(text: str, seed: int) -> None:
    assert with_typos(text, Random(seed), 1) == text


@given(text=st.text(alphabet="abcdefg", min_size=1), seed=st.integers())
def test_a_typo_takes_at_most_a_letter_away(text: str, seed: int) -> None:
    assert len(with_typos(text, Random(seed), 0.5)) <= len(text)
