"""What is known of chat models: ids, prices, limits and status, as `models.toml` has it.

What no source states stays unknown: a price that is not known is None, never 0.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator


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


TABLE_FILE: Final = Path(__file__).with_name("models.toml")


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
        provider: a provider of `pii_bench.models.catalog`, or `local`.
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


class _Table(Mapping[str, ModelCard]):
    """The cards of `models.toml` by alias, read when the first is asked for."""

    def __getitem__(self, alias: str) -> ModelCard:
        return _cards()[alias]

    def __iter__(self) -> Iterator[str]:
        return iter(_cards())

    def __len__(self) -> int:
        return len(_cards())


MODELS: Final[Mapping[str, ModelCard]] = _Table()
"""The cards by alias, in the order of the file."""


def find_card(provider: str, model_id: str) -> ModelCard | None:
    """The card of a provider's model; None where the table has none."""
    return _by_id().get((provider, model_id))


def read_table(path: Path) -> Mapping[str, ModelCard]:
    """Read a table of models.

    Raises:
        InputFileError: it cannot be read or is no TOML; a key is unknown, absent or of another
            kind; two models have one id; a substitute is unknown or retired; a model that
            leaves has no date or no substitute.
    """
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"not valid TOML: {error}") from error
    try:
        cards = {alias: _card(alias, table) for alias, table in tables.items()}
        _check(cards)
    except _RowError as error:
        raise InputFileError(path, str(error)) from None
    return MappingProxyType(cards)


@cache
def _cards() -> Mapping[str, ModelCard]:
    return read_table(TABLE_FILE)


@cache
def _by_id() -> Mapping[tuple[str, str], ModelCard]:
    return {(card.provider, card.id): card for card in MODELS.values()}


class _RowError(ValueError):
    """A row that is not of the format; `read_table` adds the file."""


_AMOUNT: Final = (int, float)
_PRICE_KEYS: Final[Mapping[str, tuple[type, ...]]] = {
    "input": _AMOUNT,
    "output": _AMOUNT,
    "date": (dt.date,),
    "source": (str,),
    "cached_input": _AMOUNT,
    "cache_write": _AMOUNT,
    "batch_factor": _AMOUNT,
}
_CARD_KEYS: Final[Mapping[str, tuple[type, ...]]] = {
    "provider": (str,),
    "id": (str,),
    "source": (str,),
    "date": (dt.date,),
    "price": (dict,),
    "context": (int,),
    "max_output": (int,),
    "reasons": (bool,),
    "accepts_temperature": (bool,),
    "needs_base_url": (bool,),
    "status": (str,),
    "retirement": (dt.date,),
    "substitute": (str,),
    "note": (str,),
}


def _card(alias: str, table: object) -> ModelCard:
    owner = f"model {alias!r}"
    if not isinstance(table, dict):
        raise _RowError(f"{owner} must be a table")
    values = _values(owner, table, _CARD_KEYS, required=("provider", "id", "source"))
    status = values.pop("status", ModelStatus.CURRENT)
    if status not in set(ModelStatus):
        raise _RowError(f"{owner}: {UnknownNameError('status', status, ModelStatus)}")
    if (price := values.pop("price", None)) is not None:
        price = _price(f"{owner}: price", price)
    return ModelCard(alias=alias, price=price, status=ModelStatus(status), **values)


def _price(owner: str, table: dict[str, Any]) -> Price:
    required = ("input", "output", "date", "source")
    price = Price(**_values(owner, table, _PRICE_KEYS, required=required))
    if price.batch_factor is not None and not 0 < price.batch_factor <= 1:
        raise _RowError(f"{owner}: 'batch_factor' must be above 0 and at most 1")
    return price


def _values(
    owner: str,
    table: dict[str, Any],
    keys: Mapping[str, tuple[type, ...]],
    *,
    required: tuple[str, ...],
) -> dict[str, Any]:
    for key, value in table.items():
        if key not in keys:
            raise _RowError(f"{owner}: {UnknownNameError('key', key, keys)}")
        # Not isinstance: a boolean is no number, a time with a date no date.
        if type(value) not in keys[key]:
            wanted = " or ".join(kind.__name__ for kind in keys[key])
            raise _RowError(f"{owner}: {key!r} must be {wanted}, not {type(value).__name__}")
        if type(value) in _AMOUNT and value < 0:
            raise _RowError(f"{owner}: {key!r} must not be below 0")
    for key in required:
        if key not in table:
            raise _RowError(f"{owner}: {key!r} is missing")
    return dict(table)


def _check(cards: Mapping[str, ModelCard]) -> None:
    names: dict[str, str] = {}
    for alias, card in cards.items():
        owner = f"model {alias!r}"
        if (first := names.setdefault(card.full_name, alias)) != alias:
            raise _RowError(f"{owner}: {card.full_name} is {first!r} already")
        if card.substitute is not None:
            _check_substitute(owner, card.substitute, cards)
        if card.status is not ModelStatus.CURRENT and not (card.retirement and card.substitute):
            raise _RowError(f"{owner} is {card.status}: it needs 'retirement' and 'substitute'")


def _check_substitute(owner: str, substitute: str, cards: Mapping[str, ModelCard]) -> None:
    if substitute not in cards:
        raise _RowError(f"{owner}: {UnknownNameError('substitute', substitute, cards)}")
    if cards[substitute].status is ModelStatus.RETIRED:
        raise _RowError(f"{owner}: the substitute {substitute!r} is retired itself")
