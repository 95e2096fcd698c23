"""Reading the grammar's banks: plain text files of frames under `data/grammar`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bank:
    """The frames of one file.

    Attributes:
        sections: (facet, section) to frames; the facet is "" before the first `@@` line.
    """

    sections: Mapping[tuple[str, str], tuple[str, ...]]

    @property
    def facets(self) -> tuple[str, ...]:
        """Facets in the file's order."""
        return tuple(dict.fromkeys(facet for facet, _ in self.sections))

    def frames(self, section: str, facet: str = "") -> tuple[str, ...]:
        """Frames of a section; empty where the file has none."""
        return self.sections.get((facet, section), ())


def read_bank(path: Path) -> Bank:
    """Read a file: `@@ facet`, `@ section`, then one frame a line; `#` opens a comment.

    Raises:
        InputFileError: absent, a frame before any section, or a frame twice in a section.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    sections: dict[tuple[str, str], list[str]] = {}
    facet, section = "", ""
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("@@"):
            facet, section = line.removeprefix("@@").strip(), ""
        elif line.startswith("@"):
            section = line.removeprefix("@").strip()
            sections.setdefault((facet, section), [])
        elif not section:
            raise InputFileError(path, "a frame before any '@ section'", line=number)
        elif line in sections[facet, section]:
            raise InputFileError(path, f"the frame stands in {section!r} already", line=number)
        else:
            sections[facet, section].append(line)
    return Bank({key: tuple(frames) for key, frames in sections.items()})
