"""The recorded texts in `data/texts/<set>/<portion>.txt`, and building the datasets from them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import ORDERS, PORTION
from pii_bench.construction.declared import FRONTIER, FRONTIER_SIZE, OTHER, OTHER_SIZE
from pii_bench.construction.derived import CONVERSATIONS, ROUNDS, TWINNED_TEXTS, TWINS
from pii_bench.construction.marked import read_marked, to_samples, to_twins, write_marked
from pii_bench.construction.pools import TEXTS
from pii_bench.datasets.catalog import OUR_SETS
from pii_bench.datasets.check.sets import CANARY
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.construction.marked import Marked
    from pii_bench.datasets.sample import Sample

SIZES: Final[Mapping[str, int]] = {
    **{name: order.size for name, order in ORDERS.items()},
    TWINS: TWINNED_TEXTS,
    **{name: sum(own.texts for own in rounds) for name, rounds in ROUNDS.items()},
    "distract": CONVERSATIONS,
    FRONTIER: FRONTIER_SIZE,
    OTHER: OTHER_SIZE,
}
"""The number of texts of each set, or of texts with twins."""

HARD_PER_SOURCE: Final = 100

CRITERIA: Final[Mapping[str, Callable[[Sample], tuple[float, ...]]]] = {
    "longest description": lambda s: (len(s.description),),
    "highest density": lambda s: (len(s.entities) / len(s.description),),
    # Many samples need equally many entities; those with more entities to choose from are harder.
    "most query-related": lambda s: (len(s.related), len(s.entities)),
}
"""The paper's criteria for choosing the hard set from single and multi."""


def portion_of(marked_id: str) -> int:
    """Return the portion, from 1, of a text: 2 for `single-0013`."""
    return (int(marked_id.rpartition("-")[2]) - 1) // PORTION + 1


@dataclass
class Recorded:
    """The recorded texts of a folder: set to sample id to text."""

    folder: Path
    sets: dict[str, dict[str, Marked]]

    @classmethod
    def load(cls, folder: Path = TEXTS) -> Recorded:
        """Read all recorded files."""
        sets: dict[str, dict[str, Marked]] = {}
        for name in SIZES:
            files = sorted((folder / name).glob("*.txt"))
            sets[name] = {marked.id: marked for path in files for marked in read_marked(path)}
        return cls(folder, sets)

    def samples(self, name: str) -> list[Sample]:
        """Return the samples of a set, sorted by the ids of their texts."""
        texts = sorted(self.sets[name].items())
        return [sample for _, marked in texts for sample in self.samples_of(marked)]

    def samples_of(self, marked: Marked) -> list[Sample]:
        """Return the samples of a text or of twins."""
        if "of" not in marked.header:
            return list(to_samples(marked))
        return list(to_twins(marked, self.find(marked.header["of"])))

    def versions(self, name: str) -> Iterator[Sample]:
        """Yield the samples of all versions of the texts of a set, the superseded ones first."""
        texts = self._versions_of_texts(name)
        origins = {marked.header["of"] for marked in texts if "of" in marked.header}
        sources: defaultdict[str, list[Marked]] = defaultdict(list)
        for source_set in {origin.rpartition("-")[0] for origin in origins}:
            for source in self._versions_of_texts(source_set):
                sources[source.id].append(source)
        for marked in texts:
            if "of" not in marked.header:
                yield from to_samples(marked)
                continue
            for source in sources[marked.header["of"]]:
                yield from to_twins(marked, source)

    def _versions_of_texts(self, name: str) -> list[Marked]:
        path = self._superseded(name)
        superseded = read_marked(path) if path.exists() else ()
        return [*superseded, *self.sets[name].values()]

    def _superseded(self, name: str) -> Path:
        return self.folder / "superseded" / f"{name}.txt"

    def find(self, sample_id: str) -> Marked:
        """Return the recorded text with an id.

        Raises:
            PiiBenchError: there is none.
        """
        marked = self.sets.get(sample_id.rpartition("-")[0], {}).get(sample_id)
        if marked is None:
            raise PiiBenchError(f"{sample_id}: no such text is recorded")
        return marked

    def is_joined(self, sample_id: str) -> bool:
        """Return whether a text is part of a conversation of `distract`."""
        conversations = self.sets["distract"].values()
        return any(sample_id in marked.header["joined"].split() for marked in conversations)

    def add(self, name: str, marked: Marked) -> None:
        """Record a text in the file of its portion.

        An earlier version, which readers may have read, moves to `superseded/<set>.txt`.
        """
        texts = self.sets[name]
        earlier = texts.get(marked.id)
        if earlier is not None and earlier != marked:
            path = self._superseded(name)
            before = path.read_text(encoding="utf-8") + "\n" if path.exists() else ""
            write_whole(path, before + write_marked([earlier]))
        texts[marked.id] = marked
        portion = portion_of(marked.id)
        same_file = (texts[key] for key in sorted(texts) if portion_of(key) == portion)
        write_whole(self.folder / name / f"{portion:03d}.txt", write_marked(same_file))


def build_sets(recorded: Recorded) -> dict[str, tuple[Sample, ...]]:
    """Build all datasets from the recorded texts, and hard from single and multi, by name.

    The first sample of each test set contains the canary.

    Raises:
        PiiBenchError: a set does not have the right number of texts.
    """
    for name, size in SIZES.items():
        count = len(recorded.sets[name])
        if count != size:
            raise PiiBenchError(
                f"{name}: {count} texts are recorded in {recorded.folder / name}, not {size}"
            )
    sets = {name: tuple(recorded.samples(name)) for name in SIZES}
    sets["hard"] = hard_set([sets["single"], sets["multi"]], HARD_PER_SOURCE)
    for name in OUR_SETS:
        first, *others = sets[name]
        sets[name] = (replace(first, meta={**first.meta, "canary": CANARY}), *others)
    return sets


def hard_set(sources: Sequence[Sequence[Sample]], per_source: int) -> tuple[Sample, ...]:
    """Choose `per_source` samples from each source by each criterion in turn.

    The `meta` of the new samples gives the original id and the criterion.
    """
    chosen: list[Sample] = []
    names = list(CRITERIA)
    for source in sources:
        taken: set[str] = set()
        rankings = {name: sorted(source, key=CRITERIA[name], reverse=True) for name in names}
        for number in range(per_source):
            name = names[number % len(names)]
            sample = next(each for each in rankings[name] if each.id not in taken)
            taken.add(sample.id)
            meta = {**sample.meta, "hard_of": sample.id, "criterion": name}
            chosen.append(replace(sample, id=f"hard-{len(chosen) + 1:04d}", meta=meta))
    return tuple(chosen)
