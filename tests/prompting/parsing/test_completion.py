from __future__ import annotations

import pytest

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing import (
    ParsedDetection,
    ParsedRelated,
    parse_detection,
    parse_related,
)
from pii_bench.tasks import Status

RELATED = '### Answer: ["Acme"]'
DETECTION = 'Subject1{"Ann Lee": "PER"}'


@pytest.mark.parametrize(
    ("finish", "status"), [(Finish.FILTER, Status.FILTERED), (Finish.REFUSAL, Status.REFUSED)]
)
@pytest.mark.parametrize("answer", ["", RELATED, DETECTION])
def test_the_finish_reason_settles_what_was_blocked(
    finish: Finish, status: Status, answer: str
) -> None:
    assert parse_related(answer, finish) == ParsedRelated(None, status)
    assert parse_detection(answer, finish) == ParsedDetection(None, status)


@pytest.mark.parametrize("answer", ["", " \n\t", "<think>hm</think>\n", "hm</think>"])
@pytest.mark.parametrize(
    ("finish", "status"),
    [
        (Finish.STOP, Status.EMPTY),
        (Finish.UNKNOWN, Status.EMPTY),
        (Finish.LENGTH, Status.TRUNCATED),
    ],
)
def test_blank_is_empty_unless_the_length_was_spent(
    answer: str, finish: Finish, status: Status
) -> None:
    assert parse_related(answer, finish) == ParsedRelated(None, status)
    assert parse_detection(answer, finish) == ParsedDetection(None, status)


@pytest.mark.parametrize(
    "thought",
    [
        '<think>Maybe ["Bonn"].</think>',
        "<Thinking>\nSubject1{}\n</Thinking>\n\n",
        "<REASONING></REASONING>",
        '### Answer: ["Bonn"]\nSubject1{"x": "LOC"}\n</think>\n',
        "<think>a</think><think>b</think>",
        "<think>the tag <think> again</think>",
    ],
)
def test_thought_is_removed_and_no_repair(thought: str) -> None:
    assert parse_related(thought + "\n" + RELATED) == ParsedRelated(("Acme",), Status.OK)
    assert parse_detection(thought + DETECTION) == ParsedDetection(
        ((("Ann Lee", "PER"),),), Status.OK
    )


def test_thought_after_the_answer_is_removed() -> None:
    parsed = parse_related(RELATED + '\n<think>or ["Bonn"]?</think>')
    assert parsed == ParsedRelated(("Acme",), Status.OK)


@pytest.mark.parametrize(
    ("finish", "status"), [(Finish.STOP, Status.MALFORMED), (Finish.LENGTH, Status.TRUNCATED)]
)
def test_a_thought_that_never_ends_holds_no_answer(finish: Finish, status: Status) -> None:
    assert parse_related(f"<think>So:\n{RELATED}", finish) == ParsedRelated(None, status)
    assert parse_detection(f"<think>So:\n{DETECTION}", finish) == ParsedDetection(None, status)


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot process personal information.",
        "I cannot assist with identifying individuals.",
        "As an AI language model, I do not handle personal data.",
        "I must decline this request.",
        "<think>Risky.</think>I won't share personal details.",
    ],
)
def test_a_refusal_is_not_malformed(answer: str) -> None:
    assert parse_related(answer) == ParsedRelated(None, Status.REFUSED)
    assert parse_detection(answer) == ParsedDetection(None, Status.REFUSED)


def test_a_refusal_after_the_marker_is_no_item() -> None:
    parsed = parse_related("### Answer: I'm sorry, but I can't help.")
    assert parsed == ParsedRelated(None, Status.REFUSED)


def test_an_answer_counts_although_it_begins_like_a_refusal() -> None:
    parsed = parse_related(f"I can't share more than this.\n{RELATED}")
    assert parsed == ParsedRelated(("Acme",), Status.OK)


@pytest.mark.parametrize(
    "answer", ["She works as an AI engineer in a lab.", "I cannot identify any fitting text."]
)
def test_words_of_a_refusal_alone_are_none(answer: str) -> None:
    assert parse_related(answer).status is Status.MALFORMED


def test_a_refusal_far_into_the_text_is_malformed() -> None:
    answer = "The text is about work. " * 20 + "I cannot help."
    assert parse_related(answer).status is Status.MALFORMED
