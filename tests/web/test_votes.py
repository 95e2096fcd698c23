from __future__ import annotations

import pytest

from pii_bench.web.marks import Choice, Item, Mark
from pii_bench.web.votes import (
    ASPECTS,
    Agreement,
    Ballot,
    agreement,
    agreement_by_pair,
    agreement_by_value,
    agreement_with_others,
    align_persons,
    ballot_of_choice,
    ballot_of_marks,
    ballot_on_owners,
    ballots_on_owners,
    merge_choices,
    merge_marks,
)

TEXT = "Ann met Bo in Bonn."
ANN = Mark(0, 3, ("A",), "PER", "Full Name")
NICKNAME = Mark(0, 3, ("A",), "PER", "Nickname")
OPEN = Mark(0, 3, ("A",), "PER")
BO = Mark(8, 10, ("B",), "PER", "Full Name")
BONN = Mark(14, 18, ("B",), "LOC", "City/Region")
ITEMS = (
    Item("A", "Ann", "PER", "Full Name", ((0, 3),)),
    Item("B", "Bo", "PER", "Full Name", ((8, 10),)),
    Item("B", "Bonn", "LOC", "City/Region", ((14, 18),)),
)


def test_a_ballot_of_stage_1_labels_each_token() -> None:
    ballot = ballot_of_marks("s", "eva", TEXT, [BONN, ANN])

    assert ballot.labels == (("PER",), (), (), (), ("LOC",), ())
    assert ballot.chosen == {("PER", (0, 3, "PER")), ("LOC", (14, 18, "LOC"))}


def test_a_ballot_of_stage_2_labels_each_entity_as_needed_or_not() -> None:
    assert ballot_of_choice("s", "eva", range(3), Choice((2,))).labels == (False, False, True)
    only = ballot_of_choice("s", "eva", [0, 1], Choice((0, 2)))
    assert only.labels == (True, False)
    assert only.chosen == {0}


def test_ballots_on_owners_label_the_tokens_that_all_marked() -> None:
    versions = {"eva": [ANN, BO, BONN], "tom": [BO, Mark(14, 18, ("A", "B"), "LOC")]}

    ballots = [ballot_of_marks("s", who, TEXT, own, "person") for who, own in versions.items()]
    eva, tom = ballots_on_owners(ballots)

    assert eva.labels == (("B",), ("B",))
    assert tom.labels == (("B",), ("A", "B"))
    assert tom.chosen == {(0, "B"), (1, "A"), (1, "B")}


def test_owners_in_stage_2_include_corrections() -> None:
    ballot = ballot_on_owners("s", "eva", ITEMS, Choice((), {2: "A"}))

    assert ballot.labels == (("A",), ("B",), ("A",))


def ballot(sample: str, annotator: str, *chosen: int) -> Ballot:
    return Ballot(sample, annotator, tuple(n in chosen for n in range(4)), frozenset(chosen))


def test_agreement_of_two_annotators_matches_the_formulas() -> None:
    # 8 units: 3 both yes, 1 only eva, 4 both no. Observed 7/8; expected 4/8 * 3/8 + 4/8 * 5/8.
    ballots = [
        ballot("s1", "eva", 0, 1),
        ballot("s1", "tom", 0, 1),
        ballot("s2", "eva", 0, 1),
        ballot("s2", "tom", 0),
        ballot("s3", "eva", 0),
    ]

    result = agreement(ballots)

    assert result.samples == 2
    assert result.cohen == pytest.approx((7 / 8 - 1 / 2) / (1 / 2))
    # Fleiss: 7 yes and 9 no of 16.
    expected = (7 / 16) ** 2 + (9 / 16) ** 2
    assert result.fleiss == pytest.approx((7 / 8 - expected) / (1 - expected))
    # Shared 2 + 1, chosen 4 by the one and 3 by the other.
    assert result.f1 == pytest.approx(6 / 7)
    assert result.exact == pytest.approx(1 / 2)
    assert list(agreement_by_pair(ballots)) == [("eva", "tom")]


def test_agreement_on_a_value_counts_only_marks_with_that_value() -> None:
    other = Mark(14, 18, ("A",), "LOC", "Country")
    versions = {"eva": [ANN, BO, BONN], "tom": [ANN, other], "kim": [ANN, BO, other]}

    by_value = {
        aspect: agreement_by_value(
            ballot_of_marks("s", who, TEXT, marks, aspect) for who, marks in versions.items()
        )
        for aspect in ASPECTS
    }

    only_b = {
        who: [mark for mark in marks if mark.persons == ("B",)] for who, marks in versions.items()
    }
    expected = agreement(ballot_of_marks("s", who, TEXT, own) for who, own in only_b.items())
    # F1 of B: eva has two, tom none, kim one of them: 2 * 1 of 3 + 0 of 2 + 0 of 1.
    assert expected.f1 == pytest.approx(2 * 1 / (3 + 2 + 1))
    assert by_value["person"]["B"].f1 == expected.f1
    assert by_value["person"]["B"].exact == expected.exact == 0
    assert list(by_value["type"]) == ["LOC", "PER"]
    assert by_value["type"]["LOC"].fleiss == 1
    assert by_value["category"]["City/Region"].f1 == 0
    # One unit of six: 2 of 3 agree, 5 units all; 2 of 18 labels are Country.
    observed, chance = (5 + 1 / 3) / 6, (2 / 18) ** 2 + (16 / 18) ** 2
    assert by_value["category"]["Country"].fleiss == pytest.approx(
        (observed - chance) / (1 - chance)
    )


def test_an_annotator_is_compared_with_each_other() -> None:
    ballots = [ballot("s", "eva", 0), ballot("s", "tom", 0), ballot("s", "kim", 1)]

    assert agreement_with_others(ballots, "eva").f1 == pytest.approx(1 / 2)
    assert agreement_with_others(ballots, "kim").f1 == 0


def test_agreement_is_undefined_without_choices_or_common_samples() -> None:
    assert agreement([ballot("s", "eva"), ballot("s", "tom")]).f1 is None
    assert agreement([ballot("s", "eva", 0)]) == Agreement(0, None, None, None, None)


@pytest.mark.parametrize(
    ("versions", "merged"),
    [
        ([[ANN, BO, BONN], [ANN, BO], [NICKNAME, BO]], (ANN, BO)),
        # Half is not a majority.
        ([[ANN], []], ()),
        # An open category does not vote.
        ([[OPEN], [OPEN], [ANN]], (ANN,)),
    ],
)
def test_marks_and_categories_are_merged_by_majority(
    versions: list[list[Mark]], merged: tuple[Mark, ...]
) -> None:
    assert merge_marks(TEXT, versions) == merged


def test_letters_of_persons_are_aligned() -> None:
    swapped = [Mark(0, 3, ("B",), "PER", "Full Name"), Mark(8, 10, ("A",), "PER", "Full Name")]

    aligned = align_persons(TEXT, [[ANN, BO, BONN], swapped])

    assert aligned[1] == (ANN, BO)


def test_a_person_whom_the_leader_does_not_have_gets_a_free_letter() -> None:
    aligned = align_persons(TEXT, [[ANN, BONN], [Mark(8, 10, ("A",), "PER")]])
    # Nothing in common, yet each of the shorter side is matched with somebody.
    assert aligned[1][0].persons in {("A",), ("B",)}
    aligned = align_persons(TEXT, [[ANN, Mark(4, 7, ("A",), "DEM")], [ANN, BO]])
    assert aligned[1] == (ANN, BO)


def test_choices_are_merged_by_majority() -> None:
    choices = [
        Choice((2,), {1: "A"}, True, True, True),
        Choice((1, 2), {1: "A"}, True, True),
        Choice((0,), {}, True, False),
    ]

    assert merge_choices(ITEMS, choices) == Choice((2,), {1: "A"}, True, True, False)
