from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pii_bench.construction.markup import (
    HE,
    SHE,
    THEY,
    I,
    MarkupError,
    Person,
    Slot,
    render,
)

TRAINEE = replace(SHE, role="the trainee")
TRAINEES = replace(THEY, role="the trainee")
BOSS = replace(HE, role="the boss")


def text(frame: str, person: Person = SHE, *, seed: int = 0, **values: str) -> str:
    pieces = render(frame, person, values, Random(seed), lambda value: f"a({value})")
    return "".join(f"<{piece.name}>" if isinstance(piece, Slot) else piece for piece in pieces)


@pytest.mark.parametrize(
    ("person", "expected"),
    [
        (I, "I me my mine myself"),
        (SHE, "she her her hers herself"),
        (HE, "he him his his himself"),
        (THEY, "they them their theirs themself"),
    ],
)
def test_each_code_is_a_case_of_the_pronoun(person: Person, expected: str) -> None:
    assert text("{S} {O} {P} {Q} {R}", person) == expected


@pytest.mark.parametrize(
    ("person", "expected"),
    [
        (I, "I work, am tall, do not"),
        (SHE, "she works, is tall, does not"),
        (HE, "he works, is tall, does not"),
        (THEY, "they work, are tall, do not"),
        (TRAINEE, "the trainee works, is tall, does not"),
        (TRAINEES, "the trainee works, is tall, does not"),
    ],
)
def test_verbs_agree_with_the_person(person: Person, expected: str) -> None:
    assert text("{S} {work/works}, {am/is/are} tall, {do/does} not", person) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("{S}", "the trainee"),
        ("{O}", "the trainee"),
        ("{R}", "the trainee"),
        ("{P}", "the trainee's"),
        ("{Q}", "the trainee's"),
    ],
)
def test_the_first_mention_is_the_role(code: str, expected: str) -> None:
    assert text(code, TRAINEE) == expected


def test_later_mentions_of_a_role_are_pronouns() -> None:
    assert text("{P} key: {S} lost {P} key", TRAINEE) == "the trainee's key: she lost her key"


def test_a_role_in_s_takes_the_bare_apostrophe() -> None:
    assert text("{P} chair", BOSS) == "the boss' chair"


def test_verbs_after_they_are_plural_once_the_pronoun_stands() -> None:
    frame = "{S} {work/works} because {S} {like/likes} it"
    assert text(frame, TRAINEES) == "the trainee works because they like it"


def test_verbs_stay_singular_after_another_case_of_the_pronoun() -> None:
    frame = "{S} {feed/feeds} {P} cat and {sleep/sleeps}"
    assert text(frame, TRAINEES) == "the trainee feeds their cat and sleeps"


def test_slots_stand_by_their_names() -> None:
    assert text("from <A> to <V>", A="y", V="x") == "from <A> to <V>"


def test_an_article_is_chosen_by_the_value() -> None:
    assert text("<a V> and <V>", V="hour") == "a(hour) <V> and <V>"


def test_one_alternative_is_chosen_and_may_be_empty() -> None:
    chosen = {text("so[| very| quite] far", seed=seed) for seed in range(40)}
    assert chosen == {"so far", "so very far", "so quite far"}


def test_alternatives_may_hold_markup() -> None:
    chosen = {text("[{S} {own/owns} <V>|<a V> is {Q}]", V="x", seed=seed) for seed in range(20)}
    assert chosen == {"she owns <V>", "a(x) <V> is hers"}


def test_the_role_stands_once_whatever_alternative_is_chosen() -> None:
    texts = {text("[{S}|{P} dog] ran from {O}", TRAINEE, seed=seed) for seed in range(20)}
    assert texts == {"the trainee ran from her", "the trainee's dog ran from her"}


@pytest.mark.parametrize(
    "frame",
    [
        "{X} left",  # no such case
        "{a/b/c/d}",  # no such verb
        "{work}",
        "{}",
        "{S left",  # never closed
        "S} left",
        "<V left",
        "[a|b",
        "a|b",  # alternatives outside brackets
        "[a [b|c]|d]",  # nested alternatives
    ],
)
def test_a_frame_that_is_not_of_the_markup_is_an_error(frame: str) -> None:
    with pytest.raises(MarkupError):
        text(frame, V="x")


def test_a_slot_without_a_value_is_an_error() -> None:
    with pytest.raises(MarkupError, match="no value for <V>"):
        text("to <V>")
