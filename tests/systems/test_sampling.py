from __future__ import annotations

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import ModelOptions
from pii_bench.models.table import ModelCard
from pii_bench.systems import catalog
from pii_bench.systems.catalog import SystemOptions, build_systems

# Nothing is asked there.
SERVER = ModelOptions(base_url="http://localhost:9/v1")


def sampling(name: str, **options: object) -> tuple[object, object]:
    given = SystemOptions(model=SERVER, **options)  # type: ignore[arg-type]
    settings = build_systems(name, given)[0].card.settings
    return settings["temperature"], settings["max_tokens"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt4o", (0.0, 2048)),
        ("openai/gpt-5-2025-08-07", (None, 16384)),
        ("qwen3-8b-think", (0.0, 16384)),
        ("openai/nobody-knows-it", (0.0, 2048)),
    ],
)
def test_what_suits_the_model_is_the_default(name: str, expected: tuple[object, object]) -> None:
    assert sampling(name) == expected


@pytest.mark.parametrize("reasons", [True, False])
def test_the_longest_answer_that_the_model_writes_caps_the_default(
    monkeypatch: pytest.MonkeyPatch, reasons: bool
) -> None:
    card = ModelCard("x", "openai", "x", "source", max_output=1000, reasons=reasons)
    monkeypatch.setattr(catalog, "find_card", lambda *_: card)

    assert sampling("openai/x") == (0.0, 1000)


def test_what_is_asked_for_comes_first() -> None:
    assert sampling("gpt4o", temperature=0.7, max_tokens=99) == (0.7, 99)
    assert sampling("gpt4o", temperature="default") == (None, 2048)
    assert sampling("gpt-5", temperature="default", max_tokens=99) == (None, 99)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_temperature_that_the_model_does_not_take_is_refused(temperature: float) -> None:
    with pytest.raises(PiiBenchError, match=r"^model 'gpt-5' takes no temperature: leave --temp"):
        sampling("gpt-5", temperature=temperature)


@pytest.mark.parametrize("name", ["bilstm-crf", "python:m:f"])
def test_what_is_no_chat_model_has_no_temperature(name: str) -> None:
    with pytest.raises(PiiBenchError, match="has no use for --temperature"):
        build_systems(name, SystemOptions(temperature="default"))


def test_more_tokens_than_the_model_writes_are_refused() -> None:
    reason = r"^model 'gpt4o' writes at most 16,384 tokens, and --max-tokens came as 16,385$"
    with pytest.raises(PiiBenchError, match=reason):
        sampling("gpt4o", max_tokens=16_385)
    assert sampling("gpt4o", max_tokens=16_384) == (0.0, 16_384)


@pytest.mark.parametrize(
    ("name", "what"),
    [("gpt4o", "has no dial"), ("bilstm-crf", "has no use for --keep")],
)
def test_only_the_encoder_has_a_dial(name: str, what: str) -> None:
    with pytest.raises(PiiBenchError, match=what):
        build_systems(name, SystemOptions(keep="more"))
