from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pii_bench.construction.ask import Interviewer, Needed, viewpoint
from pii_bench.construction.bank import Bank
from pii_bench.construction.markup import HE, SHE, I
from pii_bench.construction.people import Draft, Profile
from tests.construction.world import bank, fact, person, writer

JOB, AGE, LOAN = fact("Occupation", "porter"), fact("Age", "47"), fact("Loan Amount", "$14,600")
ROAD = fact("Street Address: home", "Storgatan 14")

ANN = person(("Full Name", "Ann Lee"), ("Occupation", "porter"), ("Age", "47"))
BO = person(("Full Name", "Bo Ek"), ("Age", "19"), subject="B", voice=HE)
ANN_JOB, ANN_AGE, BO_AGE = ("A", JOB), ("A", AGE), ("B", fact("Age", "19"))


def interviewer(needs: str = "Age; Occupation; Loan Amount") -> Interviewer:
    """One scenario; each category has one abstraction, whatever the level."""

    def levels(frame: str, facet: str = "") -> Bank:
        return bank({level: [frame] for level in ("near", "mid", "far")}, facet)

    own = writer(
        facts={
            "Age": levels("how old {S} {am/is/are}"),
            "Occupation": levels("{P} trade"),
            "Loan Amount": levels("what {S} {owe/owes}"),
        },
        queries={
            "career": Bank(
                {
                    ("raise", "needs"): (needs,),
                    ("raise", "one"): ("Does <1> help {O}?",),
                    ("raise", "two"): ("Given <1> and <2>, should {S} ask?",),
                    ("raise", "three"): ("Weigh <1>, <2> and <3> for {O}.",),
                }
            )
        },
    )
    return Interviewer(own, Random(1))


PEOPLE = {"A": ANN, "B": BO}


@pytest.mark.parametrize(
    ("needs", "people", "asker", "expected"),
    [
        ([ANN_AGE], {"A": I}, "A", "Does how old I am help me?"),
        (
            [ANN_AGE, ANN_JOB],
            {"A": replace(SHE, role="the client")},
            "",
            # The first mention is the role, all later ones are pronouns.
            "Given how old the client is and her trade, should she ask?",
        ),
        (
            # Two people: who asks is "I", the other is named by a role.
            [ANN_JOB, BO_AGE],
            {"A": I, "B": replace(HE, role="my son")},
            "A",
            "Given my trade and how old my son is, should I ask?",
        ),
        (
            [BO_AGE],
            {"A": I, "B": replace(HE, role="my son")},
            "A",
            "Does how old my son is help him?",
        ),
    ],
)
def test_questions_speak_of_people_as_the_asker_would(
    needs: list[Needed], people: dict[str, object], asker: str, expected: str
) -> None:
    asked = interviewer().ask("career/raise", tuple(needs), PEOPLE, people, asker)  # type: ignore[arg-type]
    assert asked.text == expected
    assert (asked.asker, asked.scenario, asked.needs) == (asker, "career/raise", tuple(needs))


@pytest.mark.parametrize("count", [1, 2])
def test_as_many_facts_are_chosen_as_wanted(count: int) -> None:
    chosen = interviewer().choose([ANN_JOB, ANN_AGE, ("A", ROAD)], count)
    assert chosen is not None
    assert chosen[0] == "career/raise"
    assert len(chosen[1]) == count
    assert set(chosen[1]) <= {ANN_JOB, ANN_AGE}, "the scenario needs no address"


def test_what_another_person_has_too_comes_first() -> None:
    for seed in range(20):
        own = interviewer()
        own.random = Random(seed)
        chosen = own.choose([ANN_JOB, ANN_AGE, BO_AGE], 1)
        assert chosen is not None
        assert chosen[1][0][1].category == "Age"


def test_facts_to_avoid_are_never_needed() -> None:
    chosen = interviewer().choose([ANN_JOB, ANN_AGE], 1, avoid=frozenset({ANN_AGE}))
    assert chosen == ("career/raise", (ANN_JOB,))
    assert interviewer().choose([ANN_AGE], 1, avoid=frozenset({ANN_AGE})) is None


def test_without_enough_facts_there_is_no_scenario() -> None:
    assert interviewer().choose([ANN_JOB, ANN_AGE], 3) is None


def test_one_value_is_not_needed_of_two_people() -> None:
    twins: list[Needed] = [("A", AGE), ("B", AGE)]
    assert interviewer().choose(twins, 2) is None


@pytest.mark.parametrize(
    ("needs", "fits"),
    [
        ("Street Address: home", True),
        ("Street Address", True),  # of whatever facet
        ("Street Address: mail", False),
    ],
)
def test_scenarios_may_need_a_facet(needs: str, fits: bool) -> None:
    assert (interviewer(needs).choose([("A", ROAD)], 1) is not None) == fits


def test_scenarios_take_turns() -> None:
    lines = {("a", "needs"): ("Age",), ("b", "needs"): ("Age",)}
    own = Interviewer(writer(queries={"legal": Bank(lines)}), Random(1))
    chosen = [own.choose([ANN_AGE], 1) for _ in range(6)]
    names = [each[0] for each in chosen if each]
    assert [set(names[n : n + 2]) for n in (0, 2, 4)] == [{"legal/a", "legal/b"}] * 3


# Who asks.


def draft(register: str, relation: str | None = None, **roles: str) -> Draft:
    return Draft((), register, relation, "", roles)


def seen_by(text: Draft, profiles: dict[str, Profile]) -> set[tuple[str, tuple[object, ...]]]:
    return {
        (asker, tuple(people.values()))
        for asker, people in (viewpoint(text, profiles, Random(seed)) for seed in range(60))
    }


def test_of_one_person_with_a_role_they_or_somebody_else_asks() -> None:
    assert seen_by(draft("case-note", A="the client"), {"A": ANN}) == {
        ("A", (I,)),
        ("", (replace(SHE, role="the client"),)),
    }


def test_of_one_person_without_a_role_they_ask() -> None:
    assert seen_by(draft("letter"), {"A": ANN}) == {("A", (I,))}


def test_of_two_people_either_or_somebody_else_asks() -> None:
    text = Draft(
        (),
        "case-note",
        "parent-child",
        "",
        {
            "A": "the mother",
            "B": "the son",
            "A speaks of B": "my son",
            "B speaks of A": "my mother",
        },
    )
    assert seen_by(text, PEOPLE) == {
        ("A", (I, replace(HE, role="my son"))),
        ("B", (replace(SHE, role="my mother"), I)),
        ("", (replace(SHE, role="the mother"), replace(HE, role="the son"))),
    }
