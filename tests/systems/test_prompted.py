from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import AnswerSchema, CallError, Completion, Draws, Request, Sampling
from pii_bench.prompting.strategies import STRATEGIES, Output, answer_schema, load_prompt
from pii_bench.runs.records import Failure
from pii_bench.runs.run import run_system
from pii_bench.runs.store import RunFiles, RunStore, read_lines
from pii_bench.systems.prompted import ChunkedSystem, PromptedSystem, VotedSystem, pieces
from tests.builders import make_sample
from tests.fakes import FakeModel, RecordingObserver, fake_system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SAMPLE = make_sample("s1")
NAIVE = STRATEGIES["naive"]

TEXT = "Ann Lee is 32.\n\nShe lives in Oslo. Her son is Bo."
LONG = make_sample("s1", description=TEXT, subjects=[], related=[])


def system(output: Output, model: FakeModel | None = None) -> PromptedSystem:
    return PromptedSystem(model or FakeModel(), load_prompt(NAIVE, output=output), Sampling())


@pytest.mark.parametrize(
    ("output", "prompt", "schema"),
    [("text", "naive", None), ("schema", "naive+schema", answer_schema(NAIVE))],
)
def test_what_the_model_is_asked(output: Output, prompt: str, schema: AnswerSchema | None) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Completion:
        asked.append(request)
        return Completion("[]")

    asyncio.run(system(output, FakeModel(answer)).respond(SAMPLE))

    (request,) = asked
    assert (request.sample_id, request.prompt, request.schema) == ("s1", prompt, schema)


def test_a_schema_is_said_by_the_card() -> None:
    text, schema = system("text").card, system("schema").card

    assert (text.prompt, text.output, text.settings) == (
        "naive",
        "text",
        {"temperature": 0.0, "max_tokens": 2048},
    )
    assert (schema.prompt, schema.output, schema.settings) == (
        "naive+schema",
        "schema",
        {"temperature": 0.0, "max_tokens": 2048, "output": "schema"},
    )


def test_the_order_of_a_schemas_keys_is_part_of_the_request() -> None:
    prompt = load_prompt(STRATEGIES["self-cot"], output="schema")
    assert prompt.schema is not None
    properties = prompt.schema.schema["properties"]
    turned = {**prompt.schema.schema, "properties": dict(reversed(properties.items()))}
    other = replace(prompt, schema=replace(prompt.schema, schema=turned))

    hashes = {
        PromptedSystem(FakeModel(), each, Sampling()).request_hash(SAMPLE)
        for each in (prompt, other)
    }

    assert len(hashes) == 2


def numbered(request: Request) -> Completion:
    return Completion(f"draw {request.draw}")


def voted(model: FakeModel | None = None, votes: int = 3) -> VotedSystem:
    sampling = Sampling(temperature=0.7)
    return VotedSystem(
        fake_system(model or FakeModel(numbered), "self-consistency-vote", sampling), votes
    )


def failing(errors: Sequence[Exception | None]) -> Callable[[Request], Completion]:
    """Raise the error of the draw's place, or answer where there is None."""

    def answer(request: Request) -> Completion:
        if error := errors[request.draw]:
            raise error
        return numbered(request)

    return answer


def test_the_draws_are_one_request_told_apart_by_number_alone() -> None:
    requests = voted().requests(SAMPLE)

    assert [request.draw for request in requests] == [0, 1, 2]
    assert {replace(request, draw=0) for request in requests} == {requests[0]}
    assert requests[0].sampling.temperature == 0.7


def test_every_draw_is_kept_as_it_came_and_in_its_place() -> None:
    response = asyncio.run(voted().respond(SAMPLE))

    assert response == Draws((Completion("draw 0"), Completion("draw 1"), Completion("draw 2")))


def test_the_draws_are_asked_for_at_the_same_time() -> None:
    model = FakeModel(numbered)
    asyncio.run(voted(model, votes=4).respond(SAMPLE))

    assert model.peak == 4


def test_the_number_of_draws_is_part_of_the_request_and_of_the_settings() -> None:
    three, five = voted(votes=3), voted(votes=5)

    assert three.request_hash(SAMPLE) == voted(votes=3).request_hash(SAMPLE)
    hashes = {each.request_hash(SAMPLE) for each in (three, five, three.prompted)}
    assert len(hashes) == 3
    card = three.prompted.card
    assert three.card == replace(card, settings={**card.settings, "votes": 3})


def test_a_refusal_goes_before_a_failed_call() -> None:
    model = FakeModel(failing([CallError("timeout"), ProviderRefusedError("no key"), None]))

    with pytest.raises(ProviderRefusedError, match=r"^no key$"):
        asyncio.run(voted(model).respond(SAMPLE))


def test_a_draw_that_fails_fails_the_sample_and_those_in_flight_are_given_up() -> None:
    ended: list[int] = []

    class SlowModel(FakeModel):
        async def complete(self, request: Request) -> Completion:
            if request.draw == 1:
                raise CallError("timeout")
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(request.draw)
            return numbered(request)

    with pytest.raises(CallError, match=r"^timeout$") as caught:
        asyncio.run(voted(SlowModel()).respond(SAMPLE))

    assert caught.value.__context__ is None
    assert sorted(ended) == [0, 2]


def test_an_error_that_is_no_failed_call_is_not_taken_for_one() -> None:
    model = FakeModel(failing([ZeroDivisionError(), None, None]))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(voted(model).respond(SAMPLE))

    assert caught.group_contains(ZeroDivisionError)


def test_a_sample_with_a_failed_draw_is_asked_again_whole(tmp_path: Path) -> None:
    asked: list[int] = []
    failing_once = [CallError("timeout")]

    def answer(request: Request) -> Completion:
        asked.append(request.draw)
        if request.draw == 2 and failing_once:
            raise failing_once.pop()
        return numbered(request)

    system = voted(FakeModel(answer))
    requests = {"s1": system.request_hash(SAMPLE)}
    files = RunFiles.at(tmp_path, "fake/one", "self-consistency-vote", "tiny")
    left = []
    for _ in range(3):
        with RunStore(files, requests) as store:
            run = run_system(system, [SAMPLE], store, concurrency=1, observer=RecordingObserver())
            asyncio.run(run)
        left.append([record.response for _, record in read_lines(files.responses)])

    draws = Draws((Completion("draw 0"), Completion("draw 1"), Completion("draw 2")))
    assert left == [[Failure("timeout", "")], [draws], [draws]]
    assert asked == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("votes", [0, -1])
def test_nobody_votes_without_draws(votes: int) -> None:
    with pytest.raises(PiiBenchError, match=rf"^votes: {votes} draws came \(allowed: 1 and more\)"):
        voted(votes=votes)


def chunked(model: FakeModel | None = None, chunk: int = 20) -> ChunkedSystem:
    prompt = load_prompt(STRATEGIES["json"])
    return ChunkedSystem(PromptedSystem(model or FakeModel(), prompt, Sampling()), chunk)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("Ann is 32.", 10, ["Ann is 32."]),
        (TEXT, 20, ["Ann Lee is 32.\n\n", "She lives in Oslo. ", "Her son is Bo."]),
        ("Ann met Bo in Oslo", 12, ["Ann met Bo ", "in Oslo"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        # Half a piece at least: the paragraph that ends early is no end.
        ("A.\n\nAnn met Bo in Oslo", 14, ["A.\n\nAnn met ", "Bo in Oslo"]),
        ("", 5, [""]),
    ],
)
def test_a_text_is_cut_where_something_ends(text: str, most: int, expected: list[str]) -> None:
    assert pieces(text, most) == expected


@given(st.text(alphabet="ab .\n", max_size=80), st.integers(1, 30))
def test_the_pieces_make_the_text(text: str, most: int) -> None:
    found = pieces(text, most)

    assert "".join(found) == text
    assert all(len(piece) <= most for piece in found)
    assert all(2 * len(piece) >= most for piece in found[:-1])


def test_each_piece_is_asked_about() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Completion:
        asked.append(request)
        return Completion(f"answer {request.draw}")

    response = asyncio.run(chunked(FakeModel(answer)).respond(LONG))

    assert response == Draws(
        (Completion("answer 0"), Completion("answer 1"), Completion("answer 2"))
    )
    assert [(each.sample_id, each.draw) for each in asked] == [("s1", 0), ("s1", 1), ("s1", 2)]
    shown = [each.messages[0].content.rpartition("Text:\n")[2] for each in asked]
    assert [each.partition("\n\nYour object:")[0].strip() for each in shown] == [
        "Ann Lee is 32.",
        "She lives in Oslo.",
        "Her son is Bo.",
    ]


def test_the_size_of_a_piece_is_part_of_what_it_is() -> None:
    small, large = chunked(chunk=20), chunked(chunk=30)

    assert small.request_hash(LONG) != large.request_hash(LONG)
    assert small.card.settings["chunk"] == 20
    assert small.card.taxonomy == "paper"
    assert not small.card.names_subjects
