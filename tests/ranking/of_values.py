"""Scores of literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.ranking.scores import Scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def scores(values: Iterable[float], clusters: Iterable[int | str] | None = None) -> Scores:
    """Figures of s0, s1, ...; without clusters, each sample is one of its own."""
    whole = tuple(values)
    ids = tuple(f"s{number}" for number in range(len(whole)))
    return Scores(ids, ids if clusters is None else tuple(map(str, clusters)), whole)


def parted(
    protection: Sequence[float],
    retention: Sequence[float],
    clusters: Iterable[int | str] | None = None,
) -> Scores:
    """H of protection and retention of s0, s1, ..."""
    plain = scores(protection, clusters)
    return Scores.harmonic(plain.ids, plain.clusters, tuple(protection), tuple(retention))
