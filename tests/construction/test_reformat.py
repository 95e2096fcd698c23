from __future__ import annotations

import datetime as dt
import re
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.reformat import other_date, other_number, read_date, read_time
from pii_bench.datasets.check.formats import is_amount, is_date, is_phone, is_time

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = range(40)


def forms_of(text: str, other: Callable[[str, Random], str] = other_date) -> set[str]:
    return {other(text, Random(seed)) for seed in SEEDS}


def test_a_date_in_every_other_format() -> None:
    assert forms_of("August 3, 2024") == {
        "2024-08-03",
        "3 August 2024",
        "03.08.2024",
        "03/08/2024",
        "2024/08/03",
        "Sat 3 Aug 2024",
        "3rd of August 2024",
    }


def test_a_time_in_every_other_format() -> None:
    assert forms_of("4:35 pm") == {"16:35:00", "16:35", "16.35", "16h35", "1635 hrs"}
    assert forms_of("16:35:20") == {"16.35.20", "4:35:20 pm"}


def test_an_amount_in_every_other_format() -> None:
    assert forms_of("$2,180.50", other_number) == {
        *("2.180,50 $", "$ 2.180,50", "$2.180,50"),
        *("2 180,50 $", "$ 2 180,50", "$2 180,50"),
        *("2'180.50 $", "$ 2'180.50", "$2'180.50"),
        *("2180.50 $", "$ 2180.50", "$2180.50"),
    }
    assert forms_of("Rs.50", other_number) == {"50 Rs.", "Rs. 50"}


def test_percentages_and_long_numbers() -> None:
    assert forms_of("36.92%", other_number) == {"36,92 %", "36,92%", "36.92 percent"}
    assert "+31 004 954 307 2" in forms_of("+31-0049543072", other_number)
    assert "9806 9340 8404 6637" in forms_of("9806934084046637", other_number)


@pytest.mark.parametrize("text", ["March 3", "noon", "half past eight", "2024-13-01", "Ann", ""])
def test_what_is_no_date_that_is_read_stays(text: str) -> None:
    assert forms_of(text) == {text}


@pytest.mark.parametrize("text", ["32", "five euros", "2024-03-01", "K77359912", "a@b.example", ""])
def test_what_is_no_number_that_is_read_stays(text: str) -> None:
    assert forms_of(text, other_number) == {text}


@given(st.dates(dt.date(1900, 1, 1), dt.date(2099, 12, 31)), st.integers())
def test_another_format_is_another_date_for_the_checker(day: dt.date, seed: int) -> None:
    told = other_date(day.isoformat(), Random(seed))

    assert told != day.isoformat()
    assert is_date(told)
    assert read_date(told) in {day, None}


@given(st.times(), st.integers())
def test_another_format_is_the_same_time(at: dt.time, seed: int) -> None:
    told = other_date(f"{at:%H:%M:%S}", Random(seed))

    assert is_time(told) or told == f"{at:%H.%M.%S}"
    assert read_time(told) in {at.replace(microsecond=0), None}


@given(st.integers(1, 10**9), st.integers())
def test_another_format_has_the_same_digits(amount: int, seed: int) -> None:
    told = other_number(f"€{amount:,}", Random(seed))

    assert is_amount(told)
    assert re.sub(r"\D", "", told) == str(amount)


@given(st.integers(10**9, 10**10 - 1), st.integers())
def test_another_phone_number_has_the_same_digits(number: int, seed: int) -> None:
    told = other_number(f"+254-{number}", Random(seed))

    assert is_phone(told)
    assert re.sub(r"\D", "", told) == f"254{number}"
