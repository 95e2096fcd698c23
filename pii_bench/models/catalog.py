"""The known models and providers, and how `--model` becomes a `Model`.

Ids, prices, limits and status are in `models.toml`. An unknown price is None, never 0.

Adapters are imported when they are built: no command imports an SDK that it does not use.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
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


BATCH_FACTOR: Final = 0.5
"""Ratio of the price in a batch to that of single calls, at every provider that has batches."""


class ModelStatus(StrEnum):
    """Whether a provider still serves a model, or has said when it stops."""

    CURRENT = "current"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price in USD per million tokens.

    Attributes:
        output: reasoning included.
        date: on which the source was valid.
        source: a URL, or why the model costs nothing.
        cached_input: of the part of a request that is read from a cache; None if unknown.
        cache_write: of the part that is written to a cache, which the provider does unasked
            for requests from 1,024 tokens; None if it costs no more than `input`.
        batch_factor: ratio of the price in a batch to this one; None if the provider has no
            batches.
    """

    input: float
    output: float
    date: dt.date
    source: str
    cached_input: float | None = None
    cache_write: float | None = None
    batch_factor: float | None = None

    @property
    def rates(self) -> str:
        """The prices, such as `2 in, 10 out, 0.5 in from a cache, 2.5 in to a cache`."""
        parts = [f"{self.input:g} in", f"{self.output:g} out"]
        if self.cached_input is not None:
            parts.append(f"{self.cached_input:g} in from a cache")
        if self.cache_write is not None:
            parts.append(f"{self.cache_write:g} in to a cache")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model of one provider.

    Attributes:
        alias: unique in the table.
        provider: one of `PROVIDERS`, or `local`.
        id: its name in requests, unique within the provider.
        source: URL of all facts but the price.
        date: on which the source was valid; None if the source has no date.
        price: None if unknown.
        context: tokens of request and answer together; None if unknown.
        max_output: tokens of the longest answer, reasoning included; None if unknown.
        reasons: whether it reasons before it answers by default.
        accepts_temperature: whether a temperature may be sent, and has an effect.
        needs_base_url: whether the weights are open and no provider here serves them, so that
            the user has to run a server.
        retirement: the day on which it was or will be retired.
        substitute: alias of the model to use instead.
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
    """Read a table of models: the cards by alias, in the order of the file.

    Raises:
        TypeError: a key is unknown or missing.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    for table in tables.values():
        table["status"] = ModelStatus(table.get("status", ModelStatus.CURRENT))
        if "price" in table:
            table["price"] = Price(**table["price"])
    return {alias: ModelCard(alias, **table) for alias, table in tables.items()}


MODELS: Final = read_table(Path(__file__).with_name("models.toml"))
"""The cards by alias, in the order of the file."""


def has_provider(name: str) -> bool:
    """Return True if calls to the model go to the endpoint of a provider."""
    return resolve(name).partition("/")[0] in PROVIDERS


def find_card(provider: str, model_id: str) -> ModelCard | None:
    """Return the card of a provider's model, or None if it is unknown."""
    for card in MODELS.values():
        if (card.provider, card.id) == (provider, model_id):
            return card
    return None


def listed_price(name: str, base_url: str | None) -> Price | None:
    """Return the price of a model at its provider; None if unknown, or on another server."""
    provider, _, model_id = resolve(name).partition("/")
    card = find_card(provider, model_id)
    return card.price if card is not None and base_url is None else None


_HOST: Final = re.compile(r"(?=.{1,253}$)([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")


def normalise_base_url(url: str) -> str:
    """Normalise a base URL: lower-case scheme and host, no slash at its end.

    Raises:
        PiiBenchError: not an http(s) URL with an ASCII host, or one with user information, a
            query or a fragment. The message never quotes the URL: it may contain a key.
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
            f"put the key into {CUSTOM_ENDPOINT_KEY}"
        )
    if "?" in url or "#" in url:
        raise PiiBenchError(
            "base URL has a query or a fragment (`?`, `#`): results name the base URL; "
            f"put the key into {CUSTOM_ENDPOINT_KEY}"
        )
    host = parts.hostname or ""
    if not host.isascii():
        # Clients replace some letters: they read `\u24dbocalhost` as `localhost`.
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
    """Return True if a URL's host is this machine: `localhost` or a loopback address."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


REPLAY: Final = "replay"
LOCAL: Final = "local"

CUSTOM_ENDPOINT_KEY: Final = "PII_BENCH_API_KEY"
"""Variable of the key for `--base-url`: a provider's key is never sent to another endpoint."""


class Protocol(StrEnum):
    """The protocol of a provider's endpoint; each has an adapter."""

    CHAT_COMPLETIONS = "chat-completions"
    MESSAGES = "messages"
    MISTRAL = "mistral"


@dataclass(frozen=True, slots=True)
class Provider:
    """A service with chat models: the variable with its key, and its endpoint."""

    key_variable: str
    base_url: str
    protocol: Protocol


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("OPENAI_API_KEY", "https://api.openai.com/v1", Protocol.CHAT_COMPLETIONS),
    "deepseek": Provider("DEEPSEEK_API_KEY", "https://api.deepseek.com", Protocol.CHAT_COMPLETIONS),
    "anthropic": Provider("ANTHROPIC_API_KEY", "https://api.anthropic.com", Protocol.MESSAGES),
    "mistral": Provider("MISTRAL_API_KEY", "https://api.mistral.ai", Protocol.MISTRAL),
}


TIMEOUT: Final = 120
"""Default seconds for one attempt of a call."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of calling a model; none of them changes the requests.

    Attributes:
        base_url: another endpoint with the provider's protocol.
        timeout: seconds for one attempt.
        asked: whether calls will be made; without calls no key is needed.
    """

    base_url: str | None = None
    timeout: float = TIMEOUT
    asked: bool = True


def resolve(name: str) -> str:
    """Return the full name for an alias or a unique id; any other name is returned unchanged."""
    if name in MODELS:
        return MODELS[name].full_name
    same_id = [card.full_name for card in MODELS.values() if card.id == name]
    return same_id[0] if len(same_id) == 1 else name


def build_model(name: str, options: ModelOptions) -> Model:
    """Build the model of `--model`: an alias, `provider/name`, `local/path` or `replay:path`.

    Raises:
        UnknownNameError: no such alias, provider or local model.
        MissingKeyError: the provider's key is not set.
        MissingExtraError: the local model is not installed.
        InputFileError: the replay file or the file of weights is not valid.
        PiiBenchError: the model is retired, or needs the user's own server, and no base URL is
            given; the base URL is not valid, or the model has no endpoint.
    """
    check_model(name)
    provider, _, model = resolve(name).partition("/")
    replayed = name.startswith(f"{REPLAY}:")
    if (replayed or provider == LOCAL) and options.base_url is not None:
        raise PiiBenchError(f"model {name!r} has no endpoint: --base-url does not apply to it")
    if replayed:
        return ReplayModel(Path(name.removeprefix(f"{REPLAY}:")))
    if provider == LOCAL:
        from pii_bench.models.local import LocalModel

        return LocalModel(model)
    if options.base_url is None:
        _refuse_unserved(name, find_card(provider, model))
    return _connect(provider, model, options)


def is_replay(model: str) -> bool:
    """Return True if a model's name in results is that of recorded answers."""
    return model.partition("/")[0] == REPLAY


def check_model(name: str) -> None:
    """Refuse a name that `build_model` cannot build, whatever is set or installed.

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
        # The SDK requires a key even for servers that need none.
        key = os.environ.get(CUSTOM_ENDPOINT_KEY) or "none"
        # The server there, or behind another path, may have a different model of this name. A path
        # that ends in `/v1` is left out: runs are stored under such names.
        parts = urlsplit(base_url)
        path = "" if parts.path.endswith("/v1") else parts.path
        name += f"@{parts.netloc}{path}"
    elif not options.asked:
        key = "none"
    elif not (key := os.environ.get(settings.key_variable, "")):
        raise MissingKeyError(provider, settings.key_variable)
    adapter: type[ServiceModel[Any]]
    match settings.protocol:
        case Protocol.MESSAGES:
            from pii_bench.models.anthropic_messages import AnthropicModel

            adapter = AnthropicModel
        case Protocol.MISTRAL:
            from pii_bench.models.mistral_chat import MistralModel

            adapter = MistralModel
        case Protocol.CHAT_COMPLETIONS:
            from pii_bench.models.openai_compatible import OpenAICompatibleModel

            adapter = OpenAICompatibleModel
    return adapter(
        provider, model, api_key=key, base_url=base_url, name=name, timeout=options.timeout
    )


def build_batch_service(model: Model) -> BatchService:
    """Return the batch API of a model's provider; it uses the model's connections.

    Raises:
        PiiBenchError: the provider has none.
    """
    from pii_bench.models.service import ServiceModel

    service = model.batch_service() if isinstance(model, ServiceModel) else None
    if service is None:
        raise PiiBenchError(
            f"model {model.name!r} has no batch API (those of openai, anthropic and mistral have "
            "one)"
        )
    return service


def model_names() -> list[str]:
    """Return the names that `build_model` accepts, with placeholders."""
    providers = [f"{provider}/NAME" for provider in PROVIDERS]
    return [*MODELS, *providers, f"{LOCAL}/PATH.gguf", f"{REPLAY}:PATH"]
