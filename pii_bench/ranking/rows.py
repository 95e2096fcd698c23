"""One row of the leaderboard, and how an evaluation becomes one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from math import fsum
from typing import TYPE_CHECKING, Final

from pii_bench.ranking.scores import MASKED_TEXT, intervals, scores_of
from pii_bench.ranking.significance import ranked
from pii_bench.ranking.source import Source
from pii_bench.scorer import masking_headline
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.ranking.scores import Interval, Scores
    from pii_bench.runs.evaluation import Evaluation
    from pii_bench.runs.signature import Signature
    from pii_bench.scorer import PRF


@dataclass(frozen=True, slots=True)
class Row:
    """One model, strategy, dataset and task.

    Attributes:
        rank: among the rows that compete, per dataset and task: one more than the number of
            those whose headline is shown to be higher; None for all others.
        oracle: whether the system is told gold.
        scored: samples that count in the means.
        gold: samples that the task applies to; None for published figures.
        metrics: column name to value, 0 to 1; absent where unknown.
        rates: status to share of the samples that were asked; None for published figures.
        signature: the line that reproduces the row; empty for published figures.
        note: what a reader must know about the figures.
        names_subjects: whether its detection tells whose the entities are; where it does
            not, `SUBJECT_METRICS` are absent.
        names_types: whether its detection tells what kind an entity is; where it does not,
            `TYPE_METRICS` are absent.
        unmasked_text_to: who is sent the texts as they are, as in the systems' cards; empty
            for published figures.
        by_sample: column name to the figure sample by sample, for the columns that tests are
            made of; empty for published figures and where nothing is scored.
        interval: 95 % interval of the headline; None where it is not known.
        detectable: the smallest difference of headlines to the best of the other rows that
            compete which the samples can be expected to show; None where there is no such row
            or the samples can show none.
    """

    source: Source
    model: str
    strategy: str
    dataset: str
    task: Task
    oracle: bool
    metrics: Mapping[str, float]
    rank: int | None = None
    scored: int | None = None
    gold: int | None = None
    rates: Mapping[Status, float] | None = None
    signature: str = ""
    note: str = ""
    names_subjects: bool = True
    names_types: bool = True
    unmasked_text_to: str = ""
    by_sample: Mapping[str, Scores] = field(default_factory=dict, repr=False)
    interval: Interval | None = None
    detectable: float | None = None

    @property
    def headline_name(self) -> str:
        """The column of the headline."""
        return _HEADLINES[self.task]

    @property
    def headline(self) -> float | None:
        """The figure that ranks it.

        Strict-F1 for detection, F1 for query-related, H for masking and rewriting.
        None where a detection names no subjects: Ent-F1, which is larger than Strict-F1 by
        its nature, would rank it above systems that answer the whole task. And None for the
        paper's figures of masking: its F1 is won by masking everything.
        """
        return self.metrics.get(self.headline_name)

    @property
    def complete(self) -> bool:
        """Whether every gold sample is scored."""
        return self.gold is not None and self.scored == self.gold

    @property
    def competes(self) -> bool:
        """Whether it is ranked.

        Published figures stand on data that was never released, readings made the gold, people
        are no system, oracle rows are told it, and incomplete rows lack samples: none of them is.
        Nor are rows without a headline.
        """
        whole = self.complete and self.headline is not None
        return self.source.is_system and not self.oracle and whole


METRICS = (
    "strict_f1",
    "ent_f1",
    "f1",
    "rouge_l_f",
    "precision",
    "recall",
    "ent_matched_f1",
    "micro_f1",
    "micro_ent_f1",
    "hallucination_rate",
    "protection",
    "retention",
    "collateral",
    "h",
    "weighted_protection",
    "leak_readable",
    "leak_restated",
    "leak_part",
)
"""Metric columns in their order; a row has those of its task."""

_HEADLINES: Final = {
    Task.DETECTION: "strict_f1",
    Task.QUERY_RELATED: "f1",
    Task.MASKING: "h",
    Task.REWRITE: "h",
}
_LEAKS: Final = ("leak_readable", "leak_restated", "leak_part")
"""Shares of all texts not needed, by how a rewriting tells them; as counts, names of theirs."""


SUBJECT_METRICS = frozenset(
    {"strict_f1", "ent_matched_f1", "rouge_l_f", "precision", "recall", "micro_f1"}
)
"""Metrics of detection that depend on whose an entity is."""

TYPE_METRICS = SUBJECT_METRICS - {"ent_matched_f1"}
"""Metrics of detection that depend on the types of entities."""


def row_of(
    evaluation: Evaluation,
    signature: Signature,
    clusters: Mapping[str, str],
    *,
    source: Source,
    oracle: bool,
    names_subjects: bool = True,
    names_types: bool = True,
    unmasked_text_to: str = "",
) -> Row:
    """The row of an evaluation.

    Args:
        evaluation: what was scored.
        signature: what reproduces it.
        clusters: sample id to cluster (`statistics.scores.clusters_of`).
        source: whose run it is.
        oracle: see `Row`, as the next three.
        names_subjects: whether its detection tells whose the entities are.
        names_types: whether its detection tells what kind an entity is.
        unmasked_text_to: who is sent the texts as they are.
    """
    gold, asked = evaluation.gold, sum(evaluation.statuses.values())
    metrics = metrics_of(evaluation)
    columns = _tested(evaluation.task)
    by_sample = {name: scores_of(evaluation, key, clusters) for name, key in columns.items()}
    if evaluation.task is Task.DETECTION:
        undefined = undefined_metrics(names_subjects=names_subjects, names_types=names_types)
        metrics = {name: value for name, value in metrics.items() if name not in undefined}
    return Row(
        source=source,
        model=signature.model,
        strategy=signature.strategy,
        dataset=signature.dataset,
        task=evaluation.task,
        oracle=oracle,
        metrics=metrics,
        scored=len(evaluation.scores),
        gold=gold,
        rates={s: evaluation.statuses.get(s, 0) / asked for s in Status} if asked else None,
        signature=str(signature),
        names_subjects=names_subjects,
        names_types=names_types,
        unmasked_text_to=unmasked_text_to,
        by_sample={name: each for name, each in by_sample.items() if each and name in metrics},
    )


def undefined_metrics(*, names_subjects: bool, names_types: bool) -> frozenset[str]:
    """The metrics of detection that mean nothing for such a system."""
    by_subject = frozenset[str]() if names_subjects else SUBJECT_METRICS
    return by_subject if names_types else by_subject | TYPE_METRICS


def metrics_of(evaluation: Evaluation) -> dict[str, float]:
    """Column name to value: means over samples, `micro_*` from summed counts, H of two means."""
    main = "strict" if evaluation.task is Task.DETECTION else "exact"
    mean = evaluation.macro(main)
    named: dict[str, float | None] = {
        "precision": mean.precision if mean else None,
        "recall": mean.recall if mean else None,
        "rouge_l_f": _f1(evaluation.macro("rouge_l")),
        "micro_f1": _f1(evaluation.micro(main)),
        "hallucination_rate": (
            evaluation.hallucinated / evaluation.predicted if evaluation.predicted else None
        ),
    }
    if evaluation.task is Task.DETECTION:
        named |= {
            "strict_f1": _f1(mean),
            "ent_f1": _f1(evaluation.macro("entity")),
            "ent_matched_f1": _f1(evaluation.macro("entity_matched")),
            "micro_ent_f1": _f1(evaluation.micro("entity")),
        }
    else:
        named["f1"] = _f1(mean)
    if evaluation.task is Task.REWRITE:
        named |= {name: _share(evaluation, name) for name in _LEAKS}
    if evaluation.task in {Task.MASKING, Task.REWRITE}:
        texts = evaluation.masked_texts
        named |= {
            "protection": _mean(text.protection for text in texts),
            "retention": _mean(text.retention for text in texts),
            "collateral": _mean(text.collateral for text in texts),
            "h": masking_headline(texts),
            "weighted_protection": _mean(each.weighted_protection for each in evaluation.scores),
        }
    return {name: value for name in METRICS if (value := named.get(name)) is not None}


def with_intervals(rows: Iterable[Row]) -> list[Row]:
    """The rows with the intervals of their headlines, where they have figures by sample."""
    whole = list(rows)
    scores = [row.by_sample.get(row.headline_name) for row in whole]
    found = iter(intervals([each for each in scores if each is not None]))
    return [
        row if each is None else replace(row, interval=next(found))
        for row, each in zip(whole, scores, strict=True)
    ]


def rank(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by dataset, task and headline, and give intervals, ranks and `detectable`.

    Ranks are those of `significance.ranked`: only rows that are shown to be better go before a
    row. Rows without a headline come after those with one, by Ent-F1 or, of masking, by F1.

    Raises:
        ValueError: rows compete that are of different samples.
    """
    ordered = sorted(
        with_intervals(rows),
        key=lambda row: (
            row.dataset,
            list(Task).index(row.task),
            row.source is Source.PUBLISHED,
            row.source in {Source.READING, Source.HUMAN},
            row.oracle,
            not row.complete,
            row.headline is None,
            -_order(row),
            row.model,
            row.strategy,
            row.source,
        ),
    )
    result: list[Row] = []
    for _, group in groupby(ordered, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        competing = [row for row in members if row.competes]
        standings = ranked([row.by_sample[row.headline_name] for row in competing])
        result += [
            replace(row, rank=standing.rank, detectable=standing.detectable)
            for row, standing in zip(competing, standings, strict=True)
        ]
        result += [row for row in members if not row.competes]
    return result


def _tested(task: Task) -> Mapping[str, str]:
    """Column name to metric of an evaluation, of the figures that are kept by sample."""
    if task is Task.DETECTION:
        return {"strict_f1": "strict", "ent_f1": "entity"}
    if task in {Task.MASKING, Task.REWRITE}:
        return {"h": MASKED_TEXT, "f1": "exact"}
    return {"f1": "exact"}


def _order(row: Row) -> float:
    if row.headline is not None:
        return row.headline
    return row.metrics.get("ent_f1" if row.task is Task.DETECTION else "f1", 0.0)


def _share(evaluation: Evaluation, name: str) -> float | None:
    """Matched of gold, summed over the samples; None of nothing."""
    counts = [score.counts[name] for score in evaluation.scores]
    whole = sum(each.gold for each in counts)
    return sum(each.matched for each in counts) / whole if whole else None


def _mean(values: Iterable[float | None]) -> float | None:
    """Of those that are not None."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _f1(score: PRF | None) -> float | None:
    return None if score is None else score.f1
