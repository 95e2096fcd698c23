from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.recall import Rule, Share, shares
from pii_bench.datasets.catalog import load_dataset
from pii_bench.scorer import Counts
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.analysis.evaluated import FAILED, UNASKED, answer, detected, evaluated, run_name
from tests.builders import make_sample

if TYPE_CHECKING:
    from pii_bench.analysis.runs import EvaluatedRun
    from pii_bench.datasets.sample import Sample

DETECTION = run_name(task=Task.DETECTION, strategy="detection")


def two_people() -> Sample:
    """Ann Lee, 32, of Halifax, and Bo Ray, 32, of Leeds; asked are both ages and Leeds."""
    people = [("A", "Ann Lee", "Halifax"), ("B", "Bo Ray", "Leeds")]
    return make_sample(
        "s1",
        subjects=[
            {
                "id": subject,
                "entities": [
                    {"text": name, "type": "PER", "category": "Full Name"},
                    {"text": "32", "type": "DEM", "category": "Age"},
                    {"text": city, "type": "LOC", "category": "City/Region"},
                ],
            }
            for subject, name, city in people
        ],
        description="Ann Lee is 32 and of Halifax, Bo Ray is 32 and of Leeds.",
        related=[
            {"subject": "A", "text": "32"},
            {"subject": "B", "text": "32"},
            {"subject": "B", "text": "Leeds"},
        ],
    )


def counts(run: EvaluatedRun, rule: Rule) -> dict[str, tuple[int, int | None, int]]:
    """Name to found, predicted and gold."""
    return {s.name: (s.found, s.predicted, s.gold) for s in shares([run]) if s.rule is rule}


def test_strict_counts_within_the_matched_person() -> None:
    # Bo Ray's city is given to Ann Lee.
    found = detected(
        {"Ann Lee": "PER", "32": "DEM", "Leeds": "LOC"}, {"Bo Ray": "PER", "32": "QUANTITY"}
    )

    run = evaluated(DETECTION, [two_people()], {"s1": found})

    assert counts(run, Rule.STRICT) == {
        "PER": (2, 2, 2),
        "LOC": (0, 1, 2),
        "DEM": (1, 1, 2),
        "QUANTITY": (0, 1, 0),
        "Full Name": (2, None, 2),
        "City/Region": (0, None, 2),
        "Age": (1, None, 2),
    }


def test_typed_asks_not_whose_it_is_and_counts_a_text_once() -> None:
    # Types and spaces are compared as the scorer does.
    found = detected(
        {"Ann  Lee": " per ", "32": "DEM", "Leeds": "LOC"}, {"Bo Ray": "ORG", "32": "DEM"}
    )

    run = evaluated(DETECTION, [two_people()], {"s1": found})

    assert counts(run, Rule.TYPED) == {
        "PER": (1, 1, 2),
        "LOC": (1, 1, 2),
        "ORG": (0, 1, 0),
        "DEM": (1, 1, 1),
        "Full Name": (1, None, 2),
        "City/Region": (1, None, 2),
        "Age": (1, None, 1),
    }


def test_a_query_needs_texts_and_its_answers_name_no_types() -> None:
    run = evaluated(run_name(), [two_people()], {"s1": answer("32", "Halifax")})

    assert counts(run, Rule.TEXT) == {
        "LOC": (0, None, 1),
        "DEM": (1, None, 1),
        "City/Region": (0, None, 1),
        "Age": (1, None, 1),
    }


def test_a_failure_finds_nothing_and_what_was_never_asked_is_not_counted() -> None:
    samples = [make_sample("a"), make_sample("b"), make_sample("c")]
    answers = {"a": detected({"32": "DEM"}), "b": FAILED, "c": UNASKED}

    run = evaluated(DETECTION, samples, answers)

    for rule in (Rule.STRICT, Rule.TYPED):
        assert counts(run, rule)["DEM"] == (1, 1, 2)


@pytest.mark.parametrize(
    ("found", "predicted", "gold", "rates"),
    [
        (3, 4, 6, (0.75, 0.5, 0.6)),
        (0, 0, 5, (None, 0.0, 0.0)),
        (0, 5, 0, (0.0, None, 0.0)),
        (0, 0, 0, (None, None, None)),
        (0, None, 5, (None, 0.0, None)),
    ],
)
def test_rates_divide_sums_once_and_without_a_denominator_there_is_none(
    found: int, predicted: int | None, gold: int, rates: tuple[float | None, ...]
) -> None:
    share = Share(DETECTION, Rule.TYPED, "type", "DEM", "DEM", found, predicted, gold)

    assert (share.precision, share.recall, share.f1) == rates


def test_who_names_no_subjects_has_no_strict_shares() -> None:
    run = evaluated(
        DETECTION, [make_sample("a")], {"a": detected({"32": "DEM"})}, names_subjects=False
    )

    assert {share.rule for share in shares([run])} == {Rule.TYPED}


def test_masking_has_no_shares_of_its_own() -> None:
    run = evaluated(run_name(task=Task.MASKING), [make_sample("a")], {"a": answer("32")})

    assert shares([run]) == []


def test_without_categories_there_are_types_alone() -> None:
    entity = {"text": "32", "type": "DEM"}
    sample = make_sample("a", subjects=[{"id": "A", "entities": [entity]}])

    run = evaluated(DETECTION, [sample], {"a": detected({"32": "DEM"})})

    assert {share.level for share in shares([run])} == {"type"}


_SAMPLES = load_dataset("demo").samples
_TEXTS = sorted({e.text for sample in _SAMPLES for e in sample.entities} | {"nobody"})
_SUBJECTS = st.lists(
    st.lists(st.tuples(st.sampled_from(_TEXTS), st.sampled_from(["PER", "LOC", "DEM"]))).map(tuple),
    max_size=3,
).map(tuple)


@given(st.lists(_SUBJECTS, min_size=3, max_size=3))
def test_strict_shares_of_types_add_up_to_the_scorers_counts(
    subjects: list[tuple[tuple[tuple[str, str], ...], ...]],
) -> None:
    answers = {
        sample.id: Prediction(Status.OK, subjects=each)
        for sample, each in zip(_SAMPLES, subjects, strict=False)
    }
    run = evaluated(DETECTION, _SAMPLES, answers)

    types = [s for s in shares([run]) if s.rule is Rule.STRICT and s.level == "type"]

    assert Counts(
        sum(s.found for s in types),
        sum(s.predicted or 0 for s in types),
        sum(s.gold for s in types),
    ) == sum((score.counts["strict"] for score in run.evaluation.scores), Counts())
