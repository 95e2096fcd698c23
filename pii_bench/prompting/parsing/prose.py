"""What answers outside lists and objects share: bullets, emphasis, words for nothing."""

from __future__ import annotations

import re
from typing import Final

DECORATION: Final = " \t\r\n*_>#`.。"
"""Characters around an answer that say nothing."""

_BULLET = re.compile(r"[ \t]*+(?:[-*•–+‣]|\(?\d{1,3}[.)])[ \t]++(\S.*)")
_NOTHING = re.compile(
    r"[\s*_(\"']*+(?:(?:none|null|nil|n/a|nothing|empty)"
    r"(?=[^\w\s/]|\s*$|\s+(?:of|is|are|was|were|needed|required|found|relevant|to)\b)"
    r"|no(?: [\w-]+){0,3} (?:pii|entit\w+|information|data|spans?|items?|subjects?)\b)",
    re.IGNORECASE,
)


def bullet_item(line: str) -> str | None:
    """Give what follows a bullet or a number, or None where there is neither."""
    found = _BULLET.fullmatch(line)
    return found[1].strip() if found else None


def says_nothing(line: str) -> bool:
    """Say whether a line means that there is nothing to name (None, N/A, no PII ...)."""
    return _NOTHING.match(line[:120]) is not None
