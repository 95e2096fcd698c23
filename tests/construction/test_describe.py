from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.build import description_of
from pii_bench.construction.describe import (
    FIRST_PERSON,
    PAIR_REGISTERS,
    SINGLE_REGISTERS,
    Describer,
    takes_alias,
)
from pii_bench.construction.grammar import Dealer, load_banks
from pii_bench.construction.markup import HE, SHE
from pii_bench.construction.people import Draft, Fact, Mention, Profile
from pii_bench.construction.relations import RELATIONS
from pii_bench.construction.sentences import Writer
from tests.construction.world import person

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB, AGE, LOAN = ("Occupation", "night porter"), ("Age", "47"), ("Loan Amount", "$14,600")
ROAD = ("Street Address: home", "Storgatan 14")
ANN = person(("Full Name", "Ann Lee"), JOB, AGE, LOAN, ROAD, ("Blood Type", "O+"))
BO = person(("Full Name", "Bo Ek"), ("Age", "19"), ROAD, ("Weight", "64 kg"), subject="B", voice=HE)
PARENT = RELATIONS["parent-child"]
LABELLED = {"transcript", "chat"}


def describer(seed: int = 1) -> Describer:
    random = Random(seed)
    return Describer(Writer(load_banks("test"), Dealer(random), random), random)


def mentions(draft: Draft) -> Iterator[Mention]:
    for block in draft.blocks:
        yield from (piece for piece in block if isinstance(piece, Mention))


def told(draft: Draft) -> Counter[Fact]:
    return Counter(mention.fact for mention in mentions(draft))


def others(profile: Profile) -> set[Fact]:
    return set(profile.facts[1:])


@pytest.mark.parametrize("register", SINGLE_REGISTERS)
@pytest.mark.parametrize("seed", range(3))
def test_of_one_person_every_fact_is_told_once(register: str, seed: int) -> None:
    draft = describer(seed).single(ANN, register, 800)
    assert draft.register == register
    assert draft.relation is None
    assert {mention.subjects for mention in mentions(draft)} == {("A",)}
    counts = told(draft)
    name = counts.pop(ANN.facts[0])
    assert counts == dict.fromkeys(others(ANN), 1)
    # Records of talk name the speaker before each turn.
    assert name > 1 if register in LABELLED else name == 1


@pytest.mark.parametrize("register", PAIR_REGISTERS)
@pytest.mark.parametrize("seed", range(3))
def test_of_two_people_every_fact_is_told_once_and_what_they_share_once_of_both(
    register: str, seed: int
) -> None:
    draft = describer(seed).pair(ANN, BO, PARENT, register, 600)
    assert (draft.register, draft.relation) == (register, "parent-child")
    rest = [m for m in mentions(draft) if m.fact.category != "Full Name"]
    shared = Mention(("A", "B"), ANN.facts[4])
    assert Counter(rest) == Counter(
        [
            shared,
            *(Mention(("A",), fact) for fact in others(ANN) - {shared.fact}),
            *(Mention(("B",), fact) for fact in others(BO) - {shared.fact}),
        ]
    )
    assert {m.subjects for m in mentions(draft) if m not in rest} == {("A",), ("B",)}


def test_what_two_have_by_chance_is_told_of_each() -> None:
    twin = person(("Full Name", "Bo Ek"), ("Blood Type", "O+"), AGE, subject="B", voice=HE)
    draft = describer().pair(ANN, twin, PARENT, "family-scene", 500)
    blood = [m.subjects for m in mentions(draft) if m.fact.value == "O+"]
    assert sorted(blood) == [("A",), ("B",)]


@pytest.mark.parametrize("register", SINGLE_REGISTERS)
def test_texts_are_about_as_long_as_wanted(register: str) -> None:
    lengths = [len(description_of(describer(s).single(ANN, register, 900))) for s in range(12)]
    assert 900 * 0.85 < sum(lengths) / len(lengths) < 900 * 1.25


@pytest.mark.parametrize("register", [*SINGLE_REGISTERS])
def test_no_markup_is_left(register: str) -> None:
    for seed in range(4):
        own = describer(seed)
        text = description_of(own.single(ANN, register, 900))
        if register in PAIR_REGISTERS:
            text += description_of(own.pair(ANN, BO, PARENT, register, 600))
        assert not set("{}<>|[]") & set(text)
        assert "  " not in text


@pytest.mark.parametrize("register", sorted(FIRST_PERSON))
def test_first_person_registers_say_i(register: str) -> None:
    text = description_of(describer().single(ANN, register, 900))
    assert " my " in text.lower() or " I " in text


def test_roles_are_the_nouns_for_their_voices() -> None:
    mother = describer().pair(ANN, BO, PARENT, "case-note", 500).roles
    bank = load_banks("test").relations["parent-child"]
    (outside,), (own,) = bank.frames("roles outsider"), bank.frames("roles own")
    # Three nouns a side, for she, he and they; Ann is she, Bo is he.
    assert mother["A"] == outside.split(" || ")[0].split(", ")[0]
    assert mother["B"] == outside.split(" || ")[1].split(", ")[1]
    assert mother["A speaks of B"] == own.split(" || ")[0].split(", ")[1]
    assert mother["B speaks of A"] == own.split(" || ")[1].split(", ")[0]


def test_aliases_stand_where_people_have_such() -> None:
    moss = person(("Nickname", "Moss"), JOB, AGE, LOAN, voice=SHE)
    for register in SINGLE_REGISTERS:
        if takes_alias(register):
            draft = describer().single(moss, register, 600)
            assert told(draft)[moss.facts[0]] >= 1
    assert not takes_alias("case-note")


def test_the_hook_can_be_found_in_the_text() -> None:
    draft = describer().single(ANN, "forum-post", 700)
    lines = load_banks("test").registers["forum-post"].frames("hook")
    assert draft.hook in {line.split(" || ")[1] for line in lines}


def test_the_same_state_writes_the_same() -> None:
    one, other = (describer(4).single(ANN, "letter", 800) for _ in range(2))
    assert one == other
