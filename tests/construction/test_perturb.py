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


def perturbed(kind: str, rate: float | None = None, *, query: str = "Is it too much?") -> Sample:
    result = version(sample(query), kind, dataset="single", seed=1, rate=rate)
    assert isinstance(result, Sample)
    return result


def changed_values(kind: str) -> dict[str, str]:
    """Return old to new text of the entities that change."""
    pairs = zip(sample().entities, perturbed(kind).entities, strict=True)
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
def test_a_kind_changes_only_its_values(kind: str, texts: set[str]) -> None:
    assert changed_values(kind).keys() == texts


def test_lower_case_and_punctuation_change_the_whole_text() -> None:
    assert perturbed("lower-case").description == TEXT.lower()
    assert perturbed("punctuation").description == (
        "Ann Lee 32 lives in York pays $2,180 and moves on 2024-08-03 Bread is $4."
    )


def test_foreign_words_replace_words_between_values() -> None:
    text = "Ann Lee, 32, lives in York, pays $2,180 {} moves on 2024-08-03. Bread {} $4."

    assert perturbed("foreign-words", 1).description in {
        text.format(*words) for words in (("und", "ist"), ("et", "est"), ("y", "es"), ("i", "jest"))
    }


def test_related_entities_and_public_values_get_the_new_texts() -> None:
    result = perturbed("numbers")

    assert result.related == (Related("A", changed_values("numbers")["$2,180"]),)
    assert result.meta["public"] != ["$4"]


def test_a_query_quotes_the_new_value() -> None:
    result = perturbed("names", query="How old is Ann Lee?")

    assert result.query == f"How old is {result.entities[0].text}?"


def test_capitals_change_the_query_and_misreadings_do_not() -> None:
    assert perturbed("upper-case").query == "IS IT TOO MUCH?"
    assert perturbed("ocr", 0.3).query == "Is it too much?"


def test_id_and_meta_describe_the_perturbation() -> None:
    result = perturbed("typos", 0.1)

    assert result.id == "s1.typos"
    assert result.meta["perturbation"] == {
        "kind": "typos",
        "rate": 0.1,
        "seed": 1,
        "dataset": "single",
        "source": "s1",
    }


def test_a_sample_with_nothing_to_change_has_no_version() -> None:
    plain = build("Ann Lee is here.", {"Ann Lee": "Full Name"})

    assert version(plain, "dates", dataset="single", seed=1) is Unfit.UNCHANGED


def test_a_version_that_breaks_a_rule_is_left_out() -> None:
    # In lower case, both occupations have the same text.
    two = build("Ann Lee: a Potter, a potter.", {"Ann Lee": "Full Name", "Potter": "Occupation"})
    second = replace(two.subjects[0].entities[1], text="potter", spans=((21, 27),))
    subject = replace(two.subjects[0], entities=(*two.subjects[0].entities, second))

    result = versions([replace(two, subjects=(subject,))], "lower-case", dataset="single", seed=1)

    assert result.samples == ()
    assert result.unfit == {Unfit.FAULTY: 1}


def test_a_limit_chooses_the_same_samples_for_every_kind() -> None:
    def sources(kind: str) -> list[str]:
        result = versions(DEMO, kind, dataset="demo", seed=3, limit=4)
        return [sample.meta["perturbation"]["source"] for sample in result.samples]

    assert len(sources("lower-case")) == 4
    assert sources("lower-case") == sources("upper-case") == sorted(sources("lower-case"))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(original=st.sampled_from(DEMO), seed=st.integers(0, 10**6))
def test_a_version_keeps_the_annotations(kind: str, original: Sample, seed: int) -> None:
    result = version(original, kind, dataset="demo", seed=seed)

    if isinstance(result, Unfit):
        assert result is Unfit.UNCHANGED
        return
    assert result == version(original, kind, dataset="demo", seed=seed)
    assert sample_problems(result) == []
    for before, after in zip(original.entities, result.entities, strict=True):
        assert (after.type, after.category) == (before.type, before.category)
        assert len(after.spans) == len(before.spans)
    assert len(result.related) == len(original.related)
    perturbation = perturbation_of(result)
    assert perturbation is not None
    assert perturbation.source == original.id
    if not KINDS[kind].words:
        assert words_between_values(result) == words_between_values(original)


def words_between_values(sample: Sample) -> str:
    """Return the text without entities and public values."""
    texts: list[str] = []
    place = 0
    for start, end in sorted({span for entity in sample.entities for span in entity.spans}):
        texts.append(sample.description[place:start])
        place = end
    text = "|".join([*texts, sample.description[place:]])
    for value in sample.meta.get("public", []):
        text = text.replace(value, "")
    return text


def forms_of(text: str, other: Callable[[str, Random, float], str]) -> set[str]:
    return {other(text, Random(seed), 1) for seed in range(40)}


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (
            "August 3, 2024",
            {"2024-08-03", "3 August 2024", "03.08.2024", "03/08/2024", "2024/08/03"}
            | {"Sat 3 Aug 2024", "3rd of August 2024"},
        ),
        ("4:35 pm", {"16:35:00", "16:35", "16.35", "16h35", "1635 hrs"}),
        ("16:35:20", {"16.35.20", "4:35:20 pm"}),
        *(
            (text, {text})
            for text in ("March 3", "noon", "half past eight", "2024-13-01", "08:30:60", "")
        ),
    ],
)
def test_a_date_or_time_can_have_every_other_format(text: str, forms: set[str]) -> None:
    assert forms_of(text, other_date) == forms


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (
            "$2,180.50",
            {"2.180,50 $", "$ 2.180,50", "$2.180,50", "2 180,50 $", "$ 2 180,50", "$2 180,50"}
            | {"2'180.50 $", "$ 2'180.50", "$2'180.50", "2180.50 $", "$ 2180.50", "$2180.50"},
        ),
        ("Rs.50", {"50 Rs.", "Rs. 50"}),
        ("36.92%", {"36,92 %", "36,92%", "36.92 percent"}),
        *((text, {text}) for text in ("32", "five euros", "2024-03-01", "K773599", "a@b.at")),
    ],
)
def test_a_number_can_have_every_other_format(text: str, forms: set[str]) -> None:
    assert forms_of(text, other_number) == forms


def test_long_numbers_are_grouped() -> None:
    assert "+31 004 954 307 2" in forms_of("+31-0049543072", other_number)
    assert "9806 9340 8404 6637" in forms_of("9806934084046637", other_number)


@given(st.dates(dt.date(1900, 1, 1), dt.date(2099, 12, 31)), st.integers())
def test_the_checker_accepts_a_date_in_another_format(day: dt.date, seed: int) -> None:
    result = other_date(day.isoformat(), Random(seed), 1)

    assert result != day.isoformat()
    assert FORMATS["Date"](result)
    assert read_date(result) in {day, None}


@given(st.times(), st.integers())
def test_a_time_in_another_format_is_the_same_time(at: dt.time, seed: int) -> None:
    result = other_date(f"{at:%H:%M:%S}", Random(seed), 1)

    assert FORMATS["Time"](result) or result == f"{at:%H.%M.%S}"
    assert read_time(result) in {at.replace(microsecond=0), None}


@given(st.integers(1, 10**9), st.integers(10**9, 10**10 - 1), st.integers())
def test_numbers_in_another_format_have_the_same_digits(
    amount: int, number: int, seed: int
) -> None:
    money = other_number(f"€{amount:,}", Random(seed), 1)
    phone = other_number(f"+254-{number}", Random(seed), 1)

    assert FORMATS["Monthly Income"](money)
    assert re.sub(r"\D", "", money) == str(amount)
    assert FORMATS["Phone Number"](phone)
    assert re.sub(r"\D", "", phone) == f"254{number}"
