from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.runs.responses import compose, read_response, vote
from pii_bench.systems.predictions import (
    Prediction,
)
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from random import Random

    from pii_bench.prompting.strategies import Output


FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)

DETECTED = Prediction(Status.OK, subjects=FOUND)
RELATED = Prediction(Status.OK, related=("32",))


@pytest.mark.parametrize(
    ("task", "said", "output", "prediction"),
    [
        (Task.DETECTION, 'Subject1{"Ann Lee": "PER", "32": "DEM"}', "text", DETECTED),
        (Task.QUERY_RELATED, '### Answer: ["32"]', "text", RELATED),
        (
            Task.QUERY_RELATED,
            "### Answer: ['32']",
            "text",
            Prediction(Status.REPAIRED, related=("32",), repairs=("single-quotes",)),
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
def test_a_response_is_read_as_what_was_asked(
    task: Task, said: str, output: Output, prediction: Prediction
) -> None:
    assert read_response(task, Completion(said, Finish.STOP), output) == prediction


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


def test_draws_are_read_one_by_one_and_vote() -> None:
    draws = Draws(
        (
            Completion('### Answer: ["32", "Acme"]'),
            Completion("", Finish.FILTER),
            Completion("### Answer: ['32']"),
        )
    )

    assert read_response(Task.QUERY_RELATED, draws) == Prediction(
        Status.REPAIRED, related=("32",), repairs=("single-quotes",)
    )


def test_draws_of_a_schema_vote() -> None:
    draws = Draws((Completion('{"answer": ["32"]}'), Completion('### Answer: ["40"]')))

    assert read_response(Task.QUERY_RELATED, draws, "schema") == RELATED


def labelled(
    *said: str, labels_of: str = "ai4privacy", text: str | None = None, finish: Finish = Finish.STOP
) -> Prediction:
    draws = tuple(Completion(each, finish) for each in said)
    response = draws[0] if len(draws) == 1 else Draws(draws)
    return read_response(Task.DETECTION, response, labels_of=labels_of, text=text)


def test_labels_become_types_and_what_has_none_is_left_out() -> None:
    said = '{"PII": {"EMAIL": ["a@b.de"], "TITLE": ["Dr."], "CITY": ["Ulm"]}}'

    assert labelled(said) == Prediction(Status.OK, subjects=((("a@b.de", "CODE"), ("Ulm", "LOC")),))
    assert labelled('{"PII": {"TITLE": ["Dr."]}}') == Prediction(Status.OK, subjects=())


def test_one_label_may_mean_another_type_in_another_taxonomy() -> None:
    said = '{"PII": {"QUANTITY": ["2 m"]}}'

    assert labelled(said, labels_of="spacy").subjects == ((("2 m", "DEM"),),)
    assert labelled(said, labels_of="paper").subjects == ((("2 m", "QUANTITY"),),)


def test_a_label_that_is_none_stays_as_a_wrong_type() -> None:
    assert labelled('{"PII": {"PET": ["Rex"]}}') == Prediction(
        Status.REPAIRED, subjects=((("Rex", "PET"),),), repairs=("unknown-type",)
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, {"Mia", "Ortega"}),
        ("Mia Ortega is here.", {"Mia Ortega"}),
        ("Mia and Mia Ortega", {"Mia", "Mia Ortega"}),
        ("Ortega, Mia", {"Ortega", "Mia"}),
        # What is invented has no neighbour.
        ("Mia Lee", {"Mia", "Ortega"}),
    ],
)
def test_parts_that_are_neighbours_in_the_text_are_one_value(
    text: str | None, names: set[str]
) -> None:
    said = '{"PII": {"FIRSTNAME": ["Mia"], "LASTNAME": ["Ortega"], "AGE": ["41"]}}'

    (found,) = labelled(said, text=text).subjects or ()

    assert set(found) == {*((name, "PER") for name in names), ("41", "DEM")}


def test_pieces_of_a_text_are_put_together() -> None:
    first, second = '{"PII": {"AGE": ["41"], "CITY": ["Ulm"]}}', "{'PII': {'AGE': ['41', '7']}}"

    assert labelled(first, second) == Prediction(
        Status.REPAIRED,
        subjects=((("41", "DEM"), ("Ulm", "LOC"), ("7", "DEM")),),
        repairs=("single-quotes",),
    )


def test_a_piece_without_an_answer_fails_the_text() -> None:
    assert labelled('{"PII": {"AGE": ["41"]}}', "What a day.") == Prediction(Status.MALFORMED)


@pytest.mark.parametrize("task", [Task.DETECTION, Task.MASKING])
def test_only_query_related_answers_vote(task: Task) -> None:
    with pytest.raises(ValueError, match=f"^{task} has no vote"):
        read_response(task, Draws((Completion("[]"),)))


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
        # A half is no majority.
        (answers(("a",), ("b",)), ()),
        (answers(("a", "b"), ("a", "b"), ("a",), ()), ("a",)),
        # Of three draws that have an answer, two are more than half; of four, not.
        ([*answers(("a",), ("a",), ()), FAILED], ("a",)),
        ([*answers(("a",), ()), FAILED, FAILED], ()),
        ([FAILED, FAILED, *answers(("a",))], ("a",)),
        # Who names a text twice has one vote.
        (answers(("a", "a"), ()), ()),
    ],
)
def test_more_than_half_of_the_answers_choose(
    draws: list[Prediction], chosen: tuple[str, ...]
) -> None:
    assert vote(draws) == Prediction(Status.OK, related=chosen)


def test_texts_vote_as_the_scorer_compares_them_and_stand_as_first_written() -> None:
    draws = answers(("Ann\tLee", "Café"), (" Ann Lee", "CAFÉ"), ("ann lee", "Cafe\u0301"))

    assert vote(draws).related == ("Ann\tLee", "Café")


def test_without_any_answer_the_first_draw_tells_why() -> None:
    statuses = [Status.REFUSED, Status.EMPTY, Status.EMPTY]

    assert vote([Prediction(status) for status in statuses]) == Prediction(Status.REFUSED)


def test_a_repair_of_a_draw_is_one_of_the_vote() -> None:
    draws = [
        Prediction(Status.REPAIRED, related=("32",), repairs=("no-marker", "code-fence")),
        Prediction(Status.OK, related=("32",)),
        Prediction(Status.REPAIRED, related=("32",), repairs=("code-fence",)),
    ]

    assert vote(draws) == Prediction(
        Status.REPAIRED, related=("32",), repairs=("no-marker", "code-fence")
    )


drawn = st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6)


@given(drawn, st.randoms(use_true_random=False))
def test_the_order_of_the_draws_chooses_nothing(draws: list[list[str]], random: Random) -> None:
    before = vote(answers(*map(tuple, draws))).related
    random.shuffle(draws)

    assert set(vote(answers(*map(tuple, draws))).related or ()) == set(before or ())


@given(drawn)
def test_what_every_draw_names_is_chosen_and_what_none_names_is_not(
    draws: list[list[str]],
) -> None:
    chosen = set(vote(answers(*map(tuple, draws))).related or ())

    assert set.intersection(*map(set, draws)) <= chosen <= set.union(*map(set, draws))


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


@pytest.mark.parametrize(
    ("task", "prediction"), [(Task.DETECTION, DETECTED), (Task.QUERY_RELATED, RELATED)]
)
def test_a_prediction_is_the_response_of_a_system_that_writes_no_text(
    task: Task, prediction: Prediction
) -> None:
    assert read_response(task, prediction) == prediction


def test_a_prediction_of_another_task_is_malformed() -> None:
    assert read_response(Task.DETECTION, RELATED) == Prediction(Status.MALFORMED)
    refused = Prediction(Status.REFUSED)
    assert read_response(Task.DETECTION, refused) == refused
