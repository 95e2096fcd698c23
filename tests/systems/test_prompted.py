from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import AnswerSchema, CallError, Completion, Draws, Request, Sampling
from pii_bench.models.catalog import ModelCard, ModelOptions
from pii_bench.prompting.strategies import STRATEGIES, Output, answer_schema, load_prompt
from pii_bench.systems import prompted
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.prompted import DrawnSystem, PromptedSystem, pieces
from tests.builders import make_sample, write_lines
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pii_bench.systems.base import System

SAMPLE = make_sample("s1")
NAIVE = STRATEGIES["naive"]

TEXT = "Ann Lee is 32.\n\nShe lives in Oslo. Her son is Bo."
LONG = make_sample("s1", description=TEXT, subjects=[], related=[])


@pytest.mark.parametrize(
    ("output", "prompt", "schema", "settings"),
    [
        ("text", "naive", None, {}),
        ("schema", "naive+schema", answer_schema(NAIVE), {"output": "schema"}),
    ],
)
def test_the_request_and_the_card_agree_on_the_output_form(
    output: Output, prompt: str, schema: AnswerSchema | None, settings: dict[str, str]
) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Completion:
        asked.append(request)
        return Completion("[]")

    text = load_prompt(NAIVE, output=output)
    prompted_system = PromptedSystem(FakeModel(answer), text, Sampling())
    asyncio.run(prompted_system.respond(SAMPLE))

    (request,) = asked
    assert (request.sample_id, request.prompt, request.schema) == ("s1", prompt, schema)
    card = prompted_system.card
    assert (card.prompt, card.output) == (prompt, output)
    assert card.settings == {"temperature": 0.0, "max_tokens": 2048, **settings}


def test_the_order_of_schema_keys_changes_the_request_hash() -> None:
    prompt = load_prompt(STRATEGIES["self-cot"], output="schema")
    assert prompt.schema is not None
    properties = prompt.schema.schema["properties"]
    reversed_schema = {**prompt.schema.schema, "properties": dict(reversed(properties.items()))}
    other = replace(prompt, schema=replace(prompt.schema, schema=reversed_schema))

    hashes = {
        PromptedSystem(FakeModel(), variant, Sampling()).request_hash(SAMPLE)
        for variant in (prompt, other)
    }

    assert len(hashes) == 2


def numbered(request: Request) -> Completion:
    return Completion(f"draw {request.draw}")


def voted(model: FakeModel | None = None, votes: int = 3) -> DrawnSystem:
    sampling = Sampling(temperature=0.7)
    prompted = fake_system(model or FakeModel(numbered), "self-consistency-vote", sampling)
    return DrawnSystem(prompted, "votes", votes)


def failing(errors: Sequence[Exception | None]) -> Callable[[Request], Completion]:
    """Return an answer function that raises the error at the draw's index, if any."""

    def answer(request: Request) -> Completion:
        if error := errors[request.draw]:
            raise error
        return numbered(request)

    return answer


DRAWS = Draws((Completion("draw 0"), Completion("draw 1"), Completion("draw 2")))


def test_draws_are_concurrent_and_returned_in_order() -> None:
    model = FakeModel(numbered)

    assert asyncio.run(voted(model).respond(SAMPLE)) == DRAWS
    assert model.peak == 3


def test_the_setting_is_in_the_card_and_the_hashes_of_stored_answers_stay() -> None:
    for system, setting, number, identity in (
        (voted(votes=3), "votes", 3, "3"),
        (chunked(chunk=20), "chunk", 20, "chunk 20"),
    ):
        text = f"{system.prompted.request_hash(SAMPLE)}:{identity}"
        assert system.request_hash(SAMPLE) == sha256(text.encode()).hexdigest()
        card = system.prompted.card
        assert system.card == replace(card, settings={**card.settings, setting: number})


def test_a_refusal_takes_precedence_over_a_failed_call() -> None:
    model = FakeModel(failing([CallError("timeout"), ProviderRefusedError("no key"), None]))

    with pytest.raises(ProviderRefusedError, match=r"^no key$"):
        asyncio.run(voted(model).respond(SAMPLE))


def test_a_failed_draw_fails_the_sample_and_cancels_the_others() -> None:
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


def test_an_unexpected_error_is_raised_unchanged() -> None:
    model = FakeModel(failing([ZeroDivisionError(), None, None]))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(voted(model).respond(SAMPLE))

    assert caught.group_contains(ZeroDivisionError)


@pytest.mark.parametrize("setting", ["votes", "chunk"])
def test_a_number_below_one_is_an_error(setting: Literal["votes", "chunk"]) -> None:
    with pytest.raises(PiiBenchError, match=rf"^{setting} must be at least 1, not 0$"):
        DrawnSystem(fake_system(FakeModel()), setting, 0)


def chunked(model: FakeModel | None = None, chunk: int = 20) -> DrawnSystem:
    prompt = load_prompt(STRATEGIES["json"])
    return DrawnSystem(PromptedSystem(model or FakeModel(), prompt, Sampling()), "chunk", chunk)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("Ann is 32.", 10, ["Ann is 32."]),
        (TEXT, 20, ["Ann Lee is 32.\n\n", "She lives in Oslo. ", "Her son is Bo."]),
        ("Ann met Bo in Oslo", 12, ["Ann met Bo ", "in Oslo"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        # The paragraph ends before half of the allowed length.
        ("A.\n\nAnn met Bo in Oslo", 14, ["A.\n\nAnn met ", "Bo in Oslo"]),
        ("", 5, [""]),
    ],
)
def test_a_text_is_cut_at_the_largest_unit_that_fits(
    text: str, most: int, expected: list[str]
) -> None:
    assert pieces(text, most) == expected


@given(st.text(alphabet="ab .\n", max_size=80), st.integers(1, 30))
def test_joined_pieces_equal_the_text(text: str, most: int) -> None:
    parts = pieces(text, most)

    assert "".join(parts) == text
    assert all(len(piece) <= most for piece in parts)
    assert all(2 * len(piece) >= most for piece in parts[:-1])


def test_each_piece_gets_its_own_request() -> None:
    def answer(request: Request) -> Completion:
        text = request.messages[0].content.rpartition("Text:\n")[2]
        piece = text.partition("\n\nYour object:")[0].strip()
        return Completion(f"{request.sample_id}.{request.draw}: {piece}")

    response = asyncio.run(chunked(FakeModel(answer)).respond(LONG))

    texts = ("s1.0: Ann Lee is 32.", "s1.1: She lives in Oslo.", "s1.2: Her son is Bo.")
    assert response == Draws(tuple(map(Completion, texts)))


def test_detection_in_the_labels_of_a_taxonomy_names_no_subjects() -> None:
    card = chunked().card

    assert (card.taxonomy, card.names_subjects) == ("paper", False)


def built(path: Path, **options: Any) -> Sequence[System]:
    answers = write_lines(path / "mine.jsonl", [{"id": "s1", "text": "[]"}])
    return build_systems(f"replay:{answers}", SystemOptions(**options))


@pytest.mark.parametrize(
    ("options", "prompts", "output"),
    [
        ({}, ["detection", "naive"], "text"),
        ({"strategy": "json"}, ["json"], "text"),
        ({"strategy": "rewrite"}, ["rewrite"], "text"),
        (
            {"output": "schema", "strategy": "self-consistency-vote"},
            ["detection+schema", "self-consistency-vote+schema"],
            "schema",
        ),
    ],
)
def test_a_chat_model_has_systems_for_its_strategy(
    tmp_path: Path, options: dict[str, Any], prompts: list[str], output: str
) -> None:
    cards = [system.card for system in built(tmp_path, **options)]

    assert [card.prompt for card in cards] == prompts
    assert {card.output for card in cards} == {output}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {"temperature": 0.7, "votes": 5}),
        ({"votes": 3}, {"temperature": 0.7, "votes": 3}),
        ({"temperature": 0.3}, {"temperature": 0.3, "votes": 5}),
        ({"temperature": "default"}, {"temperature": None, "votes": 5}),
    ],
)
def test_votes_have_their_own_default_temperature(
    tmp_path: Path, options: dict[str, Any], settings: dict[str, object]
) -> None:
    detection, vote = built(tmp_path, strategy="self-consistency-vote", **options)

    assert {key: vote.card.settings[key] for key in settings} == settings
    assert "votes" not in detection.card.settings
    asked = options.get("temperature")
    assert detection.card.settings["temperature"] == (None if asked == "default" else asked or 0.0)


def sampling(name: str, **options: Any) -> tuple[object, object]:
    # Never contacted.
    server = ModelOptions(base_url="http://localhost:9/v1")
    settings = build_systems(name, SystemOptions(model=server, **options))[0].card.settings
    return settings["temperature"], settings["max_tokens"]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        # Defaults of the model.
        ("gpt4o", {}, (0.0, 2048)),
        ("openai/gpt-5-2025-08-07", {}, (None, 16384)),
        ("openai/nobody-knows-it", {}, (0.0, 2048)),
        # Explicit options.
        ("gpt4o", {"temperature": 0.7, "max_tokens": 99}, (0.7, 99)),
        ("gpt4o", {"temperature": "default"}, (None, 2048)),
        ("gpt-5", {"temperature": "default", "max_tokens": 99}, (None, 99)),
        ("gpt4o", {"max_tokens": 16_384}, (0.0, 16_384)),
    ],
)
def test_sampling_defaults_and_options(
    name: str, options: dict[str, Any], expected: tuple[object, object]
) -> None:
    assert sampling(name, **options) == expected


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("gpt-5", {"temperature": 0.0}, "^model 'gpt-5' takes no temperature: leave --temp"),
        (
            "gpt4o",
            {"max_tokens": 16_385},
            "^model 'gpt4o' writes at most 16,384 tokens, but --max-tokens is 16,385$",
        ),
        (
            "gpt4o",
            {"strategy": "self-consistency", "votes": 5},
            "^strategy 'self-consistency' has no vote: leave --votes out",
        ),
    ],
)
def test_options_that_the_model_or_strategy_rejects_are_errors(
    name: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PiiBenchError, match=reason):
        sampling(name, **options)


@pytest.mark.parametrize("reasons", [True, False])
def test_the_output_limit_of_a_model_caps_the_default(
    monkeypatch: pytest.MonkeyPatch, reasons: bool
) -> None:
    card = ModelCard("x", "openai", "x", "source", max_output=1000, reasons=reasons)
    monkeypatch.setattr(prompted, "find_card", lambda *_: card)

    assert sampling("openai/x") == (0.0, 1000)
