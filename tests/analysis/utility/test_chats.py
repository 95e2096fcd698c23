from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.chats import (
    AnswerPair,
    ChatSystem,
    Preference,
    Questions,
    Ratings,
    answer_questions,
    judge_questions,
    read_answer,
    read_preference,
    read_verdict,
    request_hash,
)
from pii_bench.models.base import CallError, Completion, Draws, Finish, Message, Request, Sampling
from pii_bench.systems.base import THIS_MACHINE, System
from pii_bench.tasks import Task
from tests.builders import make_sample
from tests.fakes import FakeModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from pii_bench.models.base import ModelResponse

SAMPLE = make_sample()
ANSWERS = answer_questions({"s1": "Ann Lee is <Age>."})
JUDGE = judge_questions({"s1": AnswerPair(masked="It depends on <Age>.", unmasked="No.")})


def chat(questions: Questions = ANSWERS, *, model: FakeModel | None = None) -> ChatSystem:
    return ChatSystem(model or FakeModel(), Sampling(max_tokens=9), questions)


def test_the_answer_prompt(assert_golden: Callable[[str, str], None]) -> None:
    (message,) = ANSWERS.messages(SAMPLE)

    assert message.role == "user"
    assert_golden("prompts/utility.answer.txt", message.content + "\n")


def test_the_judge_prompt_in_both_orders(assert_golden: Callable[[str, str], None]) -> None:
    unmasked_first, masked_first = JUDGE.messages(SAMPLE)

    assert_golden("prompts/utility.judge.txt", unmasked_first.content + "\n")
    # It does not say which answer is masked.
    swapped = judge_questions({"s1": AnswerPair(masked="No.", unmasked="It depends on <Age>.")})
    assert masked_first == swapped.messages(SAMPLE)[0]
    assert swapped.messages(SAMPLE) == (masked_first, unmasked_first)


@pytest.mark.parametrize(
    ("questions", "response"),
    [(ANSWERS, Completion("0")), (JUDGE, Draws((Completion("0"), Completion("1"))))],
)
def test_the_answerer_gets_one_request_and_the_judge_one_per_order(
    questions: Questions, response: ModelResponse
) -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Completion:
        requests.append(request)
        return Completion(str(request.draw))

    assert asyncio.run(chat(questions, model=FakeModel(answer)).respond(SAMPLE)) == response
    assert requests == [
        Request("s1", questions.prompt, (message,), Sampling(max_tokens=9), draw=draw)
        for draw, message in enumerate(questions.messages(SAMPLE))
    ]


def test_a_failure_in_one_order_fails_the_verdict() -> None:
    def answer(request: Request) -> Completion:
        if request.draw:
            raise CallError("timeout")
        return Completion("A=1, B=2")

    with pytest.raises(CallError):
        asyncio.run(chat(JUDGE, model=FakeModel(answer)).respond(SAMPLE))


def test_the_card_has_model_prompt_and_settings() -> None:
    questions = answer_questions({"s1": "..."}, ("fake/masker", "detection", "naive"))
    system = chat(questions, model=FakeModel(identity={"weights": "w1"}))

    card = system.card
    assert isinstance(system, System)
    assert (card.model, card.prompt, card.task) == ("fake/one", "utility.answer", Task.MASKING)
    assert card.prompt_sha256 == ANSWERS.sha256 != JUDGE.sha256
    assert card.settings == {
        "weights": "w1",
        "temperature": 0.0,
        "max_tokens": 9,
        "masked_by": ["fake/masker", "detection", "naive"],
    }
    assert "masked_by" not in chat().card.settings
    assert card.unmasked_text_to == THIS_MACHINE
    away = FakeModel(endpoint="https://api.example.com/v1")
    assert chat(model=away).card.unmasked_text_to == "fake (https://api.example.com/v1)"


@pytest.mark.parametrize(
    "other",
    [
        chat(answer_questions({"s1": "Ann Lee is 32."})),
        chat(JUDGE),
        chat(model=FakeModel(name="fake/two")),
        chat(model=FakeModel(identity={"weights": "w2"})),
        replace(chat(), sampling=Sampling(max_tokens=10)),
    ],
)
def test_the_hash_depends_on_model_sampling_and_messages(other: ChatSystem) -> None:
    assert other.request_hash(SAMPLE) != chat().request_hash(SAMPLE)


def test_the_hash_depends_on_order_and_role_of_messages() -> None:
    one, other = JUDGE.messages(SAMPLE)
    orders = [(one, other), (other, one), (Message("system", one.content), other)]

    assert len({request_hash(chat(JUDGE).card, messages) for messages in orders}) == 3


def verdict(first: str, second: str) -> Draws:
    """The replies of a judge in both orders."""
    return Draws((Completion(first), Completion(second)))


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (Completion(" You are young. \n", Finish.STOP), "You are young."),
        (Completion("You are", Finish.LENGTH), "You are"),
        (Completion("I cannot tell.", Finish.UNKNOWN), "I cannot tell."),
        (Completion("<think>32 is young</think>Young.", Finish.STOP), "Young."),
        (Completion("<think>32 is", Finish.LENGTH), None),
        (Completion(" \n", Finish.STOP), None),
        (Completion("You", Finish.FILTER), None),
        (Completion("I won't.", Finish.REFUSAL), None),
        (Draws((Completion("Young."),)), None),
    ],
)
def test_read_answer(response: ModelResponse, answer: str | None) -> None:
    assert read_answer(response) == answer


def test_ratings_are_averaged_over_both_orders() -> None:
    # The masked answer is B in the first order and A in the second.
    ratings = read_verdict(verdict("### Ratings: A=8, B=5", "### Ratings: A=7, B=10"))

    assert ratings == Ratings(masked=6.0, unmasked=9.0)
    assert ratings.utility == 5 / 8


@pytest.mark.parametrize(
    ("ratings", "utility"),
    [
        (Ratings(masked=1, unmasked=1.5), 0.0),
        (Ratings(masked=3, unmasked=5), 0.5),
        (Ratings(masked=10, unmasked=10), 1.0),
        (Ratings(masked=9, unmasked=4), 1.0),
        (Ratings(masked=1, unmasked=1), 1.0),
    ],
)
def test_utility_of_ratings(ratings: Ratings, utility: float) -> None:
    assert ratings.utility == utility


@pytest.mark.parametrize(
    "text",
    [
        "### Ratings: A=7, B=9",
        "Both are fine.\n\n### Ratings: A=7, B=9",
        "**Ratings:** A = 7; B = 9.",
        "A: 7/10\nB: 9/10",
        "Answer A: **7**\nAnswer B: **9**",
        "A=7 and B=9",
        "<think>A=1, B=1</think>A=7, B=9",
        "First I thought A=2, B=3. ### Ratings: A=7, B=9",
    ],
)
def test_ratings_are_parsed_in_many_formats(text: str) -> None:
    assert read_verdict(verdict(text, "A=9, B=7")) == Ratings(masked=9.0, unmasked=7.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A is better.",
        "### Ratings: A=7",
        "### Ratings: B=9, A=7",
        "A=0, B=9",
        "A=7, B=11",
        "A=7, B=100",
        "A=7.5, B=9",
        "A=7, B=8.5",
        "A=7, B=9/100",
        "A=seven, B=nine",
        "### Ratings: A=..., B=...",
        "<think>A=7, B=9",
    ],
)
def test_a_reply_without_valid_ratings_gives_none(text: str) -> None:
    assert read_verdict(verdict("A=7, B=9", text)) is None
    assert read_verdict(verdict(text, "A=7, B=9")) is None


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        # The rewritten text is A in the first order and B in the second.
        ("A", "B", Preference.WIN),
        ("B", "A", Preference.LOSS),
        ("tie", "Tie", Preference.TIE),
        # The orders disagree.
        ("A", "A", Preference.FLIP),
        ("B", "B", Preference.FLIP),
        ("A", "tie", Preference.FLIP),
        ("tie", "A", Preference.FLIP),
    ],
)
def test_both_orders_give_one_preference(first: str, second: str, outcome: Preference) -> None:
    response = verdict(f"### Better: {first}", f"### Better: {second}")

    assert read_preference(response) is outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("<think>Better: A</think>It keeps more.\n### Better: B", Preference.LOSS),
        ("Better: A\nNo.\n**Better:** Version B", Preference.LOSS),
        ("Better = B.", Preference.LOSS),
        ("Both are good.", None),
        ("### Better: both", None),
        ("### Better: Another", None),
        ("", None),
    ],
)
def test_preferences_are_parsed_in_many_formats(text: str, outcome: Preference | None) -> None:
    assert read_preference(verdict(text, "### Better: A")) is outcome


@pytest.mark.parametrize(
    ("text", "read"), [("A=7, B=9", read_verdict), ("### Better: A", read_preference)]
)
def test_one_order_alone_gives_none(text: str, read: Callable[[ModelResponse], object]) -> None:
    assert read(Completion(text)) is None
    assert read(Draws((Completion(text),))) is None
