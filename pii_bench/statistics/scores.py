"""One figure sample by sample, and which samples belong together."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Scores:
    """One figure of one system on at least one sample, or the difference of two.

    Attributes:
        ids: the samples.
        clusters: of each sample, the name of its cluster.
        values: of each sample, the figure.

    Raises:
        ValueError: the three are empty or not of one length.
    """

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = len(self.ids), len(self.clusters), len(self.values)
        if not self.ids or len(set(lengths)) > 1:
            raise ValueError(f"ids, clusters and values must be as many and some: {lengths}")

    @property
    def mean(self) -> float:
        """The mean over the samples, each of the same weight."""
        return fsum(self.values) / len(self.values)

    def on(self, ids: Collection[str]) -> Scores | None:
        """The figure on those of its samples alone; None where there is none."""
        kept = [place for place, sample_id in enumerate(self.ids) if sample_id in ids]
        if not kept:
            return None
        return Scores(
            ids=tuple(self.ids[place] for place in kept),
            clusters=tuple(self.clusters[place] for place in kept),
            values=tuple(self.values[place] for place in kept),
        )

    def minus(self, other: Scores) -> Scores:
        """The difference sample by sample.

        Raises:
            ValueError: they are of different samples.
        """
        require_same_samples([self, other])
        differences = (a - b for a, b in zip(self.values, other.values, strict=True))
        return Scores(self.ids, self.clusters, tuple(differences))


def clusters_of(samples: Sequence[Sample]) -> dict[str, str]:
    """Sample id to its cluster: the id of the first sample with the same description.

    Twins ask several queries about one description. Conversations of `distract` that share
    some of their parts, not all, are clusters of their own.
    """
    first: dict[str, str] = {}
    return {sample.id: first.setdefault(sample.description, sample.id) for sample in samples}


def scores_of(evaluation: Evaluation, metric: str, clusters: Mapping[str, str]) -> Scores | None:
    """F1 of a metric of an evaluation, sample by sample; None where none is scored.

    Args:
        evaluation: what was scored.
        metric: a key of its samples' metrics.
        clusters: sample id to cluster, for all of its samples.
    """
    if not evaluation.scores:
        return None
    ids = tuple(score.id for score in evaluation.scores)
    return Scores(
        ids=ids,
        clusters=tuple(clusters[sample_id] for sample_id in ids),
        values=tuple(score.metrics[metric].f1 for score in evaluation.scores),
    )


def require_same_samples(scores: Sequence[Scores]) -> None:
    """See that all are of the same samples in the same order and clusters.

    Raises:
        ValueError: they are not.
    """
    if len({(each.ids, each.clusters) for each in scores}) > 1:
        raise ValueError("scores must be of the same samples in the same order and clusters")


def cluster_sums(scores: Sequence[Scores]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum the figures of each cluster, in the order in which the clusters first appear.

    Args:
        scores: at least one, all of the same clusters in the same order.

    Returns:
        Sums, one row per cluster and one column per member of `scores`; and the number of
        samples in each cluster.
    """
    numbers: dict[str, int] = {}
    clusters = scores[0].clusters
    places = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])
    values = np.array([each.values for each in scores]).T
    sums = np.zeros((len(numbers), len(scores)))
    np.add.at(sums, places, values)
    return sums, np.bincount(places).astype(np.float64)
