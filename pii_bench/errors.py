"""Exceptions.

A message names the object (file and line, sample id, model), the value found and the values
allowed. It never contains an API key or the text of a sample, because messages end up in logs.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class PiiBenchError(Exception):
    """Base class: wrong arguments, wrong input or a missing dependency. Exit code 2."""

    def __reduce__(self) -> tuple[type[PiiBenchError], tuple[str]]:
        # Pickling keeps the message only: subclasses take other arguments.
        return PiiBenchError, (str(self),)


class UnknownNameError(PiiBenchError):
    """An unknown name; the message suggests the closest known one.

    Args:
        kind: what the name should be one of, such as "dataset".
        name: the unknown name.
        allowed: the known names.
        among: where the names are from, such as "the stored runs"; empty for all of pii_bench.
    """

    def __init__(self, kind: str, name: str, allowed: Iterable[str], among: str = "") -> None:
        # str(): the repr of an enum member is not what the user writes.
        self.kind, self.name, self.allowed = kind, name, tuple(map(str, allowed))
        near = difflib.get_close_matches(name, self.allowed, n=1, cutoff=0.6)
        source = f" among {among}" if among else ""
        hint = f"; did you mean {near[0]!r}?" if near else ""
        choice = f"(allowed: {', '.join(self.allowed)})"
        super().__init__(f"unknown {kind} {name!r}{source}{hint} {choice}")


class InputFileError(PiiBenchError):
    """A file that is missing, unreadable or not in the expected format.

    `what` is the problem, without quoting the text of a sample; `line` counts from 1.
    """

    def __init__(self, path: Path | str, what: str, *, line: int | None = None) -> None:
        self.path, self.line, self.what = str(path), line, what
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {what}")


class BadLinesError(InputFileError):
    """A file with several unreadable lines; the message lists at most twenty.

    `problems` are (1-based line number, problem).
    """

    def __init__(self, path: Path | str, problems: Sequence[tuple[int, str]]) -> None:
        shown = sorted(problems[:20])
        listed = "".join(f"\n  line {line}: {what}" for line, what in shown)
        hidden = len(problems) - len(shown)
        more = f"\n  and {hidden} more" if hidden else ""
        super().__init__(path, f"{len(problems)} lines cannot be read{listed}{more}")


class CheckFailedError(PiiBenchError):
    """A dataset failed the check; the `problems` of the `samples` have been printed already."""

    def __init__(self, problems: int, samples: int) -> None:
        self.problems, self.samples = problems, samples
        super().__init__(f"the check found {problems} problems in {samples} samples")


class MissingKeyError(PiiBenchError):
    """The environment `variable` with the API key of a `provider` is not set."""

    def __init__(self, provider: str, variable: str) -> None:
        self.provider, self.variable = provider, variable
        super().__init__(f"provider {provider!r} needs a key: set {variable} in the environment")


class MissingExtraError(PiiBenchError):
    """An optional dependency is missing; the message contains the install command."""

    def __init__(self, what: str, install: str) -> None:
        # The running interpreter: the shell's pip may belong to another environment.
        command = f"{sys.executable} -m {install}" if install.startswith("pip ") else install
        place = " in the folder of the repository" if install.startswith("pip install -e ") else ""
        super().__init__(f"{what} is not installed: run `{command}`{place}")


class PromptError(PiiBenchError):
    """A prompt file whose placeholders differ from those that its strategy fills."""


class ProviderRefusedError(PiiBenchError):
    """The provider refuses every call (key, permission, unknown model); the run stops."""


class ProviderUnavailableError(ProviderRefusedError):
    """No call succeeds at present (no connection, no credit): the same run may go on later.

    Exit code 1.
    """
