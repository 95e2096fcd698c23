"""Agreement of two datasets about systems: Spearman's rho of the rankings, and PCS.

PCS is the performance consistency score of the paper: 1 - |a - b| / max(a, b) for one system's
figures a and b on two datasets.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, product
from statistics import fmean
from typing import TYPE_CHECKING, Final

from scipy.stats import spearmanr

from pii_bench.analysis.means import HARDER
from pii_bench.analysis.runs import BASE, preferred
from pii_bench.datasets.catalog import DATASETS, OUR_SETS
from pii_bench.ranking.paper_tables import published_name
from pii_bench.ranking.rows import PEOPLE, Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.analysis.means import Headline

LEAST: Final = 3
"""The fewest systems that a rank correlation is given for."""

TRIVIAL: Final = frozenset({"all", "none", "random", "gold"})
"""Strategies that do not read the query."""

_ORDER: Final = (*BASE, "+".join(BASE), *HARDER)


@dataclass(frozen=True, slots=True)
class Consistency:
    """The figures of one system on two datasets; where one is published, our name of the system."""

    task: Task
    metric: str
    model: str
    strategy: str
    source_a: Source
    dataset_a: str
    source_b: Source
    dataset_b: str
    value_a: float
    value_b: float

    @property
    def pcs(self) -> float | None:
        """Performance consistency score, 0 to 1; None if both figures are 0."""
        larger = max(self.value_a, self.value_b)
        return 1 - abs(self.value_a - self.value_b) / larger if larger else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two datasets over the systems that have figures on both.

    Attributes:
        source_a, source_b: sources of the figures, joined by `+` if there are several.
        rho: Spearman's rho, -1 to 1; None for fewer than `LEAST` systems, or if one dataset
            gives all of them the same figure.
        pcs: mean PCS of the systems that have one; None if none has.
    """

    task: Task
    metric: str
    source_a: str
    dataset_a: str
    source_b: str
    dataset_b: str
    systems: int
    rho: float | None
    pcs: float | None


def consistencies(headlines: Iterable[Headline]) -> list[Consistency]:
    """Pair the figures of each system on two datasets.

    Pairs our figures with each other, published figures with each other, and ours with the
    published figures of the same model, strategy and dataset. If a system has both a run and a
    reference, uses the run. Leaves out incomplete runs, oracles and people.
    """
    kept = [
        headline
        for headline in sorted(headlines, key=_dataset_order)
        if not headline.run.oracle and headline.run.model != PEOPLE
    ]
    published = [headline for headline in kept if headline.run.source is Source.PUBLISHED]
    ours = [headline for headline in kept if headline.run.source is not Source.PUBLISHED]
    chosen = preferred(headline.run for headline in ours)
    ours = [headline for headline in ours if headline.run in chosen]
    return [*_within(ours), *_within(published), *_across(ours, published)]


def agreements(consistencies: Iterable[Consistency]) -> list[Agreement]:
    """Return the agreement of each pair of datasets, by task and metric."""
    groups: dict[tuple[object, ...], list[Consistency]] = defaultdict(list)
    for pair in consistencies:
        published = [source is Source.PUBLISHED for source in (pair.source_a, pair.source_b)]
        groups[pair.task, pair.metric, pair.dataset_a, pair.dataset_b, *published].append(pair)
    result = []
    for group in groups.values():
        first = group[0]
        scores = [pair.pcs for pair in group if pair.pcs is not None]
        sources_a, sources_b = {pair.source_a for pair in group}, {pair.source_b for pair in group}
        result.append(
            Agreement(
                task=first.task,
                metric=first.metric,
                source_a="+".join(source for source in Source if source in sources_a),
                dataset_a=first.dataset_a,
                source_b="+".join(source for source in Source if source in sources_b),
                dataset_b=first.dataset_b,
                systems=len(group),
                rho=rank_correlation([pair.value_a for pair in group], [p.value_b for p in group]),
                pcs=fmean(scores) if scores else None,
            )
        )
    return result


def transfers(headlines: Iterable[Headline]) -> list[Agreement]:
    """Return the rank correlation between each of our sets and each dataset of others.

    Includes oracles, but not the strategies in `TRIVIAL`, which all datasets rank the same.
    """
    kept = [
        headline
        for headline in headlines
        if headline.run.source.is_system
        and headline.run.strategy not in TRIVIAL
        and headline.run.task is not Task.DETECTION
    ]
    chosen = preferred(headline.run for headline in kept)
    figures: dict[tuple[Task, str], dict[str, dict[tuple[str, str], float]]] = {}
    for headline in kept:
        run = headline.run
        if run in chosen:
            datasets = figures.setdefault((run.task, headline.metric), defaultdict(dict))
            datasets[run.dataset][run.model, run.strategy] = headline.value
    result = []
    for (task, metric), datasets in sorted(figures.items()):
        # The names of pooled sets are joined by "+".
        foreign = [name for name in datasets if not {name, *name.split("+")} & DATASETS.keys()]
        for ours, theirs in product(sorted(datasets.keys() & OUR_SETS), sorted(foreign)):
            own, other = datasets[ours], datasets[theirs]
            shared = sorted(own.keys() & other.keys())
            rho = rank_correlation([own[s] for s in shared], [other[s] for s in shared])
            result.append(Agreement(task, metric, "", ours, "", theirs, len(shared), rho, None))
    return result


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return Spearman's rho; None for fewer than `LEAST` values or if all are equal."""
    if len(a) < LEAST or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return float(spearmanr(a, b).statistic)


def _dataset_order(headline: Headline) -> tuple[int, str]:
    dataset = headline.run.dataset
    return _ORDER.index(dataset) if dataset in _ORDER else len(_ORDER), dataset


def _within(headlines: Iterable[Headline]) -> list[Consistency]:
    systems: dict[tuple[object, ...], list[Headline]] = defaultdict(list)
    for headline in headlines:
        run = headline.run
        systems[run.task, headline.metric, run.model, run.strategy].append(headline)
    return [
        _consistency(a, b)
        for figures in systems.values()
        for a, b in combinations(figures, 2)
        # single+multi shares its samples with single.
        if set(a.run.dataset.split("+")).isdisjoint(b.run.dataset.split("+"))
    ]


def _across(ours: Iterable[Headline], published: Iterable[Headline]) -> list[Consistency]:
    theirs = {_key(headline, headline.run.model): headline for headline in published}
    return [
        _consistency(own, other)
        for own in ours
        if (other := theirs.get(_key(own, published_name(own.run.model))))
    ]


def _key(headline: Headline, model: str | None) -> tuple[object, ...]:
    run = headline.run
    return model, run.strategy, run.task, run.dataset, headline.metric


def _consistency(a: Headline, b: Headline) -> Consistency:
    return Consistency(
        task=a.run.task,
        metric=a.metric,
        model=a.run.model,
        strategy=a.run.strategy,
        source_a=a.run.source,
        dataset_a=a.run.dataset,
        source_b=b.run.source,
        dataset_b=b.run.dataset,
        value_a=a.value,
        value_b=b.value,
    )
