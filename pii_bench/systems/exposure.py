"""Who is sent unmasked texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.errors import PiiBenchError
from pii_bench.systems.base import THIS_MACHINE, UNKNOWN_RECIPIENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.systems.base import System


def require_local(systems: Iterable[System]) -> None:
    """Refuse systems that send texts as they are away from this machine.

    Cards are believed. What a server on this machine does with a text cannot be seen from
    here: a gateway, a tunnel or a runtime may pass it on.

    Args:
        systems: of one run.

    Raises:
        PiiBenchError: a system whose card names another recipient, or none.
    """
    for system in systems:
        card = system.card
        if card.unmasked_text_to == UNKNOWN_RECIPIENT:
            raise PiiBenchError(
                f"--local-only: system {card.model!r} ({card.prompt}) does not say who is sent "
                f"unmasked text; if none is, its card's unmasked_text_to must be {THIS_MACHINE!r}"
            )
        if card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                f"--local-only: system {card.model!r} ({card.prompt}) sends unmasked text to "
                f"{card.unmasked_text_to}, which is not this machine"
            )
