"""The errors a user can meet, and how their messages are made.

A message names the object (file and line, sample id, model), what came and
what is allowed. It never holds a key or a text of a sample: messages end up in
logs, and the subject of this project is privacy.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class PiiBenchError(Exception):
    """Root of the tree: wrong arguments, wrong input or a missing part. Exit code 2."""

    def __reduce__(self) -> tuple[type[PiiBenchError], tuple[str]]:
        # Between processes the message travels; the subclasses' arguments do not.
        return PiiBenchError, (str(self),)


class UnknownNameError(PiiBenchError):
    """A name that is in none of the tables; the nearest one is offered."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str]) -> None:
        # str() because a member of an enumeration shows itself otherwise.
        self.kind, self.name, self.allowed = kind, name, tuple(map(str, allowed))
        super().__init__(f"unknown {kind} {name!r}{self._hint()}")

    def _hint(self) -> str:
        near = difflib.get_close_matches(self.name, self.allowed, n=1, cutoff=0.6)
        choice = f"; did you mean {near[0]!r}?" if near else ""
        return f"{choice} (allowed: {', '.join(self.allowed)})"


class InputFileError(PiiBenchError):
    """A file that cannot be read as what it should be.

    Args:
        path: the file.
        what: what is wrong, without quoting the text of a sample.
        line: 1-based line, where the fault has one.
    """

    def __init__(self, path: Path | str, what: str, *, line: int | None = None) -> None:
        self.path, self.line, self.what = str(path), line, what
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {what}")


class BadLinesError(InputFileError):
    """A file of which several lines cannot be read; the message lists them.

    Args:
        path: the file.
        lines: 1-based line and what is wrong with it, at least one; the first of them.
        count: of all bad lines.
    """

    def __init__(self, path: Path | str, lines: Sequence[tuple[int, str]], count: int) -> None:
        listed = "".join(f"\n  line {line}: {what}" for line, what in lines)
        more = f"\n  and {count - len(lines)} more" if count > len(lines) else ""
        super().__init__(path, f"{count} lines cannot be read{listed}{more}")


class CheckFailedError(PiiBenchError):
    """A dataset file was checked and has problems; they were shown before."""

    def __init__(self, problems: int, samples: int) -> None:
        self.problems, self.samples = problems, samples
        super().__init__(f"the check found {problems} problems in {samples} samples")


class MissingKeyError(PiiBenchError):
    """A provider's API key is not in the environment."""

    def __init__(self, provider: str, variable: str) -> None:
        self.provider, self.variable = provider, variable
        super().__init__(f"provider {provider!r} needs a key: set {variable} in the environment")


class MissingExtraError(PiiBenchError):
    """An optional part is not installed; the message holds the line that installs it."""

    def __init__(self, what: str, install: str) -> None:
        # Of the environment that runs this, which need not be the one of the shell.
        command = f"{sys.executable} -m {install}" if install.startswith("pip ") else install
        super().__init__(f"{what} is not installed: run `{command}`")


class PromptError(PiiBenchError):
    """A prompt file whose placeholders are not those that its strategy fills."""


class ProviderRefusedError(PiiBenchError):
    """The provider refuses every call (key, permission, unknown model): the run stops at once."""
