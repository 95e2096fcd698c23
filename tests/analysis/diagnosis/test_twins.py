from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.diagnosis.twins import (
    Against,
    Asked,
    Reaction,
    TwinRates,
    is_twin,
    twin_rates,
)
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import PEOPLE, couple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample

NEEDS = {
    "original": (("A", "Acme Tools"), ("A", "Oslo")),
    "second": (("A", "32"),),
    "paraphrase": (("A", "Acme Tools"), ("A", "Oslo")),
    "turned": (("B", "Initech"), ("B", "Lima")),
}


def sample_of(kind: str, **changes: str) -> Sample:
    meta = {} if kind == "original" else {"twin": kind, "twin_of": "s1"}
    name = "s1" if kind == "original" else f"s1-{kind}"
    return couple(NEEDS[kind], sample_id=name, meta=meta, **changes)  # type: ignore[arg-type]


def asked(kind: str, answer: Sequence[str] | None, **changes: str) -> Asked:
    prediction = (
        Prediction(Status.REFUSED)
        if answer is None
        else Prediction(Status.OK, related=tuple(answer))
    )
    return Asked.of(sample_of(kind, **changes), prediction)


def reaction(kind: str, before: Sequence[str] | None, after: Sequence[str] | None) -> TwinRates:
    """The one pair of an original and a twin."""
    (rates,) = twin_rates([asked(kind, after)], {"s1": asked("original", before)})
    return rates


RIGHT, TURNED = ("Acme Tools", "Oslo"), ("Initech", "Lima")


@pytest.mark.parametrize(
    ("kind", "expected", "before", "after", "done", "right"),
    [
        ("second", Reaction.CHANGES, RIGHT, ("32",), 1, 1),
        ("second", Reaction.CHANGES, RIGHT, ("Lima",), 1, 0),
        ("second", Reaction.CHANGES, RIGHT, RIGHT, 0, 0),
        ("second", Reaction.CHANGES, RIGHT, ("Oslo", "Acme  Tools"), 0, 0),
        ("paraphrase", Reaction.STAYS, RIGHT, ("Oslo", "Acme  Tools"), 1, 1),
        ("paraphrase", Reaction.STAYS, ("Lima",), ("Lima",), 1, 0),
        ("paraphrase", Reaction.STAYS, (), (), 1, 0),
        ("paraphrase", Reaction.STAYS, RIGHT, ("Oslo",), 0, 0),
        ("turned", Reaction.FOLLOWS, RIGHT, ("Initech", "Lima"), 1, 1),
        # What it got wrong before need not follow, and what else it says does not matter.
        ("turned", Reaction.FOLLOWS, ("Oslo",), ("Lima", "40"), 1, 0),
        ("turned", Reaction.FOLLOWS, RIGHT, ("Lima",), 0, 0),
        ("turned", Reaction.FOLLOWS, RIGHT, RIGHT, 0, 0),
        ("turned", Reaction.FOLLOWS, RIGHT, (), 0, 0),
        # Taking both people's facts is no following.
        ("turned", Reaction.FOLLOWS, (*RIGHT, *TURNED), (*RIGHT, *TURNED), 0, 0),
    ],
)
def test_each_kind_of_twin_expects_a_reaction(
    kind: str,
    expected: Reaction,
    before: Sequence[str],
    after: Sequence[str],
    done: int,
    right: int,
) -> None:
    assert reaction(kind, before, after) == TwinRates(
        expected,
        Against.ORIGINAL,
        pairs=1,
        failed=0,
        undefined=0,
        done=done,
        both_right=right,
    )


def test_an_answer_without_the_needed_leaves_nothing_to_follow() -> None:
    rates = reaction("turned", ("32", "Lima"), ("Lima",))

    assert (rates.pairs, rates.failed, rates.undefined, rates.done) == (1, 0, 1, 0)
    assert rates.rate is None
    assert rates.right_rate == 0


@pytest.mark.parametrize(("after", "rate"), [("Lima", 1), ("Initech", 0)])
def test_a_fact_without_a_category_follows_by_its_type(after: str, rate: int) -> None:
    people = {person: [(t, kind, None) for t, kind, _ in held] for person, held in PEOPLE.items()}
    first = Asked(couple(NEEDS["original"], people=people), frozenset({"Oslo"}))
    meta = {"twin": "turned", "twin_of": "s1"}
    turned = Asked(couple(NEEDS["turned"], people=people, meta=meta), frozenset({after}))

    (rates,) = twin_rates([turned], {"s1": first})

    assert rates.rate == rate


@pytest.mark.parametrize(("before", "after"), [(None, ("32",)), (RIGHT, None), (None, None)])
def test_a_failed_sample_leaves_its_pair_undefined(
    before: Sequence[str] | None, after: Sequence[str] | None
) -> None:
    rates = reaction("second", before, after)

    assert (rates.pairs, rates.failed, rates.done, rates.both_right) == (1, 1, 0, 0)
    assert rates.rate is rates.right_rate is None
    assert Asked.of(sample_of("second"), None).answer is None  # never asked


def test_twins_are_compared_with_the_original_and_with_the_paraphrase() -> None:
    twins = [
        asked("second", ("32",)),
        asked("paraphrase", RIGHT),
        asked("turned", ("Initech", "Lima")),
    ]

    rates = twin_rates(twins, {"s1": asked("original", ())})

    assert [(r.against, r.reaction, r.rate, r.both_right) for r in rates] == [
        (Against.ORIGINAL, Reaction.CHANGES, 1, 0),
        (Against.ORIGINAL, Reaction.STAYS, 0, 0),
        (Against.ORIGINAL, Reaction.FOLLOWS, None, 0),
        (Against.PARAPHRASE, Reaction.CHANGES, 1, 1),
        (Against.PARAPHRASE, Reaction.FOLLOWS, 1, 1),
    ]


def test_a_sample_of_the_same_name_with_another_description_is_no_original() -> None:
    other = asked("original", RIGHT, description="Ann Lee, 32, is with Acme Tools in Oslo!")
    twins = [asked("second", ("32",)), asked("paraphrase", RIGHT)]

    # Without their original the twins are compared with each other.
    (rates,) = twin_rates(twins, {"s1": other})

    assert (rates.against, rates.reaction) == (Against.PARAPHRASE, Reaction.CHANGES)


@pytest.mark.parametrize(
    ("meta", "twin"),
    [
        ({"twin": "second", "twin_of": "s1"}, True),
        ({"twin": "second"}, False),
        ({"twin": "third", "twin_of": "s1"}, False),
        ({}, False),
    ],
)
def test_a_twin_names_its_kind_and_its_original(meta: dict[str, str], twin: bool) -> None:
    assert is_twin(couple(meta=meta)) is twin
