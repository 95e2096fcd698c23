"""How alike two datasets see systems: Spearman's rho of the ranking, and PCS.

PCS, the performance consistency score of the paper, is 1 - |a - b| / max(a, b) of one system's
figures a and b on two datasets. Rho is over the systems that have both.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import TYPE_CHECKING, Final

from scipy.stats import spearmanr

from pii_bench.analysis.means import HARDER
from pii_bench.analysis.runs import BASE, preferred
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.check.sets import OUR_SETS
from pii_bench.ranking.paper_tables import published_name
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.analysis.means import Headline

LEAST: Final = 3
"""Systems that a ranking must have: two agree or not by a coin."""

TRIVIAL: Final = frozenset({"all", "none", "random", "gold"})
"""Strategies that do not read the query."""

_PEOPLE: Final = "human"
_ORDER: Final = (*BASE, "+".join(BASE), *HARDER)


@dataclass(frozen=True, slots=True)
class Consistency:
    """One system on two datasets, each with the figure and where that comes from.

    Attributes:
        model, strategy: as in the leaderboard; where one side is published, ours.
    """

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
        """From 0 to 1; None where both figures are 0."""
        larger = max(self.value_a, self.value_b)
        return 1 - abs(self.value_a - self.value_b) / larger if larger else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """All systems that two datasets share.

    Attributes:
        source_a, source_b: where the figures on each dataset come from; `run+reference` where
            from both.
        systems: how many there are; a model under two strategies is two.
        rho: Spearman's, from -1 to 1; None for fewer than `LEAST` systems, and where one
            dataset gives all of them the same figure.
        pcs: the mean over the systems that have one; None where none has.
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
    """Every system on every two datasets that it has, among ours and among the published.

    Then ours against the paper's on the set of the same name, where the model is one of the
    paper's and the strategy the same. Of a run and a reference of one system the run is taken.
    Incomplete runs and systems that are told gold are left out, and people are no system.

    Args:
        headlines: of single sets and of single and multi together.
    """
    kept = [
        each
        for each in sorted(headlines, key=_place)
        if not each.run.oracle and each.run.model != _PEOPLE
    ]
    published = [each for each in kept if each.run.source is Source.PUBLISHED]
    ours = [each for each in kept if each.run.source is not Source.PUBLISHED]
    chosen = preferred(each.run for each in ours)
    ours = [each for each in ours if each.run in chosen]
    return [*_within(ours), *_within(published), *_against(ours, published)]


def agreements(consistencies: Iterable[Consistency]) -> list[Agreement]:
    """One per pair of datasets, task and metric."""
    groups: dict[tuple[object, ...], list[Consistency]] = defaultdict(list)
    for each in consistencies:
        published = [source is Source.PUBLISHED for source in (each.source_a, each.source_b)]
        key = (each.task, each.metric, each.dataset_a, each.dataset_b, *published)
        groups[key].append(each)
    return [_agreement(group) for group in groups.values()]


def transfers(headlines: Iterable[Headline]) -> list[Agreement]:
    """How each of our sets ranks systems next to each dataset of others, by rho.

    Over every system that has both, those among gold entities too; but not those that do not
    read the query (`TRIVIAL`), which all datasets rank alike.

    Args:
        headlines: of single sets.
    """
    kept = [
        each for each in headlines if each.run.source.is_system and each.run.strategy not in TRIVIAL
    ]
    chosen = preferred(each.run for each in kept)
    figures: dict[tuple[Task, str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    for each in kept:
        if each.run in chosen and each.run.task is not Task.DETECTION:
            run = each.run
            figures[run.task, each.metric, run.dataset][run.model, run.strategy] = each.value
    found = []
    for (task, metric, ours), own in sorted(figures.items()):
        for (other_task, other_metric, theirs), other in sorted(figures.items()):
            # Sets taken as one have a plus in their name.
            is_pair = ours in OUR_SETS and not {theirs, *theirs.split("+")} & DATASETS.keys()
            if is_pair and (task, metric) == (other_task, other_metric):
                both = sorted(own.keys() & other.keys())
                rho = rank_correlation([own[key] for key in both], [other[key] for key in both])
                found.append(Agreement(task, metric, "", ours, "", theirs, len(both), rho, None))
    return found


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rho of two lists of figures; None where it is undefined or says nothing."""
    if len(a) < LEAST or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return float(spearmanr(a, b).statistic)


def _place(each: Headline) -> tuple[int, str]:
    # The datasets of a pair are in this order.
    dataset = each.run.dataset
    return _ORDER.index(dataset) if dataset in _ORDER else len(_ORDER), dataset


def _key(each: Headline) -> tuple[object, ...]:
    run = each.run
    return run.model, run.strategy, run.task, run.dataset, each.metric


def _within(headlines: Iterable[Headline]) -> list[Consistency]:
    systems: dict[tuple[object, ...], list[Headline]] = defaultdict(list)
    for each in headlines:
        systems[each.run.task, each.metric, each.run.model, each.run.strategy].append(each)
    return [
        _consistency(a, b)
        for figures in systems.values()
        for a, b in combinations(figures, 2)
        if not _overlap(a.run.dataset, b.run.dataset)
    ]


def _against(ours: Iterable[Headline], published: Iterable[Headline]) -> list[Consistency]:
    theirs = {_key(each): each for each in published}
    found = []
    for own in ours:
        run = own.run
        key = (published_name(run.model), run.strategy, run.task, run.dataset, own.metric)
        if other := theirs.get(key):
            found.append(_consistency(own, other))
    return found


def _overlap(a: str, b: str) -> bool:
    # single+multi is no other dataset than single.
    return not set(a.split("+")).isdisjoint(b.split("+"))


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


def _agreement(group: Sequence[Consistency]) -> Agreement:
    first = group[0]
    scores = [each.pcs for each in group if each.pcs is not None]
    return Agreement(
        task=first.task,
        metric=first.metric,
        source_a="+".join(s for s in Source if s in {each.source_a for each in group}),
        dataset_a=first.dataset_a,
        source_b="+".join(s for s in Source if s in {each.source_b for each in group}),
        dataset_b=first.dataset_b,
        systems=len(group),
        rho=rank_correlation([e.value_a for e in group], [e.value_b for e in group]),
        pcs=fsum(scores) / len(scores) if scores else None,
    )
