from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.models.catalog import MODELS, PROVIDERS, ModelOptions, build_model, resolve
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
    assert resolve("openai/o9") == "openai/o9"


def test_every_alias_leads_to_a_provider() -> None:
    assert {name.partition("/")[0] for name in MODELS.values()} <= {*PROVIDERS, "local"}


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
    ("name", "variable"), [("gpt4o", "OPENAI_API_KEY"), ("deepseek/x", "DEEPSEEK_API_KEY")]
)
def test_a_missing_key_names_its_variable(
    name: str, variable: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(variable, value)

    with pytest.raises(MissingKeyError, match=f"set {variable} in the environment$"):
        build(name)


def test_with_its_key_a_provider_is_asked_at_its_own_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "secret")

    model = build("deepseek-v3")

    assert model.name == "deepseek/deepseek-chat"
    assert model.identity == {"endpoint": "https://api.deepseek.com"}


def test_another_endpoint_needs_no_key() -> None:
    model = build("openai/qwen2.5-7b", "http://localhost:8000/v1/")

    assert model.name == "openai/qwen2.5-7b@localhost:8000"
    assert model.identity == {"endpoint": "http://localhost:8000/v1"}


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
