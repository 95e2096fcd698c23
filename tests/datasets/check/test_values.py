from __future__ import annotations

import pytest

from pii_bench.datasets.check.values import (
    Amount,
    Rank,
    parse_amount,
    parse_days,
    parse_kilograms,
    parse_metres,
    parse_percentage,
    parse_rank,
)


@pytest.mark.parametrize(
    ("text", "currency", "value"),
    [
        ("$2,180", "$", 2180),
        ("$950", "$", 950),
        ("£6,812.50", "£", 6812.5),
        ("€4500", "€", 4500),
        ("SEK 31,000", "SEK", 31000),
        ("1,200 kr", "kr", 1200),
        ("R$ 4,300", "R$", 4300),
        ("US$1,000,000", "US$", 1_000_000),
        ("R 12,000", "R", 12000),
        ("₹1,20,000", "₹", 120_000),
    ],
)
def test_amounts(text: str, currency: str, value: float) -> None:
    assert parse_amount(text) == Amount(currency, value)


@pytest.mark.parametrize("text", ["2,180", "$", "$2,18", "$1,2345", "R2", "ISO 9001", "$5%", "$-5"])
def test_no_amounts(text: str) -> None:
    assert parse_amount(text) is None


def test_percentages_have_two_decimals() -> None:
    assert parse_percentage("18.40%") == 18.4
    assert parse_percentage("−3.10%") == -3.1
    assert parse_percentage("18.4%") is None


@pytest.mark.parametrize(
    ("text", "days"),
    [("41 days", 41), ("180d", 180), ("36 hours", 1.5), ("720 minutes", 0.5), ("43200 s", 0.5)],
)
def test_durations_in_days(text: str, days: float) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize("text", ["two days", "3 weeks", "days", "1.5 days"])
def test_no_durations(text: str) -> None:
    assert parse_days(text) is None


def test_heights_in_metres() -> None:
    assert parse_metres("193 cm") == 1.93
    assert parse_metres("5'10\"") == pytest.approx(1.778)
    assert parse_metres("5 ft 10 in") == pytest.approx(1.778)
    assert parse_metres("5'12\"") is None
    assert parse_metres("1.93 m") is None


def test_weights_in_kilograms() -> None:
    assert parse_kilograms("74 kg") == 74
    assert parse_kilograms("200 lbs") == pytest.approx(90.72, abs=0.01)
    assert parse_kilograms("11 stone") is None


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("PhD in Linguistics", Rank.DOCTOR),
        ("doctorate", Rank.DOCTOR),
        ("MSc in geomatics", Rank.MASTER),
        ("Master of Laws", Rank.MASTER),
        ("master's level", Rank.MASTER),
        ("BA in Russian", Rank.BACHELOR),
        ("bachelor's degree", Rank.BACHELOR),
        ("A-levels", Rank.BELOW_DEGREE),
        ("vocational certificate", Rank.BELOW_DEGREE),
        ("diploma in drama", None),
        ("", None),
    ],
)
def test_schooling(text: str, rank: Rank | None) -> None:
    assert parse_rank(text) is rank
