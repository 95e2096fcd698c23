from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

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

Errors = dict[tuple[ErrorClass, Side], int]


def related_errors(
    chosen: tuple[str, ...], detected: Subjects | None = EVERYONE, **sample: Any
) -> Errors:
    answer = Prediction(Status.OK, detected, chosen)
    return dict(classify(Task.QUERY_RELATED, couple(**sample), answer))


def masking_errors(chosen: tuple[str, ...], detected: Subjects = EVERYONE, **sample: Any) -> Errors:
    answer = Prediction(Status.OK, detected, chosen)
    return dict(classify(Task.MASKING, couple(**sample), answer))


def without(*texts: str, **types: str) -> Subjects:
    """What a perfect detector says, but for some texts, and for the types of others."""
    return tuple(
        tuple((text, types.get(text, kind)) for text, kind in subject if text not in texts)
        for subject in EVERYONE
    )


def plus(*entities: tuple[str, str]) -> Subjects:
    return (*EVERYONE, entities)


def test_a_right_answer_has_no_errors() -> None:
    assert related_errors(("Acme Tools", "Oslo")) == {}
    assert masking_errors(("Acme Tools", "Oslo")) == {}


class TestNeededButNotChosen:
    def test_though_detected(self) -> None:
        assert related_errors(("Acme Tools",)) == {(ErrorClass.NOT_CHOSEN, NEGATIVE): 1}
        assert masking_errors(("Acme Tools",)) == {(ErrorClass.NOT_CHOSEN, POSITIVE): 1}

    def test_for_it_was_missed(self) -> None:
        detected = without("Oslo")

        assert related_errors(("Acme Tools",), detected) == {(ErrorClass.MISSED, NEGATIVE): 1}
        assert masking_errors(("Acme Tools",), detected) == {}

    def test_for_it_was_detected_with_another_span(self) -> None:
        detected = (*without("Oslo"), (("in Oslo", "LOC"),))

        assert related_errors(("Acme Tools",), detected) == {(ErrorClass.WRONG_SPAN, NEGATIVE): 1}
        # Oslo is hidden, and "in" with it.
        assert masking_errors(("Acme Tools",), detected) == {(ErrorClass.WRONG_SPAN, POSITIVE): 2}

    def test_for_another_span_was_chosen(self) -> None:
        both = {(ErrorClass.WRONG_SPAN, NEGATIVE): 1, (ErrorClass.WRONG_SPAN, POSITIVE): 1}

        assert related_errors(("Acme Tools", "in Oslo")) == both
        # What is kept can be read, and Oslo in it.
        assert masking_errors(("Acme Tools", "in Oslo")) == {}

    def test_or_chosen_but_hidden_with_a_longer_one(self) -> None:
        # A kept text stays where it is no part of a longer masked one; there it is another Oslo.
        oslo = Entity("Oslo", "LOC", "City/Region", spans=((11, 15),))
        sample = Sample(
            *("s1", "She is (in Oslo). Oslo sings.", "Where?", (Subject("A", (oslo,)),)),
            related=(Related("A", "Oslo"),),
        )
        detected = ((("in Oslo", "LOC"), ("Oslo", "LOC")),)

        errors = classify(Task.MASKING, sample, Prediction(Status.OK, detected, ("Oslo",)))

        # Oslo, and "in" with it.
        assert errors == {(ErrorClass.WRONG_SPAN, POSITIVE): 2}

    def test_for_it_was_taken_for_another_type(self) -> None:
        detected = without(Oslo="PER")

        assert related_errors(("Acme Tools",), detected) == {(ErrorClass.WRONG_TYPE, NEGATIVE): 1}
        assert masking_errors(("Acme Tools",), detected) == {(ErrorClass.WRONG_TYPE, POSITIVE): 1}

    def test_a_type_among_several_is_right(self) -> None:
        detected = plus(("Oslo", "PER"))

        assert related_errors(("Acme Tools",), detected) == {(ErrorClass.NOT_CHOSEN, NEGATIVE): 1}

    def test_without_detection_nothing_tells_why(self) -> None:
        assert related_errors(("Acme Tools",), None) == {(ErrorClass.NOT_CHOSEN, NEGATIVE): 1}


class TestChosenButNotNeeded:
    NEEDED = ("Acme Tools", "Oslo")

    def test_though_annotated(self) -> None:
        assert related_errors((*self.NEEDED, "32")) == {(ErrorClass.NOT_RELEVANT, POSITIVE): 1}
        assert masking_errors((*self.NEEDED, "32")) == {(ErrorClass.NOT_RELEVANT, NEGATIVE): 1}

    def test_and_taken_for_another_type(self) -> None:
        detected = without(**{"32": "CODE"})
        chosen = (*self.NEEDED, "32")

        assert related_errors(chosen, detected) == {(ErrorClass.WRONG_TYPE, POSITIVE): 1}
        assert masking_errors(chosen, detected) == {(ErrorClass.WRONG_TYPE, NEGATIVE): 1}

    def test_with_another_span(self) -> None:
        chosen = (*self.NEEDED, "Bo Ray, 40")

        assert related_errors(chosen) == {(ErrorClass.WRONG_SPAN, POSITIVE): 1}
        # What is kept can be read: Bo Ray and 40.
        assert masking_errors(chosen) == {(ErrorClass.WRONG_SPAN, NEGATIVE): 2}

    def test_and_no_pii(self) -> None:
        chosen = (*self.NEEDED, "7 saws")

        assert related_errors(chosen) == {(ErrorClass.NOT_RELEVANT, POSITIVE): 1}
        assert related_errors(chosen, plus(("7 saws", "QUANTITY"))) == {
            (ErrorClass.WRONG_TYPE, POSITIVE): 1
        }

    def test_and_nowhere_in_the_description(self) -> None:
        for chosen in ("Bergen", "acme tools"):
            errors = related_errors((*self.NEEDED, chosen))
            assert errors == {(ErrorClass.HALLUCINATED, POSITIVE): 1}


class TestTheWrongPerson:
    def test_has_the_category_of_a_need_that_was_not_chosen(self) -> None:
        assert related_errors(("Acme Tools", "Lima")) == {
            (ErrorClass.NOT_CHOSEN, NEGATIVE): 1,
            (ErrorClass.WRONG_PERSON, POSITIVE): 1,
        }
        assert masking_errors(("Acme Tools", "Lima")) == {
            (ErrorClass.NOT_CHOSEN, POSITIVE): 1,
            (ErrorClass.WRONG_PERSON, NEGATIVE): 1,
        }

    def test_is_not_to_blame_where_the_right_one_was_chosen_too(self) -> None:
        errors = related_errors(("Acme Tools", "Oslo", "Lima"))
        assert errors == {(ErrorClass.NOT_RELEVANT, POSITIVE): 1}

    def test_has_no_other_category(self) -> None:
        assert related_errors(("Acme Tools", "40"))[ErrorClass.NOT_RELEVANT, POSITIVE] == 1

    def test_does_not_share_the_text_with_the_right_one(self) -> None:
        people = {
            "A": [*PEOPLE["A"], ("Lima", "LOC", "City/Region")],
            "B": PEOPLE["B"],
        }

        errors = related_errors(("Acme Tools", "Lima"), people=people)

        assert errors[ErrorClass.NOT_RELEVANT, POSITIVE] == 1

    def test_is_not_the_one_whose_need_it_is(self) -> None:
        # Acme is both people's employer, and the query is about Ann's.
        people = {
            "A": [("Acme Tools", "ORG", "Company Name"), ("Initech", "ORG", "Company Name")],
            "B": [("Acme Tools", "ORG", "Company Name")],
        }

        errors = related_errors(("Initech",), None, people=people, related=(("A", "Acme Tools"),))

        assert errors[ErrorClass.NOT_RELEVANT, POSITIVE] == 1

    @pytest.mark.parametrize(
        ("pii_type", "kind"),
        [("LOC", ErrorClass.WRONG_PERSON), ("ORG", ErrorClass.NOT_RELEVANT)],
    )
    def test_has_the_type_where_there_are_no_categories(
        self, pii_type: str, kind: ErrorClass
    ) -> None:
        people = {
            "A": PEOPLE["A"],
            "B": [("Bo Ray", "PER", None), ("Lima", pii_type, None)],
        }

        errors = related_errors(("Acme Tools", "Lima"), None, people=people)

        assert errors[kind, POSITIVE] == 1


class TestMaskedOrNot:
    NEEDED = ("Acme Tools", "Oslo")

    def test_missed_by_detection(self) -> None:
        errors = masking_errors(self.NEEDED, without("32", "Lima"))
        assert errors == {(ErrorClass.MISSED, NEGATIVE): 2}

    def test_detected_with_another_span(self) -> None:
        # 32 is hidden all the same, and ", is" with it.
        errors = masking_errors(self.NEEDED, (*without("32"), (("32, is", "DEM"),)))
        assert errors == {(ErrorClass.WRONG_SPAN, POSITIVE): 1}

    def test_detected_in_part(self) -> None:
        errors = masking_errors(self.NEEDED, (*without("Ann Lee"), (("Ann", "PER"),)))
        assert errors == {(ErrorClass.WRONG_SPAN, NEGATIVE): 1}

    def test_detected_but_at_another_place_than_annotated(self) -> None:
        # The annotation has the 32 of a longer number, which nobody takes for an age.
        age = Entity("32", "DEM", "Age", spans=((0, 2), (9, 11)))
        sample = Sample("s1", "32, of 1.32.", "Who?", (Subject("A", (age,)),), related=())

        errors = classify(Task.MASKING, sample, Prediction(Status.OK, ((("32", "DEM"),),), ()))

        assert errors == {(ErrorClass.MISSED, NEGATIVE): 1}

    def test_taken_for_pii(self) -> None:
        errors = masking_errors(self.NEEDED, plus(("7", "QUANTITY")))
        assert errors == {(ErrorClass.WRONG_TYPE, POSITIVE): 1}

    def test_nowhere_in_the_description(self) -> None:
        errors = masking_errors(self.NEEDED, plus(("Bergen", "LOC")))
        assert errors == {(ErrorClass.HALLUCINATED, POSITIVE): 1}

    def test_an_annotated_text_inside_another_is_no_wrong_span_of_it(self) -> None:
        # Both "Acme" and "Acme Tools" are annotated; only the second is missed.
        people = {"A": [*PEOPLE["A"], ("Acme", "ORG", "Company Name")], "B": PEOPLE["B"]}
        detected = (*without("Acme Tools"), (("Acme", "ORG"),))

        errors = related_errors(("Oslo",), detected, people=people)

        assert errors == {(ErrorClass.MISSED, NEGATIVE): 1}


@pytest.mark.parametrize("status", [Status.MALFORMED, Status.REFUSED])
def test_all_errors_of_a_failed_sample_are_failed(status: Status) -> None:
    failed = Prediction(status)

    assert classify(Task.QUERY_RELATED, couple(), failed) == {(ErrorClass.FAILED, NEGATIVE): 2}
    assert classify(Task.MASKING, couple(), failed) == {(ErrorClass.FAILED, NEGATIVE): 6}
    assert classify(Task.QUERY_RELATED, couple(()), failed) == {}


def test_what_is_not_scored_has_no_classes() -> None:
    with pytest.raises(ValueError, match="'s1' is infra_error: it is not scored"):
        classify(Task.MASKING, couple(), Prediction(Status.INFRA_ERROR))
    with pytest.raises(ValueError, match="errors of detection have no classes"):
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
        assert by_side[NEGATIVE] == sum(exposure.leaked)
        assert by_side[POSITIVE] >= exposure.needed_masked
