from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
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


def asked_of(system: ChatSystem) -> tuple[list[Request], object]:
    """The requests that a model gets, and what becomes of its answers "0", "1", ..."""
    requests: list[Request] = []

    def answer(request: Request) -> Completion:
        requests.append(request)
        return Completion(str(len(requests) - 1))

    asking = replace(system, model=FakeModel(answer))
    return requests, asyncio.run(asking.respond(SAMPLE))


def chat(questions: Questions = ANSWERS, *, model: FakeModel | None = None) -> ChatSystem:
    return ChatSystem(model or FakeModel(), Sampling(max_tokens=9), questions)


def test_what_the_answerer_is_sent(assert_golden: Callable[[str, str], None]) -> None:
    (message,) = ANSWERS.messages(SAMPLE)

    assert message.role == "user"
    assert_golden("prompts/utility.answer.txt", message.content + "\n")


def test_what_the_judge_is_sent(assert_golden: Callable[[str, str], None]) -> None:
    unmasked_first, masked_first = JUDGE.messages(SAMPLE)

    assert_golden("prompts/utility.judge.txt", unmasked_first.content + "\n")
    swapped = judge_questions({"s1": AnswerPair(masked="No.", unmasked="It depends on <Age>.")})
    assert masked_first == swapped.messages(SAMPLE)[0]
    assert swapped.messages(SAMPLE) == (masked_first, unmasked_first)


def test_the_judge_is_not_told_which_answer_is_which() -> None:
    same = judge_questions({"s1": AnswerPair(masked="No.", unmasked="No.")})

    one, other = same.messages(SAMPLE)
    assert one == other
    assert SAMPLE.description in one.content


def test_an_answer_is_one_completion() -> None:
    requests, response = asked_of(chat())

    assert requests == [
        Request("s1", "utility.answer", ANSWERS.messages(SAMPLE), Sampling(max_tokens=9))
    ]
    assert response == Completion("0")


def test_a_verdict_is_one_draw_for_each_order() -> None:
    requests, response = asked_of(chat(JUDGE))

    assert [(each.prompt, each.draw, each.messages) for each in requests] == [
        ("utility.judge", draw, (message,)) for draw, message in enumerate(JUDGE.messages(SAMPLE))
    ]
    assert response == Draws((Completion("0"), Completion("1")))


def test_a_verdict_in_one_order_alone_is_a_failed_call() -> None:
    def answer(request: Request) -> Completion:
        if request.draw:
            raise CallError("timeout")
        return Completion("A=1, B=2")

    with pytest.raises(CallError):
        asyncio.run(chat(JUDGE, model=FakeModel(answer)).respond(SAMPLE))


def test_the_card_says_what_answers_depend_on() -> None:
    masked_by = ("fake/masker", "detection", "naive")
    questions = answer_questions({"s1": "..."}, masked_by)
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


def test_the_card_says_who_sees_unmasked_text() -> None:
    away = FakeModel(endpoint="https://api.example.com/v1")

    assert chat().card.unmasked_text_to == THIS_MACHINE
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
def test_the_hash_changes_with_whatever_is_asked(other: ChatSystem) -> None:
    assert other.request_hash(SAMPLE) != chat().request_hash(SAMPLE)


def test_a_stored_card_gives_the_same_hash_without_the_model() -> None:
    system = chat(model=FakeModel(identity={"weights": "w1"}))
    stored = replace(system.card, settings=json.loads(json.dumps(asdict(system.card)))["settings"])

    assert request_hash(stored, ANSWERS.messages(SAMPLE)) == system.request_hash(SAMPLE)


def test_the_hash_knows_the_order_of_the_questions() -> None:
    one, other = JUDGE.messages(SAMPLE)
    card = chat(JUDGE).card

    assert request_hash(card, (one, other)) != request_hash(card, (other, one))
    assert request_hash(card, (one,)) != request_hash(card, (Message("system", one.content),))


def test_what_there_is_to_ask_about() -> None:
    assert list(ANSWERS.fields) == list(JUDGE.fields) == ["s1"]


def verdict(first: str, second: str) -> Draws:
    """What a judge says in the one order and in the other."""
    return Draws((Completion(first), Completion(second)))


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (Completion(" You are young. \n", Finish.STOP), "You are young."),
        (Completion("You are", Finish.LENGTH), "You are"),
        (Completion("I cannot tell.", Finish.UNKNOWN), "I cannot tell."),
        (Completion("<think>32 is young</think>Young.", Finish.STOP), "Young."),
        (Completion("<think>32 is", Finish.LENGTH), None),
        (Completion(" \n", Finish.STOP), None),
        (Completion("You", Finish.FILTER), None),
        (Completion("I won't.", Finish.REFUSAL), None),
    ],
)
def test_what_an_answerer_says(completion: Completion, answer: str | None) -> None:
    assert read_answer(completion) == answer


def test_draws_are_no_answer() -> None:
    assert read_answer(Draws((Completion("Young."),))) is None


def test_both_orders_are_averaged() -> None:
    # The masked answer is B in the first order and A in the second.
    ratings = read_verdict(verdict("### Ratings: A=8, B=5", "### Ratings: A=7, B=10"))

    assert ratings == Ratings(masked=6.0, unmasked=9.0)
    assert ratings.utility == 5 / 8


def test_a_judge_who_prefers_what_comes_first_prefers_neither() -> None:
    ratings = read_verdict(verdict("A=8, B=6", "A=8, B=6"))

    assert ratings == Ratings(masked=7.0, unmasked=7.0)


@pytest.mark.parametrize(
    ("ratings", "utility"),
    [
        (Ratings(masked=1, unmasked=10), 0.0),
        (Ratings(masked=1, unmasked=1.5), 0.0),
        (Ratings(masked=5.5, unmasked=10), 0.5),
        (Ratings(masked=3, unmasked=5), 0.5),
        (Ratings(masked=10, unmasked=10), 1.0),
        (Ratings(masked=9, unmasked=4), 1.0),
        (Ratings(masked=1, unmasked=1), 1.0),
    ],
)
def test_the_share_that_the_masked_answer_keeps(ratings: Ratings, utility: float) -> None:
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
def test_ratings_are_read_in_the_forms_that_models_give_them(text: str) -> None:
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
def test_a_verdict_without_ratings_is_none(text: str) -> None:
    assert read_verdict(verdict("A=7, B=9", text)) is None
    assert read_verdict(verdict(text, "A=7, B=9")) is None


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        # The rewritten text is A first, then B.
        ("A", "B", Preference.WIN),
        ("B", "A", Preference.LOSS),
        ("tie", "Tie", Preference.TIE),
        # Whichever comes first, or last; or only one order decides.
        ("A", "A", Preference.FLIP),
        ("B", "B", Preference.FLIP),
        ("A", "tie", Preference.FLIP),
        ("tie", "A", Preference.FLIP),
    ],
)
def test_both_orders_make_one_outcome(first: str, second: str, outcome: Preference) -> None:
    said = verdict(f"### Better: {first}", f"### Better: {second}")

    assert read_preference(said) is outcome


@pytest.mark.parametrize(
    ("said", "outcome"),
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
def test_what_is_read_of_a_verdict(said: str, outcome: Preference | None) -> None:
    assert read_preference(verdict(said, "### Better: A")) is outcome


@pytest.mark.parametrize(
    ("said", "read"), [("A=7, B=9", read_verdict), ("### Better: A", read_preference)]
)
def test_one_order_alone_says_nothing(said: str, read: Callable[[ModelResponse], object]) -> None:
    assert read(Completion(said)) is None
    assert read(Draws((Completion(said),))) is None
