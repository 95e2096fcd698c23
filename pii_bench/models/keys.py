"""API keys: what can be sent in a header."""

from __future__ import annotations

import re

from pii_bench.errors import PiiBenchError


def check_key(provider: str, key: str) -> None:
    """Refuse a key that no HTTP header may hold, without showing it.

    Args:
        provider: whose key it is.
        key: as it came from the environment.

    Raises:
        PiiBenchError: the key is empty or not printable ASCII without spaces.
    """
    if not re.fullmatch(r"[!-~]+", key):
        raise PiiBenchError(
            f"the key for provider {provider!r} is empty or holds a character other than "
            "printable ASCII (often a line break at its end)"
        )
