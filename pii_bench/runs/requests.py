"""The hashes of what is asked about samples, made when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System


class RequestHashes(Mapping[str, str]):
    """Sample id to `System.request_hash`, each made once: a run needs them one by one.

    Args:
        system: what would be asked.
        samples: about what.
    """

    def __init__(self, system: System, samples: Iterable[Sample]) -> None:
        self._system = system
        self._samples = {sample.id: sample for sample in samples}
        self._hashes: dict[str, str] = {}

    def __getitem__(self, sample_id: str) -> str:
        if sample_id not in self._hashes:
            self._hashes[sample_id] = self._system.request_hash(self._samples[sample_id])
        return self._hashes[sample_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)
