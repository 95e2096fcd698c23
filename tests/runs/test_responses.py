from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.runs.responses import compose, read_response, vote
from pii_bench.systems.base import fault
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from random import Random

    from pii_bench.prompting.strategies import Output


SUBJECTS = ((("Ann Lee", "PER"), ("32", "DEM")),)

DETECTED = Prediction(Status.OK, subjects=SUBJECTS)
RELATED = Prediction(Status.OK, related=("32",))


@pytest.mark.parametrize(
    ("task", "text", "output", "prediction"),
    [
        (Task.DETECTION, 'Subject1{"Ann Lee": "PER", "32": "DEM"}', "text", DETECTED),
        (Task.QUERY_RELATED, '### Answer: ["32"]', "text", RELATED),
        (
            Task.QUERY_RELATED,
            "### Answer: ['32']",
            "text",
            Prediction(Status.REPAIRED, related=("32",)),
        ),
        (
            Task.DETECTION,
            '{"subjects": [{"entities": [{"text": "32", "type": "DEM"}]}]}',
            "schema",
            Prediction(Status.OK, subjects=((("32", "DEM"),),)),
        ),
        (Task.QUERY_RELATED, '{"thought": "An age.", "answer": ["32"]}', "schema", RELATED),
        (Task.QUERY_RELATED, '### Answer: ["32"]', "schema", Prediction(Status.MALFORMED)),
    ],
)
def test_a_response_is_parsed_by_task_and_output_format(
    task: Task, text: str, output: Output, prediction: Prediction
) -> None:
    assert read_response(task, Completion(text, Finish.STOP), output) == prediction


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
def test_a_response_without_an_answer_has_only_a_status(
    task: Task, response: Completion, status: Status
) -> None:
    assert read_response(task, response) == Prediction(status)


def test_draws_are_parsed_one_by_one_and_vote() -> None:
    texts = ('### Answer: ["32", "Acme"]', "", "### Answer: ['32']")
    draws = Draws(tuple(map(Completion, texts)))
    assert read_response(Task.QUERY_RELATED, draws) == Prediction(Status.REPAIRED, related=("32",))

    draws = Draws((Completion('{"answer": ["32"]}'), Completion('### Answer: ["40"]')))
    assert read_response(Task.QUERY_RELATED, draws, "schema") == RELATED


def read_labels(
    *answers: str, labels_of: str = "ai4privacy", text: str | None = None
) -> Prediction:
    """Parse one answer, or several for the pieces of a text, with another taxonomy's labels."""
    draws = tuple(Completion(answer, Finish.STOP) for answer in answers)
    response = draws[0] if len(draws) == 1 else Draws(draws)
    return read_response(Task.DETECTION, response, labels_of=labels_of, text=text)


def test_labels_become_types_and_labels_without_a_type_are_dropped() -> None:
    answer = '{"PII": {"EMAIL": ["a@b.de"], "TITLE": ["Dr."], "CITY": ["Ulm"]}}'
    subjects = ((("a@b.de", "CODE"), ("Ulm", "LOC")),)

    assert read_labels(answer) == Prediction(Status.OK, subjects=subjects)
    assert read_labels('{"PII": {"TITLE": ["Dr."]}}') == Prediction(Status.OK, subjects=())


def test_a_label_may_mean_another_type_in_another_taxonomy() -> None:
    answer = '{"PII": {"QUANTITY": ["2 m"]}}'

    assert read_labels(answer, labels_of="spacy").subjects == ((("2 m", "DEM"),),)
    assert read_labels(answer, labels_of="paper").subjects == ((("2 m", "QUANTITY"),),)


def test_an_unknown_label_is_kept_as_a_wrong_type() -> None:
    assert read_labels('{"PII": {"PET": ["Rex"]}}') == Prediction(
        Status.REPAIRED, subjects=((("Rex", "PET"),),)
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, {"Mia", "Ortega"}),
        ("Mia Ortega is here.", {"Mia Ortega"}),
        ("Mia and Mia Ortega", {"Mia", "Mia Ortega"}),
        ("Ortega, Mia", {"Ortega", "Mia"}),
        # An invented part has no neighbour.
        ("Mia Lee", {"Mia", "Ortega"}),
    ],
)
def test_neighbouring_parts_of_a_name_become_one_entity(text: str | None, names: set[str]) -> None:
    answer = '{"PII": {"FIRSTNAME": ["Mia"], "LASTNAME": ["Ortega"], "AGE": ["41"]}}'

    (entities,) = read_labels(answer, text=text).subjects or ()

    assert set(entities) == {*((name, "PER") for name in names), ("41", "DEM")}


def test_the_answers_for_the_pieces_of_a_text_are_joined() -> None:
    first, second = '{"PII": {"AGE": ["41"], "CITY": ["Ulm"]}}', "{'PII': {'AGE': ['41', '7']}}"

    assert read_labels(first, second) == Prediction(
        Status.REPAIRED,
        subjects=((("41", "DEM"), ("Ulm", "LOC"), ("7", "DEM")),),
    )


def test_a_text_is_cut_if_the_answer_for_one_of_its_pieces_is() -> None:
    found = read_labels('{"PII": {"AGE": ["41"]', '{"PII": {"CITY": ["Ulm"]}}')

    assert found == Prediction(
        Status.REPAIRED, subjects=((("41", "DEM"), ("Ulm", "LOC")),), cut=True
    )


def test_a_piece_without_an_answer_fails_the_text() -> None:
    assert read_labels('{"PII": {"AGE": ["41"]}}', "What a day.") == Prediction(Status.MALFORMED)


@pytest.mark.parametrize(
    ("task", "response"),
    [
        (Task.MASKING, Completion("[]")),
        *[(task, Draws((Completion("[]"),))) for task in Task if task is not Task.QUERY_RELATED],
    ],
)
def test_a_response_of_a_kind_that_the_task_does_not_allow_is_malformed(
    task: Task, response: Completion | Draws
) -> None:
    assert read_response(task, response) == Prediction(Status.MALFORMED)


def answers(*draws: tuple[str, ...]) -> list[Prediction]:
    return [Prediction(Status.OK, related=draw) for draw in draws]


FAILED = Prediction(Status.TRUNCATED)


@pytest.mark.parametrize(
    ("draws", "chosen"),
    [
        (answers(("a",), ("a", "b"), ("b", "c")), ("a", "b")),
        (answers(("a",), ("b",), ("c",)), ()),
        (answers((), (), ("a",)), ()),
        (answers(("a",)), ("a",)),
        # Half is not a majority.
        (answers(("a",), ("b",)), ()),
        (answers(("a", "b"), ("a", "b"), ("a",), ()), ("a",)),
        # The majority is that of the draws with an answer.
        ([*answers(("a",), ("a",), ()), FAILED], ("a",)),
        ([*answers(("a",), ()), FAILED, FAILED], ()),
        ([FAILED, FAILED, *answers(("a",))], ("a",)),
        # A draw that names a text twice has one vote for it.
        (answers(("a", "a"), ()), ()),
    ],
)
def test_a_text_is_chosen_by_more_than_half_of_the_answers(
    draws: list[Prediction], chosen: tuple[str, ...]
) -> None:
    assert vote(draws) == Prediction(Status.OK, related=chosen)


def test_texts_that_the_scorer_holds_equal_vote_together() -> None:
    draws = answers(("Ann\tLee", "Café"), (" Ann Lee", "CAFÉ"), ("ann lee", "Cafe\u0301"))

    assert vote(draws).related == ("Ann\tLee", "Café")


def test_without_any_answer_the_status_is_that_of_the_first_draw() -> None:
    statuses = [Status.REFUSED, Status.EMPTY, Status.EMPTY]

    assert vote([Prediction(status) for status in statuses]) == Prediction(Status.REFUSED)


drawn = st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6)


@given(drawn, st.randoms(use_true_random=False))
def test_the_order_of_the_draws_does_not_matter(draws: list[list[str]], random: Random) -> None:
    before = vote(answers(*map(tuple, draws))).related
    random.shuffle(draws)

    assert set(vote(answers(*map(tuple, draws))).related or ()) == set(before or ())


@given(drawn)
def test_texts_of_every_draw_are_chosen_and_texts_of_no_draw_are_not(
    draws: list[list[str]],
) -> None:
    chosen = set(vote(answers(*map(tuple, draws))).related or ())

    assert set.intersection(*map(set, draws)) <= chosen <= set.union(*map(set, draws))


def test_a_detection_and_a_relevance_prediction_compose() -> None:
    assert compose(DETECTED, RELATED) == Prediction(Status.OK, subjects=SUBJECTS, related=("32",))


def test_a_composed_prediction_is_repaired_if_a_part_is() -> None:
    detected = Prediction(Status.REPAIRED, subjects=SUBJECTS, cut=True)
    related = Prediction(Status.REPAIRED, related=("32",))

    assert compose(detected, RELATED).status is Status.REPAIRED
    assert compose(DETECTED, related).status is Status.REPAIRED
    assert compose(detected, related).cut


CAUSED_BY_THE_MODEL = ["malformed", "truncated", "empty", "refused", "filtered"]
NEVER_ANSWERED = ["infra_error", "skipped_budget"]


@pytest.mark.parametrize("status", CAUSED_BY_THE_MODEL + NEVER_ANSWERED)
def test_a_prediction_with_a_failed_part_fails(status: str) -> None:
    failed = Prediction(Status(status))

    assert compose(failed, RELATED) == compose(DETECTED, failed) == failed


@pytest.mark.parametrize("caused", CAUSED_BY_THE_MODEL)
@pytest.mark.parametrize("missing", NEVER_ANSWERED)
def test_a_failed_call_takes_precedence_over_a_failure_of_the_model(
    caused: str, missing: str
) -> None:
    by_model, by_call = Prediction(Status(caused)), Prediction(Status(missing))

    assert compose(by_model, by_call) == compose(by_call, by_model) == by_call


@pytest.mark.parametrize("task", Task)
def test_a_fault_of_a_plug_in_is_malformed(task: Task) -> None:
    assert read_response(task, fault("raised KeyError")) == Prediction(Status.MALFORMED)


@pytest.mark.parametrize(
    ("task", "prediction", "read"),
    [
        (Task.DETECTION, DETECTED, DETECTED),
        (Task.QUERY_RELATED, RELATED, RELATED),
        (Task.DETECTION, Prediction(Status.REFUSED), Prediction(Status.REFUSED)),
        (Task.DETECTION, RELATED, Prediction(Status.MALFORMED)),
    ],
)
def test_a_prediction_is_returned_unless_it_is_of_another_task(
    task: Task, prediction: Prediction, read: Prediction
) -> None:
    assert read_response(task, prediction) == read
