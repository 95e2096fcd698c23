from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.models.catalog import PROVIDERS, ModelOptions, build_model, model_names, resolve
from pii_bench.models.table import MODELS
from tests.builders import write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.models.base import Model


def build(name: str, base_url: str | None = None) -> Model:
    return build_model(name, ModelOptions(base_url=base_url))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PII_BENCH_API_KEY", *(p.key_variable for p in PROVIDERS.values())):
        monkeypatch.delenv(variable, raising=False)


def test_an_alias_has_a_full_name_and_a_full_name_is_itself() -> None:
    assert resolve("gpt4o") == "openai/gpt-4o-2024-08-06"
    # As the leaderboard names it.
    assert resolve("gpt-4o-2024-08-06") == "openai/gpt-4o-2024-08-06"
    assert resolve("openai/o9") == "openai/o9"


def test_every_alias_leads_to_a_provider() -> None:
    assert {card.provider for card in MODELS.values()} <= {*PROVIDERS, "local"}


def test_what_can_be_written_is_listed_once() -> None:
    names = model_names()

    assert len(names) == len(set(names))
    assert {"gpt4o", "anthropic/NAME", "mistral/NAME", "local/PATH.gguf", "replay:PATH"} <= set(
        names
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gpt4", "unknown model 'gpt4'; did you mean 'gpt4o'? (allowed: "),
        ("opnai/gpt-4o", "unknown provider 'opnai'; did you mean 'openai'? (allowed: "),
        ("replay/file", "unknown provider 'replay'; did you mean 'replay:PATH'? (allowed: "),
        (
            "local/smollm2-135m",
            "unknown local model 'smollm2-135m'; did you mean 'smollm2-135m-instruct'? (allowed: ",
        ),
        (
            "claude-opus-55",
            "unknown model 'claude-opus-55'; did you mean 'claude-opus-5.5'? (allowed: ",
        ),
        ("", "unknown model '' (allowed: "),
    ],
)
def test_an_unknown_name_and_its_near_match(name: str, what: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        build(name)

    assert str(caught.value).startswith(what)


def test_a_provider_without_a_model() -> None:
    with pytest.raises(PiiBenchError, match=r"^model 'openai/': after openai/ comes the name"):
        build("openai/")


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt4o", "OPENAI_API_KEY"),
        ("deepseek/x", "DEEPSEEK_API_KEY"),
        ("claude-opus-5.5", "ANTHROPIC_API_KEY"),
        ("mistral-small-4", "MISTRAL_API_KEY"),
    ],
)
def test_a_missing_key_names_its_variable(
    name: str, variable: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(variable, value)

    with pytest.raises(MissingKeyError, match=f"set {variable} in the environment$"):
        build(name)


@pytest.mark.parametrize(
    ("alias", "variable", "name", "endpoint", "kind"),
    [
        (
            "gpt4o",
            "OPENAI_API_KEY",
            "openai/gpt-4o-2024-08-06",
            "https://api.openai.com/v1",
            "OpenAICompatibleModel",
        ),
        (
            "deepseek-flash",
            "DEEPSEEK_API_KEY",
            "deepseek/deepseek-flash",
            "https://api.deepseek.com",
            "OpenAICompatibleModel",
        ),
        (
            "claude-opus-5.5",
            "ANTHROPIC_API_KEY",
            "anthropic/claude-opus-5-5",
            "https://api.anthropic.com",
            "AnthropicModel",
        ),
        (
            "mistral-small-4",
            "MISTRAL_API_KEY",
            "mistral/mistral-small-2603",
            "https://api.mistral.ai",
            "MistralModel",
        ),
    ],
)
def test_with_its_key_a_provider_is_asked_at_its_own_endpoint(
    monkeypatch: pytest.MonkeyPatch, alias: str, variable: str, name: str, endpoint: str, kind: str
) -> None:
    monkeypatch.setenv(variable, "secret")

    model = build(alias)

    assert (type(model).__name__, model.name, model.endpoint) == (kind, name, endpoint)
    assert model.identity == {"endpoint": endpoint}


@pytest.mark.parametrize(
    ("name", "full_name", "kind"),
    [
        ("openai/x", "openai/x@localhost:8000", "OpenAICompatibleModel"),
        ("anthropic/x", "anthropic/x@localhost:8000", "AnthropicModel"),
        ("mistral/x", "mistral/x@localhost:8000", "MistralModel"),
        ("qwen3-8b-think", "openai/Qwen/Qwen3-8B@localhost:8000", "OpenAICompatibleModel"),
        ("deepseek-chat", "deepseek/deepseek-chat@localhost:8000", "OpenAICompatibleModel"),
    ],
)
def test_another_endpoint_needs_no_key_and_serves_what_no_provider_does(
    name: str, full_name: str, kind: str
) -> None:
    model = build(name, "http://localhost:8000")

    assert (type(model).__name__, model.name) == (kind, full_name)
    assert model.endpoint == "http://localhost:8000"


@pytest.mark.parametrize("name", ["openai/x", "anthropic/x", "mistral/x"])
def test_the_providers_key_does_not_go_to_another_endpoint(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in PROVIDERS.values():
        # A key that no header may hold: were it taken, it would be refused.
        monkeypatch.setenv(provider.key_variable, "not sendable")

    assert build(name, "http://localhost:8000").name.endswith("@localhost:8000")


def test_a_base_url_that_is_none_is_refused_without_being_shown() -> None:
    with pytest.raises(PiiBenchError, match=r"^base URL: host or port is not valid$"):
        build("openai/x", "http://[secret")


@pytest.mark.parametrize("name", ["claude-3.5-sonnet", "anthropic/claude-3-5-sonnet-20241022"])
def test_a_retired_model_is_refused_with_its_substitute(name: str) -> None:
    with pytest.raises(PiiBenchError) as caught:
        build(name)

    assert str(caught.value) == (
        f"model {name!r} (anthropic/claude-3-5-sonnet-20241022) was retired on 2025-10-28: use "
        "'claude-sonnet-5.5', or give the --base-url of a server that still has it"
    )


@pytest.mark.parametrize(
    ("name", "instead"),
    [("qwen2.5-7b-instruct", ""), ("deepseek-v3", ", or use 'deepseek-flash'")],
)
def test_open_weights_are_refused_without_a_server_of_ones_own(name: str, instead: str) -> None:
    with pytest.raises(PiiBenchError) as caught:
        build(name)

    assert str(caught.value) == (
        f"model {name!r} has open weights, which no provider here serves: run "
        f"{MODELS[name].id} on a server of your own and give its --base-url{instead}"
    )


@pytest.mark.parametrize("name", ["replay:answers.jsonl", "smollm2"])
def test_a_model_without_endpoint_takes_no_base_url(name: str) -> None:
    with pytest.raises(PiiBenchError, match=r"has no endpoint: --base-url does not apply to it$"):
        build(name, "http://localhost:8000/v1")


def test_a_replay_is_named_with_its_path(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [{"id": "s1", "text": ""}])

    assert build(f"replay:{path}").name == "replay/answers"


def test_a_replay_of_nothing() -> None:
    with pytest.raises(InputFileError, match="gone"):
        build("replay:gone.jsonl")
