"""The written texts that are recorded: `data/texts/<set>/<portion>.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS, PORTION
from pii_bench.construction.derived import TWIN_SETS
from pii_bench.construction.frontier import FRONTIER
from pii_bench.construction.marked import read_marked, to_samples, to_twins, write_marked
from pii_bench.construction.other import OTHER
from pii_bench.construction.pools import TEXTS
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.construction.marked import Marked
    from pii_bench.datasets.sample import Sample

NAMES: Final = (*ORDERS, *TWIN_SETS, "distract", FRONTIER, OTHER)
"""Sets whose texts or queries are written."""

SUPERSEDED: Final = "superseded"


def portion_of(marked_id: str) -> int:
    """The portion, from 1, that a text belongs to: `single-0013` to the second."""
    return (int(marked_id.rpartition("-")[2]) - 1) // PORTION + 1


@dataclass
class Recorded:
    """The written texts that are recorded, by set."""

    folder: Path
    sets: dict[str, dict[str, Marked]]

    @classmethod
    def load(cls, folder: Path = TEXTS) -> Recorded:
        """Read every recorded file.

        Raises:
            MarkedError: one is not of the format.
        """
        sets: dict[str, dict[str, Marked]] = {}
        for name in NAMES:
            files = sorted((folder / name).glob("*.txt"))
            sets[name] = {m.id: m for path in files for m in read_marked(path)}
        return cls(folder, sets)

    def samples(self, name: str) -> list[Sample]:
        """The samples of a set in the order of their ids."""
        own = self.sets[name]
        return [sample for key in sorted(own) for sample in self.samples_of(own[key])]

    def samples_of(self, marked: Marked) -> list[Sample]:
        """The samples of one recorded text, or of the twins of one."""
        if "of" not in marked.header:
            return list(to_samples(marked))
        source = self.find(marked.header["of"])
        return list(to_twins(marked, source))

    def find(self, sample_id: str) -> Marked:
        """The recorded text of an id.

        Raises:
            PiiBenchError: none is recorded.
        """
        found = self.sets.get(sample_id.rpartition("-")[0], {}).get(sample_id)
        if found is None:
            raise PiiBenchError(f"{sample_id}: no such text is recorded")
        return found

    def add(self, name: str, marked: Marked) -> None:
        """Record a text in the file of its portion; it replaces an earlier version.

        An earlier version that somebody may have read goes to `superseded/<set>.txt`.
        """
        earlier = self.sets[name].get(marked.id)
        if earlier is not None and earlier != marked:
            path = self.folder / SUPERSEDED / f"{name}.txt"
            before = path.read_text(encoding="utf-8") + "\n" if path.exists() else ""
            write_whole(path, before + write_marked([earlier]))
        portion = portion_of(marked.id)
        own = self.sets[name]
        own[marked.id] = marked
        first, last = (portion - 1) * PORTION + 1, portion * PORTION
        ids = [f"{name}-{n:04d}" for n in range(first, last + 1)]
        path = self.folder / name / f"{portion:03d}.txt"
        write_whole(path, write_marked(own[key] for key in ids if key in own))
