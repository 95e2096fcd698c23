from __future__ import annotations

import pytest

from pii_bench.models.base import Completion, Finish
from pii_bench.outcome import Status
from pii_bench.predictions.prediction import Prediction, compose, read_response
from pii_bench.tasks import Task

FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)

DETECTED = Prediction(Status.OK, subjects=FOUND)
RELATED = Prediction(Status.OK, related=("32",))


def test_a_response_to_the_detection_prompt() -> None:
    response = Completion('Subject1{"Ann Lee": "PER", "32": "DEM"}', Finish.STOP)

    assert read_response(Task.DETECTION, response) == DETECTED


def test_a_response_to_a_query_related_prompt() -> None:
    response = Completion('### Answer: ["32"]', Finish.STOP)

    assert read_response(Task.QUERY_RELATED, response) == RELATED


def test_repairs_are_kept() -> None:
    prediction = read_response(Task.QUERY_RELATED, Completion("### Answer: ['32']", Finish.STOP))

    assert prediction == Prediction(Status.REPAIRED, related=("32",), repairs=("single-quotes",))


@pytest.mark.parametrize("task", [Task.DETECTION, Task.QUERY_RELATED])
@pytest.mark.parametrize(
    ("response", "status"),
    [
        (Completion("", Finish.STOP), Status.EMPTY),
        (Completion("", Finish.FILTER), Status.FILTERED),
        (Completion("", Finish.REFUSAL), Status.REFUSED),
        (Completion("I think", Finish.LENGTH), Status.TRUNCATED),
        (Completion("Lovely weather today.", Finish.STOP), Status.MALFORMED),
    ],
)
def test_a_response_without_an_answer_is_no_prediction(
    task: Task, response: Completion, status: Status
) -> None:
    assert read_response(task, response) == Prediction(status)


def test_masking_has_no_response_of_its_own() -> None:
    with pytest.raises(ValueError, match="compose it from the other two"):
        read_response(Task.MASKING, Completion("[]"))


def test_two_answers_compose() -> None:
    assert compose(DETECTED, RELATED) == Prediction(Status.OK, subjects=FOUND, related=("32",))


def test_a_repair_of_either_part_is_a_repair_of_both() -> None:
    detected = Prediction(Status.REPAIRED, subjects=FOUND, repairs=("type-alias",))
    related = Prediction(Status.REPAIRED, related=("32",), repairs=("single-quotes",))

    assert compose(detected, RELATED).status is Status.REPAIRED
    assert compose(DETECTED, related).status is Status.REPAIRED
    assert compose(detected, related).repairs == ("type-alias", "single-quotes")


CAUSED_BY_THE_MODEL = ["malformed", "truncated", "empty", "refused", "filtered"]
NEVER_ANSWERED = ["infra_error", "skipped_budget"]


@pytest.mark.parametrize("status", CAUSED_BY_THE_MODEL + NEVER_ANSWERED)
def test_a_part_without_an_answer_leaves_nothing_to_compose(status: str) -> None:
    failed = Prediction(Status(status))

    assert compose(failed, RELATED) == compose(DETECTED, failed) == failed


@pytest.mark.parametrize("caused", CAUSED_BY_THE_MODEL)
@pytest.mark.parametrize("missing", NEVER_ANSWERED)
def test_a_call_that_failed_outweighs_a_failure_of_the_model(caused: str, missing: str) -> None:
    by_model, by_call = Prediction(Status(caused)), Prediction(Status(missing))

    assert compose(by_model, by_call) == compose(by_call, by_model) == by_call
