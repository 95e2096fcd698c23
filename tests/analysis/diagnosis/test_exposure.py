from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.analysis.diagnosis.exposure import Account, Exposure, Judge, account, judge_answer
from pii_bench.datasets.sample import Entity, Subject
from pii_bench.masking import mask
from pii_bench.masking.masked import make_plan
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import DESCRIPTION, EVERYONE, couple

NEEDED = ("Acme Tools", "Oslo")

# Unneeded: two names of tier 3; two ages, an employer and a city of tier 2.
# Other than PII: ", , is with in ." twice and "sells 7 saws.", 11 characters each.
PERFECT = Exposure(unneeded=(0, 4, 2), needed=2, other=33)


def spans_of(*texts: str) -> list[tuple[int, int]]:
    plan = make_plan(DESCRIPTION, [(text, "PER") for text in texts], ())
    return plan.spans


def masked(*texts: str) -> Exposure:
    return Judge(couple()).judge(spans_of(*texts))


def test_what_is_not_needed_and_not_masked_leaks() -> None:
    exposure = masked("Ann Lee", "32", "40", "Initech", "Lima")

    assert exposure == replace(PERFECT, leaked=(0, 0, 1))
    assert exposure.leak == 3 / 14
    assert exposure.plain_leak == 1 / 6
    assert exposure.leak_of(3) == 1 / 2
    assert exposure.leak_of(2) == 0
    assert exposure.leak_of(1) is None
    assert exposure.over_masking == 0
    assert exposure.text_over_masking == 0


def test_what_is_needed_and_masked_is_over_masked() -> None:
    exposure = masked("Ann Lee", "Bo Ray", "32", "40", "Initech", "Lima", "Oslo", "saws")

    assert exposure == replace(PERFECT, needed_masked=1, other_masked=4)
    assert (exposure.leak, exposure.over_masking) == (0, 1 / 2)
    assert exposure.text_over_masking == 4 / 33


def test_a_part_that_can_be_read_is_a_leak() -> None:
    assert masked("Ann", "Bo Ray", "32", "40", "Initech", "Lima").leaked == (0, 0, 1)
    assert masked("Ann", "Lee", "Bo Ray", "32", "40", "Initech", "Lima").leaked == (0, 0, 0)


def test_a_wider_mask_hides_what_is_in_it() -> None:
    exposure = masked("Ann Lee, 32, is", "Bo Ray", "40", "Initech", "Lima")

    assert exposure == replace(PERFECT, other_masked=len(",,is"))


def test_a_needed_text_can_be_read_as_long_as_one_occurrence_is_whole() -> None:
    judge = Judge(couple())
    first, second = DESCRIPTION.index("Acme"), DESCRIPTION.rindex("Acme")

    assert judge.judge([(first, first + 4)]).needed_masked == 0
    assert judge.judge([(first, first + 4), (second, second + 1)]).needed_masked == 1


class TestRepeatedMentions:
    """Acme Tools stands twice; here it is not needed."""

    SAMPLE = couple((("A", "Oslo"),))

    def test_all_are_masked_by_a_text(self) -> None:
        exposure = Judge(self.SAMPLE).judge(spans_of("Acme Tools"))

        assert (exposure.repeated, exposure.repeated_in_part, exposure.repeated_open) == (1, 0, 0)
        assert exposure.leaked == (0, 4, 2)

    def test_one_that_a_detector_of_spans_misses_is_a_leak(self) -> None:
        start = DESCRIPTION.index("Acme Tools")
        exposure = Judge(self.SAMPLE).judge([(start, start + len("Acme Tools"))])

        assert (exposure.repeated, exposure.repeated_in_part, exposure.repeated_open) == (1, 1, 0)
        assert exposure.leaked == (0, 5, 2)

    def test_none_is_masked(self) -> None:
        exposure = Judge(self.SAMPLE).judge([])

        assert (exposure.repeated, exposure.repeated_in_part, exposure.repeated_open) == (1, 0, 1)
        assert exposure.leaked == (0, 5, 2)


def test_a_leak_is_judged_on_what_was_masked_and_nothing_else() -> None:
    text = "She left Dalrymple Holdings."
    people = {"A": [("Dalrymple Holdings", "ORG", "Company Name")]}
    sample = couple((), description=text, people=people)
    entities = (("Dalrymple Holdings", "ORG"),)
    answer = Prediction(Status.OK, (entities,), ("Dalrymple",))

    # What is kept stays in the masked text, so that half of the name can be read.
    assert mask(text, entities, ("Dalrymple",)).text == "She left Dalrymple <Organisation>."
    assert judge_answer(sample, answer).leaked == (0, 1, 0)


def test_what_is_written_otherwise_is_masked_too_and_leaks_no_more() -> None:
    text = "Acme Corp pays. ACME Corp and Acme\u00a0Corp\u2019s owner."
    entity = Entity("Acme Corp", "ORG", "Company Name", ((0, 9), (16, 25), (30, 39)))
    sample = replace(couple((), description=text, people={}), subjects=(Subject("A", (entity,)),))
    answer = Prediction(Status.OK, ((("Acme Corp", "ORG"),),), ())

    assert mask(text, [("Acme Corp", "ORG")]).text == (
        "<Organisation> pays. <Organisation> and <Organisation>\u2019s owner."
    )
    assert judge_answer(sample, answer).leaked == (0, 0, 0)


def test_one_text_of_two_people_is_needed_if_either_needs_it() -> None:
    people = {"A": [("Acme", "ORG", "Company Name")], "B": [("Acme", "ORG", "Company Name")]}
    sample = couple((("A", "Acme"),), description="Ann and Bo are with Acme.", people=people)

    exposure = Judge(sample).judge([])

    assert (exposure.needed, exposure.unneeded) == (1, (0, 0, 0))
    assert exposure.leak is None


def test_a_text_of_two_tiers_has_the_higher() -> None:
    people = {"A": [("7", "DEM", "Age"), ("7", "DATETIME", "Duration")]}

    assert Judge(couple((), people=people)).judge([]).leaked == (0, 1, 0)


def test_an_answer_masks_what_it_detects_and_does_not_need() -> None:
    answer = Prediction(Status.OK, EVERYONE, ("Oslo",))

    assert judge_answer(couple(), answer) == replace(PERFECT, needed_masked=1)


def test_without_an_answer_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match=r"sample 's1' has no answer \(refused\)"):
        judge_answer(couple(), Prediction(Status.REFUSED))


def test_a_failed_sample_is_open_or_closed() -> None:
    samples = [couple(sample_id=name) for name in ("answered", "failed", "unscored", "unasked")]
    samples.append(couple((), sample_id="no query", query=None))
    answers = {
        "answered": Prediction(Status.OK, EVERYONE, NEEDED),
        "failed": Prediction(Status.MALFORMED),
        "unscored": Prediction(Status.INFRA_ERROR),
    }

    found = account(samples, answers)

    assert found == Account(
        samples=4,
        answered=1,
        failed=1,
        of_answered=PERFECT,
        open=PERFECT + replace(PERFECT, leaked=(0, 4, 2)),
        closed=PERFECT + replace(PERFECT, needed_masked=2, other_masked=33),
    )
    assert (found.open.leak, found.open.over_masking) == (1 / 2, 0)
    assert (found.closed.leak, found.closed.over_masking) == (0, 1 / 2)


def test_rates_of_nothing_are_undefined() -> None:
    nothing = account([], {}).of_answered

    assert nothing == Exposure()
    assert nothing.leak is nothing.plain_leak is nothing.over_masking is None
    assert nothing.text_over_masking is None


SPANS = st.lists(
    st.tuples(st.integers(0, len(DESCRIPTION)), st.integers(0, len(DESCRIPTION))).map(
        lambda ends: (min(ends), max(ends))
    )
)


@given(SPANS, SPANS)
def test_more_masking_never_leaks_more_nor_hides_less(
    spans: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    judge = Judge(couple())

    less, larger = judge.judge(spans), judge.judge([*spans, *more])

    assert all(a >= b for a, b in zip(less.leaked, larger.leaked, strict=True))
    assert less.needed_masked <= larger.needed_masked
    assert less.other_masked <= larger.other_masked
    assert judge.judge(judge.everything) == replace(PERFECT, needed_masked=2, other_masked=33)
