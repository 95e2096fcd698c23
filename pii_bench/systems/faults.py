"""The stored answer of a plug-in that failed instead of answering."""

from __future__ import annotations

from typing import Final

from pii_bench.models.base import Completion, Finish

_FAULT: Final = "error: the plug-in "


class FaultError(ValueError):
    """A wrong result of foreign code; the message quotes no text of a sample."""


def fault(what: str) -> Completion:
    """Return the answer to store for a sample; `what` is a fact without any text of the sample."""
    return Completion(f"{_FAULT}{what}", Finish.STOP)


def fault_of(response: object) -> str | None:
    """Return the error that a plug-in made instead of answering; None if it answered."""
    if isinstance(response, Completion) and response.text.startswith(_FAULT):
        return response.text.removeprefix("error: ")
    return None
