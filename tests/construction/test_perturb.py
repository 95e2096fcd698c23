from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_bench.construction.perturb import (
    KINDS,
    Unfit,
    other_date,
    other_number,
    read_date,
    read_time,
    version,
    versions,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.run import sample_problems
from pii_bench.datasets.sample import Related, Sample, perturbation_of
from pii_bench.datasets.value_formats import FORMATS
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from collections.abc import Callable

DEMO = load_dataset("demo").samples
TEXT = "Ann Lee, 32, lives in York, pays $2,180 and moves on 2024-08-03. Bread is $4."


def sample(query: str = "Is it too much?") -> Sample:
    facts = {
        "Ann Lee": "Full Name",
        "32": "Age",
        "York": "City/Region",
        "$2,180": "Monthly Expenses",
        "2024-08-03": "Date",
    }
    return build(TEXT, facts, query=query, related=[("A", "$2,180")], public=["$4"])


def made(kind: str, rate: float | None = None, *, query: str = "Is it too much?") -> Sample:
    found = version(sample(query), kind, of="single", seed=1, rate=rate)
    assert isinstance(found, Sample)
    return found


def changed(kind: str) -> dict[str, str]:
    """What became of the entities that changed."""
    pairs = zip(sample().entities, made(kind).entities, strict=True)
    return {old.text: new.text for old, new in pairs if old.text != new.text}


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("names", {"Ann Lee"}),
        ("addresses", {"York"}),
        ("dates", {"2024-08-03"}),
        ("numbers", {"$2,180"}),
        ("foreign-words", set[str]()),
        ("lower-case", {"Ann Lee", "York"}),
        ("upper-case", {"Ann Lee", "York"}),
        ("punctuation", set[str]()),
    ],
)
def test_a_kind_changes_its_values(kind: str, texts: set[str]) -> None:
    assert changed(kind).keys() == texts


def test_the_whole_text_in_another_form() -> None:
    assert made("lower-case").description == TEXT.lower()
    assert made("punctuation").description == (
        "Ann Lee 32 lives in York pays $2,180 and moves on 2024-08-03 Bread is $4."
    )


def test_words_between_values_are_foreign() -> None:
    found = made("foreign-words", 1)

    assert found.description.removeprefix(TEXT[:40]) in {
        "und moves on 2024-08-03. Bread ist $4.",
        "et moves on 2024-08-03. Bread est $4.",
        "y moves on 2024-08-03. Bread es $4.",
        "i moves on 2024-08-03. Bread jest $4.",
    }


def test_what_is_needed_is_what_stands_there() -> None:
    assert made("numbers").related == (Related("A", changed("numbers")["$2,180"]),)


def test_what_is_public_changes_too() -> None:
    assert made("numbers").meta["public"] != ["$4"]


def test_a_query_quotes_the_value_as_it_is() -> None:
    found = made("names", query="How old is Ann Lee?")

    assert found.query == f"How old is {found.entities[0].text}?"


def test_a_query_is_typed_as_the_text_is_and_not_scanned() -> None:
    assert made("upper-case").query == "IS IT TOO MUCH?"
    assert made("ocr", 0.3).query == "Is it too much?"


def test_a_version_says_what_it_is() -> None:
    found = made("typos", 0.1)

    assert found.id == f"{sample().id}.typos"
    assert found.meta["perturbation"] == {
        "kind": "typos",
        "rate": 0.1,
        "seed": 1,
        "dataset": "single",
        "source": sample().id,
    }


def test_where_there_is_nothing_to_change_there_is_no_version() -> None:
    plain = build("Ann Lee is here.", {"Ann Lee": "Full Name"})

    assert version(plain, "dates", of="single", seed=1) is Unfit.UNCHANGED


def test_a_version_that_breaks_a_rule_is_left_out() -> None:
    # In small letters two occupations are one.
    two = build("Ann Lee: a Potter, a potter.", {"Ann Lee": "Full Name", "Potter": "Occupation"})
    second = replace(two.subjects[0].entities[1], text="potter", spans=((21, 27),))
    subject = replace(two.subjects[0], entities=(*two.subjects[0].entities, second))

    found = versions([replace(two, subjects=(subject,))], "lower-case", of="single", seed=1)

    assert found.samples == ()
    assert found.unfit == {Unfit.FAULTY: 1}


def test_a_limit_takes_the_same_samples_for_every_kind() -> None:
    chosen = {
        kind: [each.meta["perturbation"]["source"] for each in found.samples]
        for kind in ("lower-case", "upper-case")
        for found in [versions(DEMO, kind, of="demo", seed=3, limit=4)]
    }

    assert len(chosen["lower-case"]) == 4
    assert chosen["lower-case"] == chosen["upper-case"] == sorted(chosen["lower-case"])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(original=st.sampled_from(DEMO), seed=st.integers(0, 10**6))
def test_labels_are_carried_along(kind: str, original: Sample, seed: int) -> None:
    found = version(original, kind, of="demo", seed=seed)

    if isinstance(found, Unfit):
        assert found is Unfit.UNCHANGED
        return
    assert found == version(original, kind, of="demo", seed=seed)
    assert sample_problems(found) == []
    before, after = (
        [(each.type, each.category, len(each.spans)) for each in one.entities]
        for one in (original, found)
    )
    assert after == before
    assert len(found.related) == len(original.related)
    mark = perturbation_of(found)
    assert mark is not None
    assert mark.source == original.id


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.words])
@settings(max_examples=15)
@given(original=st.sampled_from(DEMO), seed=st.integers(0, 10**6))
def test_kinds_of_values_leave_the_rest_as_it_is(kind: str, original: Sample, seed: int) -> None:
    found = version(original, kind, of="demo", seed=seed)

    if isinstance(found, Sample):
        assert between(found) == between(original)


def between(one: Sample) -> list[str]:
    """The text between entities, and what is public left out."""
    spans = sorted({span for entity in one.entities for span in entity.spans})
    edges = [0, *(end for span in spans for end in span), len(one.description)]
    texts = [one.description[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    for value in one.meta.get("public", []):
        texts = [text.replace(value, "") for text in texts]
    return texts


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
    assert FORMATS["Date"](told)
    assert read_date(told) in {day, None}


@given(st.times(), st.integers())
def test_another_format_is_the_same_time(at: dt.time, seed: int) -> None:
    told = other_date(f"{at:%H:%M:%S}", Random(seed))

    assert FORMATS["Time"](told) or told == f"{at:%H.%M.%S}"
    assert read_time(told) in {at.replace(microsecond=0), None}


@given(st.integers(1, 10**9), st.integers())
def test_another_format_has_the_same_digits(amount: int, seed: int) -> None:
    told = other_number(f"€{amount:,}", Random(seed))

    assert FORMATS["Monthly Income"](told)
    assert re.sub(r"\D", "", told) == str(amount)


@given(st.integers(10**9, 10**10 - 1), st.integers())
def test_another_phone_number_has_the_same_digits(number: int, seed: int) -> None:
    told = other_number(f"+254-{number}", Random(seed))

    assert FORMATS["Phone Number"](told)
    assert re.sub(r"\D", "", told) == f"254{number}"
