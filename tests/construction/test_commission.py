from __future__ import annotations

import pytest

from pii_bench.construction.build import Plan
from pii_bench.construction.commission import draw_commissions, is_sound
from pii_bench.construction.markup import HE, SHE
from pii_bench.construction.people import Fact, Place, Profile
from pii_bench.construction.relations import RELATIONS
from pii_bench.taxonomy import PiiType

TYPES = dict.fromkeys(PiiType, 8)
PAIRS = Plan("multi", "test", 2, 4, TYPES, 600, {1: 0.3, 2: 0.4, 3: 0.3})

ANN = Fact("Full Name", "", "Ann Lee")
TOM = Fact("Full Name", "", "Tom Ray")
HOME = Fact("Street Address", "home", "4 Marlowe Court")
LOAN = Fact("Loan Amount", "", "$8,000")
BALANCE = Fact("Account Balance", "", "$8,000")
HASH = Fact("Password Hash", "", "no hash")


def person(subject: str, *facts: Fact) -> Profile:
    return Profile(subject, SHE if subject == "A" else HE, Place("Ireland", "Dublin"), facts)


@pytest.mark.parametrize(
    ("own", "other", "sound"),
    [
        ((LOAN,), (HOME,), True),
        ((HOME,), (HOME,), True),
        ((LOAN,), (LOAN,), False),
        ((LOAN, BALANCE), (HOME,), False),
        ((HASH,), (HOME,), False),
    ],
    ids=["all different", "shared home", "the same loan", "one text, two facts", "no such hash"],
)
def test_values_must_be_told_apart_and_be_of_their_format(
    own: tuple[Fact, ...], other: tuple[Fact, ...], sound: bool
) -> None:
    profiles = {"A": person("A", ANN, *own), "B": person("B", TOM, *other)}

    assert is_sound(profiles, RELATIONS["partners"]) is sound


def test_the_same_seed_gives_the_same_commissions() -> None:
    first = list(draw_commissions(PAIRS, "seed", "w-multi"))

    assert list(draw_commissions(PAIRS, "seed", "w-multi")) == first
    assert list(draw_commissions(PAIRS, "other", "w-multi")) != first


def test_what_is_needed_is_of_the_people_and_no_name() -> None:
    for commission in draw_commissions(PAIRS, "seed", "w-multi"):
        assert is_sound(commission.profiles, commission.relation)
        assert 1 <= len(commission.needs) <= 3
        for subject, fact in commission.needs:
            assert fact in commission.profiles[subject].facts
            assert fact.category not in {"Full Name", "Nickname", "Social Media Handle"}
