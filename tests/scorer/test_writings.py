from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.scorer.locate import Locator, Strictness
from pii_bench.scorer.writings import NUMBER_WORDS, from_words, in_words, unmarked, writings


def restated(text: str, value: str) -> list[str]:
    return [text[start:end] for start, end in Locator(text).spans(value, Strictness.RESTATED)]


@pytest.mark.parametrize(
    ("value", "text", "piece"),
    [
        # Numbers.
        ("32", "She is thirty-two.", "thirty-two"),
        ("32", "She is thirty two.", "thirty two"),
        ("32", "a thirty-two-year-old", "thirty-two"),
        ("thirty-two", "aged 32", "32"),
        ("25", "a 25yo", "25"),
        ("Ann Lee", "ANN  LEE", "ANN  LEE"),
        ("58 years", "for fifty-eight years", "fifty-eight years"),
        ("3 children", "has three children", "three children"),
        ("1500", "1,500 pages", "1,500"),
        ("1,500", "one thousand five hundred pages", "one thousand five hundred"),
        ("205", "two hundred and five", "two hundred and five"),
        ("1991", "since nineteen ninety-one", "nineteen ninety-one"),
        ("4155550133", "call (415) 555-0133", "415) 555-0133"),
        ("4111 1111 1111 1111", "card 4111-1111-1111-1111", "4111-1111-1111-1111"),
        # Money and shares.
        ("$2,180", "2180 dollars", "2180 dollars"),
        ("$2,180", "two thousand one hundred and eighty dollars a month",
         "two thousand one hundred and eighty dollars"),
        ("900 euros", "€900", "€900"),
        ("12%", "twelve percent", "twelve percent"),
        ("12 per cent", "12%", "12%"),
        # Dates and times.
        ("1991-03-03", "on March 3rd, 1991", "March 3rd, 1991"),
        ("3 March 1991", "03/03/1991", "03/03/1991"),
        ("March 1991", "in Mar 1991", "Mar 1991"),
        ("May 4", "the 4th of May", "the 4th of May"),
        ("3:30 pm", "at 15:30", "15:30"),
        ("15:00", "at 3 p.m.", "3 p.m."),
        # Places and letters.
        ("Göteborg", "in Gothenburg", "Gothenburg"),
        ("Gothenburg", "in Göteborg", "Göteborg"),
        ("Göteborg", "in Goteborg", "Goteborg"),
        ("Göteborg", "in Goeteborg", "Goeteborg"),
        ("Zoe", "Zoë said", "Zoë"),
        ("Łódź", "from Lodz", "Lodz"),
        ("University of Göteborg", "the University of Gothenburg", "University of Gothenburg"),
        # Addresses.
        ("ann@mail.org", "ann at mail dot org", "ann at mail dot org"),
    ],
)  # fmt: skip
def test_a_value_is_found_in_another_writing(value: str, text: str, piece: str) -> None:
    assert restated(text, value) == [piece]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # Another number.
        ("30", "thirty-two"),
        ("2", "two hundred"),
        ("200", "two hundred thousand"),
        ("one", "twenty one"),
        ("32", "one hundred thirty-two"),
        ("2180", "12,180"),
        ("007", "seven"),
        # A number word below ten by itself.
        ("1", "one of them"),
        # Part of another word.
        ("Göteborg", "Gothenburgers"),
        ("Ann", "Annual"),
        ("Lindqvist", "Lindqvistska"),
        # Conclusions and numbers in other languages are not covered.
        ("32", "trente-deux"),
        ("32", "born in 1994"),
        ("1991-03-03", "4 March 1991"),
        ("", "thirty"),
        (" ", "thirty"),
    ],
)
def test_another_value_is_not_found(value: str, text: str) -> None:
    assert restated(text, value) == []


def test_writings_have_a_fixed_order_and_exclude_the_value() -> None:
    assert writings("32") == ("thirty-two", "thirty two")
    assert writings("Ann") == ()


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("nineteen", 19),
        ("Two hundred and five", 205),
        ("one million two", 1_000_002),
        ("two three", None),
        ("hundred", None),
        ("thirty-eleven", None),
        ("", None),
    ],
)
def test_numbers_in_words_are_parsed(words: str, number: int | None) -> None:
    assert from_words(words) == number


@pytest.mark.parametrize(
    ("text", "bare"), [("Zoë Łódź", "Zoe Lodz"), ("Øre", "Ore"), ("Й", "Й"), ("が", "が")]
)
def test_only_latin_letters_lose_their_diacritics(text: str, bare: str) -> None:
    assert unmarked(text) == bare


numbers = st.integers(0, 999_999_999)


@given(numbers)
def test_words_are_parsed_back_to_their_number(number: int) -> None:
    assert from_words(in_words(number)) == number


@given(st.integers(10, 999_999_999))
def test_a_number_is_found_in_words_and_in_digits(number: int) -> None:
    words = in_words(number)

    assert restated(f"It is {words}, he said.", str(number)) == [words]
    assert restated(f"It is {number}, he said.", words) == [str(number)]


@given(st.integers(10, 99_999), st.integers(10, 99_999))
def test_a_number_is_not_found_in_the_words_of_another(one: int, other: int) -> None:
    assert bool(restated(in_words(other), str(one))) == (one == other)


@given(st.text(max_size=30), st.text(max_size=12), st.text(max_size=10))
def test_a_value_between_spaces_is_found(value: str, before: str, after: str) -> None:
    text = f"{before} {value} {after}"
    locator = Locator(text)
    found = locator.spans(value, Strictness.RESTATED)

    assert list(found) == sorted(found)
    assert all(0 <= start < end <= len(text) for start, end in found)
    # "one" is not found in "twenty one": a number in words may go on before or after the value.
    is_next_to_number = NUMBER_WORDS.search(f"{before} {after}") is not None
    if value.isalpha() and value.isascii() and len(value) > 2 and not is_next_to_number:
        assert found


@pytest.mark.parametrize("value", ["1" + ",000" * 5000, "million " * 5000, "hundred " * 5000])
def test_very_long_numbers_are_found(value: str) -> None:
    assert restated(f"It is {value}.", value) == [value.strip()]
    assert restated("It is one.", value) == []


def test_thousands_separators_of_large_numbers_are_ignored() -> None:
    assert restated("1250000000", "1,250,000,000") == ["1250000000"]
