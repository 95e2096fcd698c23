"""How a failed call of an HTTP service is told.

What a service answers to a refused request may repeat a text or a key: only codes that
cannot be one of them go into messages.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.models.base import Completion, Outcome

REDIRECT_REMEDY: Final = "the base URL redirects to another, and texts go nowhere else: check it"
"""What helps where an endpoint answers 3xx."""

NO_TEMPERATURE_REMEDY: Final = "it takes no such `temperature`: run with `--temperature default`"
"""What helps where a model refuses the temperature."""

NO_SCHEMA_REMEDY: Final = "it takes no such JSON schema: run without `--output schema`"
"""What helps where a model refuses structured output."""

MAX_TOKENS_REMEDY: Final = "it writes fewer tokens: run with a lower `--max-tokens`"
"""What helps where a model refuses the limit on its answer."""


def parse_json(content: bytes | str) -> object:
    """The JSON of an answer; None where it is none, or `null`: no service answers so."""
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body


def attempt(read: Callable[[object], Completion], body: object) -> Outcome:
    """What an adapter reads in an answer, or why it cannot."""
    try:
        return read(body)
    except CallError as error:
        return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait.

    Args:
        headers: of its answer, by lower-case name.

    Returns:
        What `retry-after-ms` says, else `Retry-After` (RFC 9110, 10.2.3: seconds or a
        date; a date in the past is 0); None where neither is a time.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        return None
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def safe_code(*values: object) -> str:
    """The first value that can only be a provider's short code; empty if none is.

    Letters, `_`, `.` and `-`: a key has digits, a text has spaces, and a number says less
    than the HTTP status does.
    """
    for value in values:
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z_.-]{1,64}", value):
            return value
    return ""


def failure_kind(status: int) -> str:
    """The kind of a failed call by its HTTP status, where nothing else is known of it."""
    if status >= 500:
        return "server_error"
    return {408: "timeout", 429: "rate_limit"}.get(status, "bad_request")


def refusal(provider: str, model: str, detail: str, remedy: str) -> ProviderRefusedError:
    """The error that stops a run whose every call would be refused."""
    return ProviderRefusedError(
        f"provider {provider!r} refuses model {model!r}: {detail}: {remedy}"
    )
