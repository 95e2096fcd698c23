"""Models by name: providers, aliases, and how `--model` becomes a `Model`.

Adapters are imported when they are built: no command pays for an SDK it does not use.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pii_bench.errors import MissingKeyError, PiiBenchError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.models.base import Model

REPLAY: Final = "replay"
LOCAL: Final = "local"

CUSTOM_ENDPOINT_KEY: Final = "PII_BENCH_API_KEY"
"""The key for `--base-url`. The provider's own key never goes to another endpoint."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that speaks OpenAI's Chat Completions.

    Attributes:
        key_variable: the environment variable that holds the key.
        base_url: of its own endpoint.
    """

    key_variable: str
    base_url: str


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "openai": Provider("OPENAI_API_KEY", "https://api.openai.com/v1"),
        "deepseek": Provider("DEEPSEEK_API_KEY", "https://api.deepseek.com"),
    }
)

LOCAL_MODELS: Final = ("smollm2-135m-instruct",)

MODELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gpt4o": "openai/gpt-4o-2024-08-06",
        "deepseek-v3": "deepseek/deepseek-chat",
        "smollm2": "local/smollm2-135m-instruct",
    }
)
"""Alias to `provider/name`."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is called; none of it changes what is asked.

    Attributes:
        base_url: another endpoint that speaks the provider's protocol.
        timeout: seconds for one attempt.
        max_retries: further attempts after a failure that may pass.
    """

    base_url: str | None = None
    timeout: float = 120.0
    max_retries: int = 4


def resolve(name: str) -> str:
    """The full name of an alias; any other name as it is."""
    return MODELS.get(name, name)


def build_model(name: str, options: ModelOptions) -> Model:
    """Make the model of `--model`: an alias, `provider/name` or `replay:path`.

    Raises:
        UnknownNameError: no such alias, provider or local model.
        MissingKeyError: the provider's key is not set.
        MissingExtraError: the local model is not installed.
        InputFileError: the replay file is broken.
        PiiBenchError: the base URL is not one, or stands where it means nothing.
    """
    if name.startswith(f"{REPLAY}:"):
        from pii_bench.models.replay import ReplayModel

        _refuse_base_url(name, options)
        return ReplayModel(Path(name.removeprefix(f"{REPLAY}:")))
    provider, slash, model = resolve(name).partition("/")
    if not slash:
        raise UnknownNameError("model", name, model_names())
    if provider == LOCAL:
        if model not in LOCAL_MODELS:
            raise UnknownNameError("local model", model, LOCAL_MODELS)
        from pii_bench.models.local import LocalModel

        _refuse_base_url(name, options)
        return LocalModel(model)
    if provider not in PROVIDERS:
        raise UnknownNameError("provider", provider, [*PROVIDERS, LOCAL, f"{REPLAY}:PATH"])
    if not model:
        raise PiiBenchError(f"model {name!r}: after {provider}/ comes the name of a model")
    return _build_openai_compatible(provider, model, options)


def _build_openai_compatible(provider: str, model: str, options: ModelOptions) -> Model:
    from pii_bench.models.openai_compatible import OpenAICompatibleModel

    settings = PROVIDERS[provider]
    name = f"{provider}/{model}"
    if options.base_url is not None:
        # Servers of one's own often want no key, but the SDK wants one to send.
        key = os.environ.get(CUSTOM_ENDPOINT_KEY) or "none"
        # Whatever answers there need not be the model of that name elsewhere.
        name += f"@{urlsplit(options.base_url).netloc}"
    elif not (key := os.environ.get(settings.key_variable, "")):
        raise MissingKeyError(provider, settings.key_variable)
    return OpenAICompatibleModel(
        provider=provider,
        model=model,
        api_key=key,
        base_url=options.base_url or settings.base_url,
        name=name,
        timeout=options.timeout,
        max_retries=options.max_retries,
    )


def _refuse_base_url(name: str, options: ModelOptions) -> None:
    if options.base_url is not None:
        raise PiiBenchError(f"model {name!r} has no endpoint: --base-url does not apply to it")


def model_names() -> list[str]:
    """What `build_model` takes, as it is written."""
    providers = [f"{provider}/NAME" for provider in PROVIDERS]
    return [*MODELS, *providers, *(f"{LOCAL}/{name}" for name in LOCAL_MODELS), f"{REPLAY}:PATH"]
