"""Models by name: what is known of them, who serves them, and how `--model` becomes a `Model`.

Ids, prices, limits and status are those of `models.toml`. What no source states stays unknown: a
price that is not known is None, never 0.

Adapters are imported when they are built: no command pays for an SDK it does not use.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pii_bench.errors import MissingKeyError, PiiBenchError, UnknownNameError
from pii_bench.models.base import ReplayModel

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from pii_bench.models.base import Model
    from pii_bench.models.batch import BatchService
    from pii_bench.models.service import ServiceModel


class ModelStatus(StrEnum):
    """Whether a provider still serves a model, or has said when it stops."""

    CURRENT = "current"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Price:
    """What a provider takes, in USD per million tokens.

    Attributes:
        input: of a request.
        output: of an answer, reasoning included.
        date: the day that the source speaks of.
        source: a URL, or why the model costs nothing.
        cached_input: of the part of a request that is read from a cache; None where unknown.
        cache_write: of the part that is written to a cache, which the provider does unasked
            with requests from 1,024 tokens; None where that costs no more than `input`.
        batch_factor: what the same tokens cost in a batch, as a part of this; None where the
            provider has no batches.
    """

    input: float
    output: float
    date: dt.date
    source: str
    cached_input: float | None = None
    cache_write: float | None = None
    batch_factor: float | None = None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model of one provider.

    Attributes:
        alias: its short name, unique in the table.
        provider: one of `PROVIDERS`, or `local`.
        id: what is asked for, unique within the provider.
        source: URL of what is said here, but for the price.
        date: the day that the source speaks of; None where it names none.
        price: None where it is unknown.
        context: tokens of request and answer together; None where unknown.
        max_output: tokens of the longest answer, reasoning included; None where unknown.
        reasons: whether it reasons before it answers if nothing else is asked.
        accepts_temperature: whether a temperature may be sent, and is heeded.
        needs_base_url: whether the weights are open and no provider here serves them, so
            that it runs behind a server of one's own.
        status: whether the provider serves it.
        retirement: the day on which it was or will be retired.
        substitute: alias of what to use in its place.
        note: what else a user should know.
    """

    alias: str
    provider: str
    id: str
    source: str
    date: dt.date | None = None
    price: Price | None = None
    context: int | None = None
    max_output: int | None = None
    reasons: bool = False
    accepts_temperature: bool = True
    needs_base_url: bool = False
    status: ModelStatus = ModelStatus.CURRENT
    retirement: dt.date | None = None
    substitute: str | None = None
    note: str = ""

    @property
    def full_name(self) -> str:
        """`provider/id`."""
        return f"{self.provider}/{self.id}"

    @property
    def standing(self) -> str:
        """The status in words, such as `retired 2025-10-28: use claude-sonnet-5.5`."""
        if self.needs_base_url:
            served = f", or use {self.substitute}" if self.substitute else ""
            return f"needs --base-url{served}"
        until = ", until" if self.status is ModelStatus.DEPRECATED else ""
        day = f"{until} {self.retirement}" if self.retirement else ""
        instead = f": use {self.substitute}" if self.substitute else ""
        return f"{self.status}{day}{instead}"


def read_table(path: Path) -> Mapping[str, ModelCard]:
    """The cards of a table of models by alias, in the order of the file.

    The file is part of the package: tests see to it that its rows are right.

    Raises:
        TypeError: a key is unknown or absent.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return MappingProxyType({alias: _card(alias, **table) for alias, table in tables.items()})


def _card(
    alias: str, *, price: dict[str, Any] | None = None, status: str = "current", **others: Any
) -> ModelCard:
    listed = None if price is None else Price(**price)
    return ModelCard(alias, price=listed, status=ModelStatus(status), **others)


MODELS: Final = read_table(Path(__file__).with_name("models.toml"))
"""The cards by alias, in the order of the file."""

_BY_ID: Final = {(card.provider, card.id): card for card in MODELS.values()}


def find_card(provider: str, model_id: str) -> ModelCard | None:
    """The card of a provider's model; None where the table has none."""
    return _BY_ID.get((provider, model_id))


_HOST: Final = re.compile(r"(?=.{1,253}$)([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")


def normalise_base_url(url: str) -> str:
    """Bring a base URL into the one form that results name.

    Args:
        url: such as `http://localhost:8000/v1/`.

    Returns:
        The URL with a lower-case scheme and host and without a slash at its end.

    Raises:
        PiiBenchError: no http(s) URL with a host of ASCII, or one with user information, a
            query or a fragment. The URL is never quoted: it may hold a key.
    """
    import httpx2

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise PiiBenchError("base URL: host or port is not valid") from None
    if parts.scheme not in {"http", "https"}:
        raise PiiBenchError("base URL must start with http:// or https://")
    if "@" in parts.netloc:
        raise PiiBenchError(
            "base URL holds user information (user:password@): results name the base URL; "
            "put the key into the provider's variable"
        )
    if "?" in url or "#" in url:
        raise PiiBenchError(
            "base URL has a query or a fragment (`?`, `#`): results name the base URL; "
            "put the key into the provider's variable"
        )
    host = parts.hostname or ""
    if not host.isascii():
        # Clients read some letters as others: `\u24dbocalhost` is `localhost` to them.
        raise PiiBenchError("base URL: the host must be ASCII: write other letters as `xn--...`")
    if "[" in parts.netloc:
        host = f"[{host}]"
    elif not _HOST.fullmatch(host):
        raise PiiBenchError("base URL names no valid host")
    netloc = host if port is None else f"{host}:{port}"
    normal = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
    try:
        httpx2.URL(normal)
    except httpx2.InvalidURL:
        raise PiiBenchError("base URL is not valid: address, length or control character") from None
    return normal


def is_loopback(endpoint: str) -> bool:
    """Whether a URL's host is this machine: `localhost` or a loopback address."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
