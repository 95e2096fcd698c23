"""One row of the leaderboard, and how an evaluation becomes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pii_bench.outcome import Status
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.evaluation import Evaluation
    from pii_bench.scorer import PRF
    from pii_bench.signature import Signature


class Source(StrEnum):
    """Where a row's figures come from."""

    RUN = "run"
    REFERENCE = "reference"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Row:
    """One model, strategy, dataset and task.

    Attributes:
        rank: among the complete rows of ours without gold, per dataset and task, by
            the headline; None for all others and where there is no headline.
        oracle: whether the system is told gold.
        scored: samples that count in the means.
        gold: samples that the task applies to; None for published figures.
        metrics: column name to value, 0 to 1; absent where unknown.
        rates: status to share of `gold`; None for published figures.
        signature: the line that reproduces the row; empty for published figures.
        note: what a reader must know beside the figures.
        names_subjects: whether its detection tells whose the entities are; where it does
            not, `SUBJECT_METRICS` are absent.
        unmasked_text_to: who is sent the texts as they are, as in the systems' cards; empty
            for published figures.
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
    unmasked_text_to: str = ""

    @property
    def headline(self) -> float | None:
        """The figure that ranks it: Strict-F1 for detection, F1 otherwise.

        None where a detection names no subjects: Ent-F1, which is larger than Strict-F1 by
        its nature, would rank it above systems that answer the whole task.
        """
        return self.metrics.get("strict_f1" if self.task is Task.DETECTION else "f1")

    @property
    def complete(self) -> bool:
        """Whether every gold sample is scored."""
        return self.gold is not None and self.scored == self.gold


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
)
"""Metric columns in their order; a row has those of its task."""


SUBJECT_METRICS = frozenset(
    {"strict_f1", "ent_matched_f1", "rouge_l_f", "precision", "recall", "micro_f1"}
)
"""Metrics of detection that depend on whose an entity is."""


def row_of(
    evaluation: Evaluation,
    signature: Signature,
    *,
    source: Source,
    oracle: bool,
    names_subjects: bool = True,
    unmasked_text_to: str = "",
) -> Row:
    """The row of an evaluation."""
    gold = evaluation.gold
    metrics = metrics_of(evaluation)
    if evaluation.task is Task.DETECTION and not names_subjects:
        metrics = {name: value for name, value in metrics.items() if name not in SUBJECT_METRICS}
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
        rates={s: evaluation.statuses.get(s, 0) / gold for s in Status} if gold else None,
        signature=str(signature),
        names_subjects=names_subjects,
        unmasked_text_to=unmasked_text_to,
    )


def metrics_of(evaluation: Evaluation) -> dict[str, float]:
    """Column name to value: means over samples, and `micro_*` from summed counts."""
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
    return {name: value for name in METRICS if (value := named.get(name)) is not None}


def rank(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by dataset, task and headline, and give ranks; equal headlines share one.

    Published figures stand on data that was never released, oracle rows are told gold,
    and incomplete rows lack samples: none of them is ranked. Nor are rows without a
    headline; they come after those with one, by Ent-F1.
    """
    ordered = sorted(
        rows,
        key=lambda row: (
            row.dataset,
            list(Task).index(row.task),
            row.source is Source.PUBLISHED,
            row.oracle,
            not row.complete,
            row.headline is None,
            -(row.metrics.get("ent_f1", 0.0) if row.headline is None else row.headline),
            row.model,
            row.strategy,
            row.source,
        ),
    )
    ranked: list[Row] = []
    for row in ordered:
        unranked = row.source is Source.PUBLISHED or row.oracle or not row.complete
        if unranked or row.headline is None:
            ranked.append(row)
            continue
        better = sum(
            (other.dataset, other.task) == (row.dataset, row.task)
            and other.rank is not None
            and other.headline != row.headline
            for other in ranked
        )
        ranked.append(replace(row, rank=better + 1))
    return ranked


def _f1(score: PRF | None) -> float | None:
    return None if score is None else score.f1
