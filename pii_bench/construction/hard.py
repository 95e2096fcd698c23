"""The hard set: chosen from single and multi by the paper's three criteria."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample

CRITERIA: Final[Mapping[str, Callable[[Sample], tuple[float, ...]]]] = {
    "longest description": lambda s: (len(s.description),),
    "highest density": lambda s: (len(s.entities) / len(s.description),),
    # Many samples need as many entities; among them the one with most to choose from.
    "most query-related": lambda s: (len(s.related), len(s.entities)),
}


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
