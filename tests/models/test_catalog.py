from __future__ import annotations

import datetime as dt
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.errors import InputFileError, MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.models.catalog import (
    BATCH_FACTOR,
    MODELS,
    PROVIDERS,
    ModelCard,
    ModelOptions,
    ModelStatus,
    Price,
    build_model,
    is_loopback,
    model_names,
    normalise_base_url,
    read_table,
    resolve,
)
from tests.builders import write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.models.base import Model

KEY: Final = "sk-planted-key-0123456789"


def test_a_table_is_read_and_missing_keys_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        """
[small]
provider = "openai"
id = "small-1"
source = "https://example.org/small"
status = "deprecated"
retirement = 2027-01-14
substitute = "other"

[other]
provider = "mistral"
id = "small-1"
source = "https://example.org/other"

[other.price]
input = 1.5
output = 3
date = 2026-11-01
source = "https://example.org/prices"
batch_factor = 0.5
"""
    )

    assert read_table(path) == {
        "small": ModelCard(
            "small",
            "openai",
            "small-1",
            "https://example.org/small",
            status=ModelStatus.DEPRECATED,
            retirement=dt.date(2027, 1, 14),
            substitute="other",
        ),
        "other": ModelCard(
            "other",
            "mistral",
            "small-1",
            "https://example.org/other",
            price=Price(
                1.5, 3, dt.date(2026, 11, 1), "https://example.org/prices", batch_factor=0.5
            ),
        ),
    }


@pytest.mark.parametrize("card", MODELS.values(), ids=MODELS)
def test_every_row_is_valid(card: ModelCard) -> None:
    assert card.provider in {*PROVIDERS, "local"}
    assert not set(card.alias) & set("/+: ")
    assert {type(text) for text in (card.id, card.source, card.note)} == {str}
    switches = (card.reasons, card.accepts_temperature, card.needs_base_url)
    assert {type(switch) for switch in switches} == {bool}
    assert isinstance(card.date, dt.date | None)
    assert isinstance(card.retirement, dt.date | None)
    numbers: list[float | None] = [card.context, card.max_output]
    if card.price is not None:
        price = card.price
        numbers += [price.input, price.output, price.cached_input, price.cache_write]
        assert isinstance(price.date, dt.date)
        assert isinstance(price.source, str)
        assert price.batch_factor in {None, BATCH_FACTOR}
        assert not card.needs_base_url
        assert (price.input == 0) == (card.provider == "local")
    assert {type(number) for number in numbers} <= {int, float, type(None)}
    assert all(number is None or number >= 0 for number in numbers)
    if card.status is not ModelStatus.CURRENT:
        assert card.retirement
        assert card.substitute
    if card.substitute is not None:
        assert MODELS[card.substitute].status is not ModelStatus.RETIRED


@pytest.mark.parametrize(
    ("more", "standing"),
    [
        ({}, "current"),
        (
            {
                "status": ModelStatus.DEPRECATED,
                "retirement": dt.date(2027, 1, 14),
                "substitute": "other",
            },
            "deprecated, until 2027-01-14: use other",
        ),
        ({"needs_base_url": True}, "needs --base-url"),
        ({"needs_base_url": True, "substitute": "other"}, "needs --base-url, or use other"),
    ],
)
def test_the_status_in_words(more: dict[str, Any], standing: str) -> None:
    assert ModelCard("small", "openai", "small-1", "https://a.example", **more).standing == standing


def test_every_model_has_one_row() -> None:
    assert len({card.full_name for card in MODELS.values()}) == len(MODELS)


def test_every_model_of_the_paper_has_a_row() -> None:
    models = (
        "gpt4o claude-3.5-sonnet deepseek-v3 llama-3.1-70b-instruct qwen2.5-72b-instruct "
        "llama-3.1-8b-instruct qwen2.5-7b-instruct qwen2.5-3b-instruct qwen2.5-1.5b-instruct "
        "qwen2.5-0.5b-instruct gpt-5 deepseek-v3.2 deepseek-r1 qwen3-30b-instruct "
        "qwen3-30b-thinking qwen3-8b-think qwen3-8b-no-think"
    )
    assert set(models.split()) <= set(MODELS)


class TestBaseURL:
    @pytest.mark.parametrize(
        ("url", "normal"),
        [
            ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
            ("HTTPS://API.Example.org", "https://api.example.org"),
            ("https://api.example.org/Some/Path//", "https://api.example.org/Some/Path"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
            ("http://my_host.lan.:80/v1", "http://my_host.lan.:80/v1"),
            ("https://xn--bcher-kva.example/v1", "https://xn--bcher-kva.example/v1"),
        ],
    )
    def test_is_normalised(self, url: str, normal: str) -> None:
        assert normalise_base_url(url) == normal

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("", "must start with http"),
            ("localhost:8000/v1", "must start with http"),
            ("ftp://example.org", "must start with http"),
            ("http://", "no valid host"),
            ("http:///v1", "no valid host"),
            ("http://a host/v1", "no valid host"),
            # Clients read it as `localhost`.
            ("http://\u24dbocalhost/v1", "host must be ASCII"),
            ("http://b\u00fccher.example/v1", "host must be ASCII"),
            ("http://a..example/v1", "no valid host"),
            ("http://-.example:8000\x00/v1", "not valid"),
            ("http://example.org/\x00", "not valid"),
            ("http://[v1.x]/v1", "valid"),
            (f"http://{'a' * 64}.example/v1", "no valid host"),
            (f"http://example.org/{'a' * 70_000}", "not valid"),
            ("http://example.org:port", "not valid"),
            ("http://example.org:99999", "not valid"),
            ("http://[::1", "not valid"),
            (f"https://user:{KEY}@example.org/v1", "user information.*PII_BENCH_API_KEY"),
            (f"https://{KEY}@example.org/v1", "user information.*PII_BENCH_API_KEY"),
            (f"https://example.org/v1?api_key={KEY}", "query.*PII_BENCH_API_KEY"),
            (f"https://example.org/v1#{KEY}", "query"),
        ],
    )
    def test_an_error_does_not_quote_the_url(self, url: str, message: str) -> None:
        with pytest.raises(PiiBenchError, match=message) as caught:
            normalise_base_url(url)
        assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("endpoint", "loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:9", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:8080/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://192.168.0.7:8000", False),
        ("http://localhost.example.org", False),
    ],
)
def test_loopback_addresses(endpoint: str, loopback: bool) -> None:
    assert is_loopback(endpoint) is loopback


def build(name: str, base_url: str | None = None) -> Model:
    return build_model(name, ModelOptions(base_url=base_url))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PII_BENCH_API_KEY", *(p.key_variable for p in PROVIDERS.values())):
        monkeypatch.delenv(variable, raising=False)


def test_aliases_and_ids_have_a_full_name() -> None:
    assert resolve("gpt4o") == "openai/gpt-4o-2024-08-06"
    # The name on the leaderboard.
    assert resolve("gpt-4o-2024-08-06") == "openai/gpt-4o-2024-08-06"
    assert resolve("openai/o9") == "openai/o9"


def test_the_accepted_names_are_unique() -> None:
    names = model_names()

    assert len(names) == len(set(names))
    assert {"gpt4o", "anthropic/NAME", "mistral/NAME", "local/PATH.gguf", "replay:PATH"} <= set(
        names
    )


@pytest.mark.parametrize(
    ("name", "message"),
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
def test_an_unknown_name_gets_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        build(name)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "base_url", "message"),
    [
        ("openai/", None, "^model 'openai/': after openai/ comes the name"),
        # It may contain a key.
        ("openai/x", "http://[secret", "^base URL: host or port is not valid$"),
    ],
)
def test_a_provider_needs_a_model_and_a_valid_base_url(
    name: str, base_url: str | None, message: str
) -> None:
    with pytest.raises(PiiBenchError, match=message):
        build(name, base_url)


@pytest.mark.parametrize(
    ("alias", "variable", "name", "endpoint", "kind"),
    [
        ("gpt4o", "OPENAI_API_KEY", "openai/gpt-4o-2024-08-06", "https://api.openai.com/v1",
         "OpenAICompatibleModel"),
        ("deepseek-flash", "DEEPSEEK_API_KEY", "deepseek/deepseek-flash",
         "https://api.deepseek.com", "OpenAICompatibleModel"),
        ("claude-opus-5.5", "ANTHROPIC_API_KEY", "anthropic/claude-opus-5-5",
         "https://api.anthropic.com", "AnthropicModel"),
        ("mistral-small-4", "MISTRAL_API_KEY", "mistral/mistral-small-2603",
         "https://api.mistral.ai", "MistralModel"),
    ],
)  # fmt: skip
def test_a_provider_needs_its_key(
    monkeypatch: pytest.MonkeyPatch, alias: str, variable: str, name: str, endpoint: str, kind: str
) -> None:
    for _ in range(2):
        with pytest.raises(MissingKeyError, match=f"set {variable} in the environment$"):
            build(alias)
        monkeypatch.setenv(variable, "")
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
def test_another_endpoint_needs_no_key_and_takes_any_model(
    name: str, full_name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (None, "not sendable"):
        if key is not None:
            # This key is not valid, so using it would be an error.
            for provider in PROVIDERS.values():
                monkeypatch.setenv(provider.key_variable, key)
        model = build(name, "http://localhost:8000")
        assert (type(model).__name__, model.name) == (kind, full_name)
        assert model.endpoint == "http://localhost:8000"


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("http://localhost:8000/v1/", "openai/x@localhost:8000"),
        ("https://models.example", "openai/x@models.example"),
        ("https://models.example/api/v1", "openai/x@models.example"),
        ("https://models.example/a", "openai/x@models.example/a"),
        ("https://models.example/b/", "openai/x@models.example/b"),
        ("https://models.example/v1beta/openai", "openai/x@models.example/v1beta/openai"),
    ],
)
def test_the_name_has_the_endpoint(base_url: str, name: str) -> None:
    assert build("openai/x", base_url).name == name


RETIRED = (
    "(anthropic/claude-3-5-sonnet-20241022) was retired on 2025-10-28: use "
    "'claude-sonnet-5.5', or give the --base-url of a server that still has it"
)
OPEN = "has open weights, which no provider here serves: run {} on a server of your own and give "
NO_ENDPOINT = "has no endpoint: --base-url does not apply to it"


@pytest.mark.parametrize(
    ("name", "base_url", "message"),
    [
        ("claude-3.5-sonnet", None, RETIRED),
        ("anthropic/claude-3-5-sonnet-20241022", None, RETIRED),
        (
            "qwen2.5-7b-instruct",
            None,
            f"{OPEN.format(MODELS['qwen2.5-7b-instruct'].id)}its --base-url",
        ),
        (
            "deepseek-v3",
            None,
            f"{OPEN.format(MODELS['deepseek-v3'].id)}its --base-url, or use 'deepseek-flash'",
        ),
        ("replay:answers.jsonl", "http://localhost:8000/v1", NO_ENDPOINT),
        ("smollm2", "http://localhost:8000/v1", NO_ENDPOINT),
    ],
)
def test_a_model_that_cannot_be_called_there(name: str, base_url: str | None, message: str) -> None:
    with pytest.raises(PiiBenchError) as caught:
        build(name, base_url)

    assert str(caught.value) == f"model {name!r} {message}"


def test_a_replay_has_a_path(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [{"id": "s1", "text": ""}])

    assert build(f"replay:{path}").name == "replay/answers"
    with pytest.raises(InputFileError, match="gone"):
        build("replay:gone.jsonl")


def test_the_rates_of_a_price_are_all_that_a_cost_follows_from() -> None:
    price = Price(2, 10, dt.date(2026, 11, 1), "https://example.org/prices")

    assert price.rates == "2 in, 10 out"
    assert replace(price, cached_input=0.5, cache_write=2.5).rates == (
        "2 in, 10 out, 0.5 in from a cache, 2.5 in to a cache"
    )
