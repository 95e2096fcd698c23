from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.manuscript import (
    description_problems,
    find_mentions,
    query_length_problems,
    read_part,
    value_problems,
)
from pii_bench.construction.markup import SHE
from pii_bench.construction.people import Fact, Place, Profile
from pii_bench.models.base import Completion, Finish

NAME = Fact("Full Name", "", "Ann Lee")
AGE = Fact("Age", "", "32")
ADDRESS = Fact("Street Address", "home", "32 Marlowe Court")


def person(subject: str, *facts: Fact) -> Profile:
    return Profile(subject, SHE, Place("Ireland", "Dublin"), facts)


ANN = {"A": person("A", NAME, AGE, ADDRESS)}


def found(text: str, profiles: dict[str, Profile]) -> list[tuple[tuple[str, ...], str, int]]:
    return [(m.subjects, m.fact.category, span[0]) for m, span in find_mentions(text, profiles)]


def rules(text: str, profiles: dict[str, Profile] = ANN) -> list[str]:
    return [p.rule for p in value_problems("s", find_mentions(text, profiles), profiles)]


@pytest.mark.parametrize(
    "text",
    [
        "<query>Why?</query>",
        "Gladly:\n\n```xml\n<query>\n  Why?\n</query>\n```\nAnything else?",
        "<think>A <query>bad</query> one first.</think><query>Why?</query>",
        "<QUERY>Why?</QUERY>",
        "<query>Who?</query> No, better: <query>Why?</query>",
        "<query>“Why?”</query>",
        "<scenario>A form.</scenario>\n<query>Why?",
        "Scenario: a form\n**Query:** Why?",
        'query: "Why?"',
    ],
)
def test_the_part_is_found_however_it_is_wrapped(text: str) -> None:
    assert read_part(Completion(text, Finish.STOP), "query") == "Why?"


@pytest.mark.parametrize("text", ["", "Why?", "<query></query>", "<think><query>Why?</query>"])
def test_there_may_be_no_such_part(text: str) -> None:
    assert read_part(Completion(text, Finish.STOP), "query") is None


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.REFUSAL, Finish.FILTER])
def test_an_answer_that_did_not_end_well_has_no_part(finish: Finish) -> None:
    assert read_part(Completion("<query>Why?</query>", finish), "query") is None


def test_a_value_inside_another_is_no_mention() -> None:
    assert found("Ann Lee, 32, of 32 Marlowe Court", ANN) == [
        (("A",), "Full Name", 0),
        (("A",), "Age", 9),
        (("A",), "Street Address", 16),
    ]


def test_a_value_of_both_is_a_mention_of_both() -> None:
    profiles = {"A": person("A", NAME, ADDRESS), "B": person("B", ADDRESS)}

    assert found("32 Marlowe Court", profiles) == [(("A", "B"), "Street Address", 0)]


@given(st.lists(st.sampled_from(["Ann Lee", "32", "132", "32 Marlowe Court", "cat"])))
def test_mentions_hold_their_values_and_do_not_overlap(words: list[str]) -> None:
    text = ", ".join(words)
    mentions = find_mentions(text, ANN)

    assert all(text[start:end] == mention.fact.value for mention, (start, end) in mentions)
    assert len(mentions) == sum(word in {"Ann Lee", "32", "32 Marlowe Court"} for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann Lee, 32, of 32 Marlowe Court. Ann Lee.", []),
        ("Ann Lee of 32 Marlowe Court.", ["value-missing"]),
        ("Ann Lee, 32-ish, of 32 Marlowe Court; 32 cats.", ["value-repeated"]),
        ("Ann, 32, of 32 Marlowe Court.", ["value-missing"]),
        ("Ann Lee, 132, of 132 Marlowe Court.", ["value-missing", "value-missing"]),
    ],
)
def test_every_value_stands_once_and_a_name_at_least_once(text: str, expected: list[str]) -> None:
    assert rules(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 100, []),
        ("a" * 49, ["length"]),
        ("a" * 181, ["length"]),
        ("**Ann**" + "a" * 93, ["markup"]),
        ("[Ann]" + "a" * 95, ["markup"]),
        ("# Note\n" + "a" * 93, ["markup"]),
        ("Unit #4" + "a" * 93, []),
    ],
)
def test_a_description_is_plain_and_of_its_length(text: str, expected: list[str]) -> None:
    assert [problem.rule for problem in description_problems("s", text, 100)] == expected


@pytest.mark.parametrize(("chars", "expected"), [(19, 1), (20, 0), (700, 0), (701, 1)])
def test_a_query_is_a_few_sentences(chars: int, expected: int) -> None:
    assert len(list(query_length_problems("s", "a" * chars))) == expected
