"""Systems that a user plugs in: `python:MODULE:FACTORY`, or an installed entry point."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError
from pii_bench.files import sha256_of
from pii_bench.models.base import CallError, Completion, Draws, Finish
from pii_bench.systems.base import System, SystemCard
from pii_bench.systems.predictions import Prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import Response

ENTRY_POINTS: Final = "pii_bench.systems"
"""The group of the entry points; each names a callable without arguments that makes Systems."""

PYTHON: Final = "python"

_FAULT: Final = "error: the plug-in "


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Another author's system: its code is part of what it is, and its errors are its answers.

    Attributes:
        system: as its factory made it.
        source: SHA-256 of the file of its factory; empty where there is no file.
    """

    system: System
    source: str

    @property
    def card(self) -> SystemCard:
        """The system's own, with the hash of its source; without a prompt the task names it."""
        card = self.system.card
        settings = {**card.settings, "source": self.source}
        return replace(card, prompt=card.prompt or str(card.task), settings=settings)

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the source and the system's own hash."""
        own = f"{self.source} {self.system.request_hash(sample)}"
        return hashlib.sha256(own.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Response:
        """The system's answer; an error of its code makes an answer that is `malformed`.

        What may pass (`CallError`) stays an error. The text of others is not kept: it may quote
        the sample.
        """
        try:
            response: object = await self.system.respond(sample)
        except (CallError, PiiBenchError):
            raise
        except Exception as error:  # noqa: BLE001 - foreign code must not end a run of hours
            return Completion(f"{_FAULT}raised {type(error).__name__}", Finish.STOP)
        if isinstance(response, Completion | Draws | Prediction):
            return response
        kind = type(response).__name__
        return Completion(f"{_FAULT}returned {kind}, not Prediction", Finish.STOP)

    async def close(self) -> None:
        """Release what the system holds."""
        await self.system.close()


def fault_of(response: object) -> str | None:
    """What a plug-in did wrong instead of answering; None where it answered."""
    match response:
        case Completion(text=text) if text.startswith(_FAULT):
            return text.removeprefix("error: ")
        case _:
            return None


def plug_in(name: str, target: str) -> tuple[PlugIn, ...]:
    """Load the factory `MODULE:FACTORY`, and let it make its systems; `name` is for errors.

    Raises:
        PiiBenchError: the target is not of that form, cannot be loaded, or makes no systems.
    """
    if not re.fullmatch(r"[\w.]+:[\w.]+", target):
        raise PiiBenchError(f"system {name!r} must be {PYTHON}:MODULE:FACTORY")
    # The command, other than `python -m`, does not look into the folder it is run in.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        factory = EntryPoint(name, target, ENTRY_POINTS).load()
    except (ImportError, AttributeError) as error:
        raise PiiBenchError(f"system {name!r} cannot be loaded: {error}") from error
    made: Sequence[object] = factory() if callable(factory) else ()
    systems = [each for each in made if isinstance(each, System)]
    if not systems or len(systems) != len(made):
        what = "must be a callable without arguments that returns a sequence of Systems"
        raise PiiBenchError(f"system {name!r}: {target} {what}")
    source = _source(target.partition(":")[0])
    return tuple(PlugIn(system, source) for system in systems)


def _source(module: str) -> str:
    spec = find_spec(module)
    path = Path(spec.origin) if spec is not None and spec.origin is not None else None
    return sha256_of(path) if path is not None and path.is_file() else ""
