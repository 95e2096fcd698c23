from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.diagnosis.errors import NEED_DETECTION, ErrorClass, Side, classify
from pii_bench.analysis.diagnosis.exposure import judge_answer
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.runs.evaluation import score_sample
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.analysis.diagnosis.samples import EVERYONE, PEOPLE, couple

if TYPE_CHECKING:
    from pii_bench.systems.predictions import Subjects

NEGATIVE, POSITIVE = Side.FALSE_NEGATIVE, Side.FALSE_POSITIVE
NEEDED = ("Acme Tools", "Oslo")

Held = tuple[str, str, str | None]
"""Text, type and category."""

Errors = dict[tuple[ErrorClass, Side], int]


def lacking(kind: ErrorClass, count: int = 1) -> Errors:
    return {(kind, NEGATIVE): count}


def too_much(kind: ErrorClass, count: int = 1) -> Errors:
    return {(kind, POSITIVE): count}


def without(*texts: str, **types: str) -> Subjects:
    """What a perfect detector says, but for some texts, and for the types of others."""
    return tuple(
        tuple((text, types.get(text, kind)) for text, kind in subject if text not in texts)
        for subject in EVERYONE
    )


def plus(text: str, kind: str, without: Subjects = EVERYONE) -> Subjects:
    return (*without, ((text, kind),))


@pytest.mark.parametrize(
    ("chosen", "detected", "of_query", "of_masking"),
    [
        pytest.param(NEEDED, EVERYONE, {}, {}, id="right"),
        # Needed but not chosen, though detected; or for it was missed,
        (
            *(("Acme Tools",), EVERYONE),
            *(lacking(ErrorClass.NOT_CHOSEN), too_much(ErrorClass.NOT_CHOSEN)),
        ),
        (("Acme Tools",), without("Oslo"), lacking(ErrorClass.MISSED), {}),
        # detected with another span (Oslo is hidden, and "in" with it),
        (
            *(("Acme Tools",), plus("in Oslo", "LOC", without("Oslo"))),
            *(lacking(ErrorClass.WRONG_SPAN), too_much(ErrorClass.WRONG_SPAN, 2)),
        ),
        # or taken for another type; a type among several is right.
        (
            *(("Acme Tools",), without(Oslo="PER")),
            *(lacking(ErrorClass.WRONG_TYPE), too_much(ErrorClass.WRONG_TYPE)),
        ),
        (
            *(("Acme Tools",), plus("Oslo", "PER")),
            *(lacking(ErrorClass.NOT_CHOSEN), too_much(ErrorClass.NOT_CHOSEN)),
        ),
        # Another span was chosen: what is kept can be read, and Oslo in it.
        (
            *(("Acme Tools", "in Oslo"), EVERYONE),
            *({**lacking(ErrorClass.WRONG_SPAN), **too_much(ErrorClass.WRONG_SPAN)}, {}),
        ),
        # Without detection nothing tells why.
        (
            *(("Acme Tools",), None),
            *(lacking(ErrorClass.NOT_CHOSEN), lacking(ErrorClass.FAILED, 6)),
        ),
        # Chosen but not needed, though annotated; and taken for another type;
        (
            *((*NEEDED, "32"), EVERYONE),
            *(too_much(ErrorClass.NOT_RELEVANT), lacking(ErrorClass.NOT_RELEVANT)),
        ),
        (
            *((*NEEDED, "32"), without(**{"32": "CODE"})),
            *(too_much(ErrorClass.WRONG_TYPE), lacking(ErrorClass.WRONG_TYPE)),
        ),
        # with another span: what is kept can be read, Bo Ray and 40;
        (
            *((*NEEDED, "Bo Ray, 40"), EVERYONE),
            *(too_much(ErrorClass.WRONG_SPAN), lacking(ErrorClass.WRONG_SPAN, 2)),
        ),
        # and no PII; and nowhere in the description.
        ((*NEEDED, "7 saws"), EVERYONE, too_much(ErrorClass.NOT_RELEVANT), {}),
        ((*NEEDED, "7 saws"), plus("7 saws", "QUANTITY"), too_much(ErrorClass.WRONG_TYPE), {}),
        ((*NEEDED, "Bergen"), EVERYONE, too_much(ErrorClass.HALLUCINATED), {}),
        ((*NEEDED, "acme tools"), EVERYONE, too_much(ErrorClass.HALLUCINATED), {}),
        # Masked or not: missed by detection; detected with another span, so that 32 is hidden all
        # the same, and ", is" with it; detected in part; taken for PII; nowhere in the description.
        (NEEDED, without("32", "Lima"), {}, lacking(ErrorClass.MISSED, 2)),
        (NEEDED, plus("32, is", "DEM", without("32")), {}, too_much(ErrorClass.WRONG_SPAN)),
        (NEEDED, plus("Ann", "PER", without("Ann Lee")), {}, lacking(ErrorClass.WRONG_SPAN)),
        (NEEDED, plus("7", "QUANTITY"), {}, too_much(ErrorClass.WRONG_TYPE)),
        (NEEDED, plus("Bergen", "LOC"), {}, too_much(ErrorClass.HALLUCINATED)),
        # The other person's city in place of the needed one; not where both are chosen.
        (
            *(("Acme Tools", "Lima"), EVERYONE),
            {**lacking(ErrorClass.NOT_CHOSEN), **too_much(ErrorClass.WRONG_PERSON)},
            {**too_much(ErrorClass.NOT_CHOSEN), **lacking(ErrorClass.WRONG_PERSON)},
        ),
        (
            *((*NEEDED, "Lima"), EVERYONE),
            *(too_much(ErrorClass.NOT_RELEVANT), lacking(ErrorClass.NOT_RELEVANT)),
        ),
    ],
)
def test_each_error_has_a_class(
    chosen: tuple[str, ...], detected: Subjects | None, of_query: Errors, of_masking: Errors
) -> None:
    answer = Prediction(Status.OK, detected, chosen)

    assert classify(Task.QUERY_RELATED, couple(), answer) == of_query
    assert classify(Task.MASKING, couple(), answer) == of_masking


def test_what_is_chosen_may_be_hidden_with_a_longer_text() -> None:
    # A kept text stays where it is no part of a longer masked one; there it is another Oslo.
    oslo = Entity("Oslo", "LOC", "City/Region", spans=((11, 15),))
    sample = Sample(
        *("s1", "She is (in Oslo). Oslo sings.", "Where?", (Subject("A", (oslo,)),)),
        related=(Related("A", "Oslo"),),
    )
    detected = ((("in Oslo", "LOC"), ("Oslo", "LOC")),)

    errors = classify(Task.MASKING, sample, Prediction(Status.OK, detected, ("Oslo",)))

    # Oslo, and "in" with it.
    assert errors == too_much(ErrorClass.WRONG_SPAN, 2)


def test_what_is_detected_at_another_place_than_annotated_is_missed() -> None:
    # The annotation has the 32 of a longer number, which is no age.
    age = Entity("32", "DEM", "Age", spans=((0, 2), (9, 11)))
    sample = Sample("s1", "32, of 1.32.", "Who?", (Subject("A", (age,)),), related=())

    errors = classify(Task.MASKING, sample, Prediction(Status.OK, ((("32", "DEM"),),), ()))

    assert errors == lacking(ErrorClass.MISSED)


def test_an_annotated_text_inside_another_is_no_wrong_span_of_it() -> None:
    # Both "Acme" and "Acme Tools" are annotated; only the second is missed.
    people = {"A": [*PEOPLE["A"], ("Acme", "ORG", "Company Name")], "B": PEOPLE["B"]}

    answer = Prediction(Status.OK, plus("Acme", "ORG", without("Acme Tools")), ("Oslo",))

    errors = classify(Task.QUERY_RELATED, couple(people=people), answer)

    assert errors == lacking(ErrorClass.MISSED)


@pytest.mark.parametrize(
    ("of_ann", "of_bo", "chosen", "kind"),
    [
        # A landmark is not a city,
        ([], [("Lima", "LOC", "Landmark")], ("Acme Tools", "Lima"), ErrorClass.NOT_RELEVANT),
        # nor is a city of both people that of another,
        (
            *([("Lima", "LOC", "City/Region")], PEOPLE["B"]),
            *(("Acme Tools", "Lima"), ErrorClass.NOT_RELEVANT),
        ),
        # nor is Ann's second employer, though the first is also Bo's.
        (
            *([("Initech", "ORG", "Company Name")], [("Acme Tools", "ORG", "Company Name")]),
            *(("Oslo", "Initech"), ErrorClass.NOT_RELEVANT),
        ),
        # Without a category the type decides.
        ([], [("Lima", "LOC", None)], ("Acme Tools", "Lima"), ErrorClass.WRONG_PERSON),
        ([], [("Lima", "ORG", None)], ("Acme Tools", "Lima"), ErrorClass.NOT_RELEVANT),
    ],
)
def test_the_wrong_person_is_another_with_a_value_of_the_needed_kind(
    of_ann: list[Held], of_bo: list[Held], chosen: tuple[str, ...], kind: ErrorClass
) -> None:
    sample = couple(people={"A": [*PEOPLE["A"], *of_ann], "B": of_bo})

    errors = classify(Task.QUERY_RELATED, sample, Prediction(Status.OK, None, chosen))

    assert errors[kind, POSITIVE] == 1


@pytest.mark.parametrize("status", [Status.MALFORMED, Status.REFUSED])
def test_all_errors_of_a_failed_sample_are_failed(status: Status) -> None:
    failed = Prediction(status)

    assert classify(Task.QUERY_RELATED, couple(), failed) == {(ErrorClass.FAILED, NEGATIVE): 2}
    assert classify(Task.MASKING, couple(), failed) == {(ErrorClass.FAILED, NEGATIVE): 6}
    assert classify(Task.QUERY_RELATED, couple(()), failed) == {}


def test_what_is_not_scored_has_no_classes() -> None:
    with pytest.raises(ValueError, match=r"'s1' \(infra_error\) has no error classes"):
        classify(Task.MASKING, couple(), Prediction(Status.INFRA_ERROR))
    with pytest.raises(ValueError, match="detection of sample 's1'"):
        classify(Task.DETECTION, couple(), Prediction(Status.OK, EVERYONE))


WORDS = ("Ann", "Lee", "Ann Lee", "Lee is", "is", "12", "1", "12 is", "Bo", "nobody")
TYPES = st.sampled_from(["PER", "DEM", "LOC"])
CATEGORIES = st.sampled_from(["Full Name", "Age", None])
PERSON = st.lists(st.tuples(st.sampled_from(WORDS[:-1]), TYPES, CATEGORIES), max_size=5)


@given(
    people=st.fixed_dictionaries({"A": PERSON, "B": PERSON}),
    chosen=st.none() | st.lists(st.sampled_from(WORDS)).map(tuple),
    detected=st.none()
    | st.lists(st.lists(st.tuples(st.sampled_from(WORDS), TYPES)).map(tuple)).map(tuple),
    task=st.sampled_from([Task.QUERY_RELATED, Task.MASKING]),
    data=st.data(),
)
def test_the_classes_add_up_to_what_the_scorer_counts(
    people: dict[str, list[tuple[str, str, str | None]]],
    chosen: tuple[str, ...] | None,
    detected: Subjects | None,
    task: Task,
    data: st.DataObject,
) -> None:
    owned = sorted({(person, text) for person, held in people.items() for text, _, _ in held})
    needed = data.draw(st.lists(st.sampled_from(owned), unique=True)) if owned else []
    sample = couple(needed, description="Ann Lee is 12. 12 is Bo, Lee is Ann.", people=people)
    answer = Prediction(Status.OK, detected, chosen)

    found = classify(task, sample, answer)

    score = score_sample(task, sample, answer)
    by_side = Counter[Side]()
    for (kind, side), number in found.items():
        by_side[side] += number
        assert task is Task.MASKING or detected is not None or kind not in NEED_DETECTION
    if chosen is not None and (task is Task.QUERY_RELATED or detected is not None):
        assert found[ErrorClass.HALLUCINATED, POSITIVE] == score.hallucinated
    if task is Task.QUERY_RELATED:
        counts = score.counts["exact"]
        assert by_side[POSITIVE] == counts.predicted - counts.matched
        assert by_side[NEGATIVE] == counts.gold - counts.matched
    elif chosen is not None and detected is not None:
        exposure = judge_answer(sample, answer)
        assert by_side[NEGATIVE] == exposure.leaked.total()
        assert by_side[POSITIVE] >= exposure.needed_masked
