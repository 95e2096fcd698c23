"""The written texts that are recorded, `data/texts/<set>/<portion>.txt`, and the sets they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS, PORTION
from pii_bench.construction.declared import FRONTIER, FRONTIER_SIZE, OTHER, OTHER_SIZE
from pii_bench.construction.derived import CONVERSATIONS, TRAIN_TWINS, TWINS, TWINS_PER_SOURCE
from pii_bench.construction.marked import read_marked, to_samples, to_twins, write_marked
from pii_bench.construction.pools import TEXTS
from pii_bench.datasets.catalog import OUR_SETS
from pii_bench.datasets.check.sets import CANARY
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.construction.marked import Marked
    from pii_bench.datasets.sample import Sample

SIZES: Final[Mapping[str, int]] = {
    **{name: order.size for name, order in ORDERS.items()},
    TWINS: 2 * TWINS_PER_SOURCE,
    TRAIN_TWINS: 942,
    "distract": CONVERSATIONS,
    FRONTIER: FRONTIER_SIZE,
    OTHER: OTHER_SIZE,
}
"""How many texts, or texts with twins, are recorded for each written set."""

HARD_PER_SOURCE: Final = 100

SUPERSEDED: Final = "superseded"


CRITERIA: Final[Mapping[str, Callable[[Sample], tuple[float, ...]]]] = {
    "longest description": lambda s: (len(s.description),),
    "highest density": lambda s: (len(s.entities) / len(s.description),),
    # Many samples need as many entities; among them the one with most to choose from.
    "most query-related": lambda s: (len(s.related), len(s.entities)),
}
"""How the hard set is chosen from single and multi (paper)."""


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
        for name in SIZES:
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
        portion, own = portion_of(marked.id), self.sets[name]
        own[marked.id] = marked
        path = self.folder / name / f"{portion:03d}.txt"
        write_whole(
            path, write_marked(own[key] for key in sorted(own) if portion_of(key) == portion)
        )


def build_sets(recorded: Recorded) -> dict[str, tuple[Sample, ...]]:
    """Make every set from the recorded texts; hard is chosen from single and multi.

    Returns:
        Name to samples. The first sample of each test set has the canary.

    Raises:
        PiiBenchError: texts of a set are missing.
    """
    for name in SIZES:
        if len(recorded.sets[name]) != SIZES[name]:
            there = len(recorded.sets[name])
            raise PiiBenchError(
                f"{name}: {there} texts are recorded in {recorded.folder / name}, not {SIZES[name]}"
            )
    sets = {name: tuple(recorded.samples(name)) for name in SIZES}
    sets["hard"] = hard_set([sets["single"], sets["multi"]], HARD_PER_SOURCE)
    for name in OUR_SETS:
        first, *others = sets[name]
        sets[name] = (replace(first, meta={**first.meta, "canary": CANARY}), *others)
    return sets


def hard_set(sources: Sequence[Sequence[Sample]], per_source: int) -> tuple[Sample, ...]:
    """Choose `per_source` samples from each source, each criterion choosing in turn.

    The samples are the sources' own; `meta` says which and by what criterion.
    """
    chosen: list[Sample] = []
    for source in sources:
        taken: set[str] = set()
        rankings = {
            name: iter(sorted(source, key=rank, reverse=True)) for name, rank in CRITERIA.items()
        }
        names = list(CRITERIA)
        while len(taken) < per_source:
            name = names[len(taken) % len(names)]
            sample = next(s for s in rankings[name] if s.id not in taken)
            taken.add(sample.id)
            meta = {**sample.meta, "hard_of": sample.id, "criterion": name}
            chosen.append(replace(sample, id=f"hard-{len(chosen) + 1:04d}", meta=meta))
    return tuple(chosen)
