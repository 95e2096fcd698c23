"""Models by name: providers, and how `--model` becomes a `Model`. Aliases: `models.toml`.

Adapters are imported when they are built: no command pays for an SDK it does not use.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pii_bench.errors import MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.models.table import MODELS, ModelStatus, find_card, normalise_base_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.models.base import Model
    from pii_bench.models.batch import BatchService
    from pii_bench.models.service import ServiceModel
    from pii_bench.models.table import ModelCard

REPLAY: Final = "replay"
LOCAL: Final = "local"

CUSTOM_ENDPOINT_KEY: Final = "PII_BENCH_API_KEY"
"""The key for `--base-url`. The provider's own key never goes to another endpoint."""


class Protocol(StrEnum):
    """What a provider's endpoint speaks; each has an adapter."""

    CHAT_COMPLETIONS = "chat-completions"
    MESSAGES = "messages"
    MISTRAL = "mistral"


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that answers chats.

    Attributes:
        key_variable: the environment variable that holds the key.
        base_url: of its own endpoint, as its protocol's adapter wants it.
        protocol: what the endpoint speaks.
    """

    key_variable: str
    base_url: str
    protocol: Protocol


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "openai": Provider(
            "OPENAI_API_KEY", "https://api.openai.com/v1", Protocol.CHAT_COMPLETIONS
        ),
        "deepseek": Provider(
            "DEEPSEEK_API_KEY", "https://api.deepseek.com", Protocol.CHAT_COMPLETIONS
        ),
        "anthropic": Provider("ANTHROPIC_API_KEY", "https://api.anthropic.com", Protocol.MESSAGES),
        "mistral": Provider("MISTRAL_API_KEY", "https://api.mistral.ai", Protocol.MISTRAL),
    }
)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is called; none of it changes what is asked.

    Attributes:
        base_url: another endpoint that speaks the provider's protocol.
        timeout: seconds for one attempt.
        asked: whether it will be; a model that is not needs no key.
    """

    base_url: str | None = None
    timeout: float = 120.0
    asked: bool = True


def resolve(name: str) -> str:
    """The full name of an alias, or of a model's id alone; any other name as it is."""
    if name in MODELS:
        return MODELS[name].full_name
    of_id = {card.full_name for card in MODELS.values() if card.full_name.partition("/")[2] == name}
    return of_id.pop() if len(of_id) == 1 else name


def build_model(name: str, options: ModelOptions) -> Model:
    """Make the model of `--model`: an alias, `provider/name`, `local/path` or `replay:path`.

    Raises:
        UnknownNameError: no such alias, provider or local model.
        MissingKeyError: the provider's key is not set.
        MissingExtraError: the local model is not installed.
        InputFileError: the replay file or the file of weights is broken.
        PiiBenchError: the model is retired, or runs on servers of one's own only, and no base
            URL is given; the base URL is not one, or is given where it means nothing.
    """
    check_model(name)
    if name.startswith(f"{REPLAY}:"):
        from pii_bench.models.stored import ReplayModel

        _refuse_base_url(name, options)
        return ReplayModel(Path(name.removeprefix(f"{REPLAY}:")))
    provider, _, model = resolve(name).partition("/")
    if provider == LOCAL:
        from pii_bench.models.local import LocalModel

        _refuse_base_url(name, options)
        return LocalModel(model)
    if options.base_url is None:
        _refuse_unserved(name, find_card(provider, model))
    return _connect(provider, model, options)


def check_model(name: str) -> None:
    """Refuse a name that `build_model` could make nothing of, whatever is set or installed.

    Raises:
        UnknownNameError: no such alias, provider or local model.
        PiiBenchError: the name of a provider alone.
    """
    provider, slash, model = resolve(name).partition("/")
    if name.startswith(f"{REPLAY}:"):
        return
    if not slash:
        raise UnknownNameError("model", name, model_names())
    if provider == LOCAL:
        from pii_bench.models.local import check_local

        check_local(model)
    elif provider not in PROVIDERS:
        raise UnknownNameError("provider", provider, [*PROVIDERS, LOCAL, f"{REPLAY}:PATH"])
    elif not model:
        raise PiiBenchError(f"model {name!r}: after {provider}/ comes the name of a model")


def _refuse_unserved(name: str, card: ModelCard | None) -> None:
    if card is None:
        return
    if card.status is ModelStatus.RETIRED:
        raise PiiBenchError(
            f"model {name!r} ({card.full_name}) was retired on {card.retirement}: use "
            f"{card.substitute!r}, or give the --base-url of a server that still has it"
        )
    if card.needs_base_url:
        instead = f", or use {card.substitute!r}" if card.substitute else ""
        raise PiiBenchError(
            f"model {name!r} has open weights, which no provider here serves: run {card.id} on "
            f"a server of your own and give its --base-url{instead}"
        )


def _connect(provider: str, model: str, options: ModelOptions) -> Model:
    settings = PROVIDERS[provider]
    name, base_url = f"{provider}/{model}", settings.base_url
    if options.base_url is not None:
        base_url = normalise_base_url(options.base_url)
        # Servers of one's own often want no key, but the SDK wants one to send.
        key = os.environ.get(CUSTOM_ENDPOINT_KEY) or "none"
        # Whatever answers there need not be the model of that name elsewhere.
        name += f"@{urlsplit(base_url).netloc}"
    elif not options.asked:
        key = "none"
    elif not (key := os.environ.get(settings.key_variable, "")):
        raise MissingKeyError(provider, settings.key_variable)
    return _adapter(settings.protocol)(
        provider, model, api_key=key, base_url=base_url, name=name, timeout=options.timeout
    )


def _adapter(protocol: Protocol) -> type[ServiceModel[Any]]:
    match protocol:
        case Protocol.MESSAGES:
            from pii_bench.models.anthropic_messages import AnthropicModel

            return AnthropicModel
        case Protocol.MISTRAL:
            from pii_bench.models.mistral_chat import MistralModel

            return MistralModel
        case Protocol.CHAT_COMPLETIONS:
            from pii_bench.models.openai_compatible import OpenAICompatibleModel

            return OpenAICompatibleModel


def build_batch_service(model: Model) -> BatchService:
    """The batch API of a model's provider; it uses the model's connections, and closes none.

    Raises:
        PiiBenchError: the provider has none.
    """
    # Only the SDK that the model has imported already is imported here.
    match model.name.partition("/")[0]:
        case "openai":
            from pii_bench.models.openai_compatible import (
                OpenAIBatchService,
                OpenAICompatibleModel,
            )

            if isinstance(model, OpenAICompatibleModel):
                return OpenAIBatchService(model)
        case "anthropic":
            from pii_bench.models.anthropic_messages import AnthropicBatchService, AnthropicModel

            if isinstance(model, AnthropicModel):
                return AnthropicBatchService(model)
        case "mistral":
            from pii_bench.models.mistral_chat import MistralBatchService, MistralModel

            if isinstance(model, MistralModel):
                return MistralBatchService(model)
    raise PiiBenchError(
        f"model {model.name!r} has no batch API (those of openai, anthropic and mistral have one)"
    )


def _refuse_base_url(name: str, options: ModelOptions) -> None:
    if options.base_url is not None:
        raise PiiBenchError(f"model {name!r} has no endpoint: --base-url does not apply to it")


def model_names() -> list[str]:
    """What `build_model` takes, as it is written."""
    providers = [f"{provider}/NAME" for provider in PROVIDERS]
    return [*MODELS, *providers, f"{LOCAL}/PATH.gguf", f"{REPLAY}:PATH"]
