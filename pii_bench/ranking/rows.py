"""One row of the leaderboard: where it comes from, how an evaluation becomes one, what names it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from math import fsum
from typing import TYPE_CHECKING, Final, Protocol

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.catalog import MODELS
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.scores import MASKED_TEXT, intervals, scores_of
from pii_bench.ranking.significance import ranked
from pii_bench.scorer import masking_headline
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.ranking.scores import Interval, Scores
    from pii_bench.runs.evaluation import Evaluation
    from pii_bench.runs.records import Signature
    from pii_bench.scorer import PRF


class Source(StrEnum):
    """Where a row's figures come from."""

    RUN = "run"
    REFERENCE = "reference"
    SUBMITTED = "submitted"
    READING = "reading"
    HUMAN = "human"
    PUBLISHED = "published"

    @property
    def is_system(self) -> bool:
        """Whether a system of ours or of somebody else answered, so that the row is ranked."""
        return self not in {Source.READING, Source.HUMAN, Source.PUBLISHED}


class Marked(Protocol):
    """A row of any table that says where its figures come from."""

    @property
    def source(self) -> Source:
        """Where they come from."""
        ...

    @property
    def oracle(self) -> bool:
        """Whether the system is told gold."""
        ...

    @property
    def complete(self) -> bool:
        """Whether every gold sample is scored."""
        ...


def source_marks(row: Marked) -> list[str]:
    """Its source, and what sets it apart: `oracle`, `incomplete`."""
    marks = [str(row.source)]
    if row.oracle:
        marks.append("oracle")
    if row.source.is_system and not row.complete:
        marks.append("incomplete")
    return marks


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

        Published figures come from data that was never released, readings made the gold, people
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


def system_name(model: str, strategy: str) -> str:
    """The name of one model and strategy: `MODEL:STRATEGY` for prompts, else `MODEL+STRATEGY`.

    What is submitted has no strategy: its name is all.
    """
    if not strategy:
        return model
    sign = ":" if strategy.partition("+")[0] in STRATEGIES else "+"
    return f"{model}{sign}{strategy}"


def find_rows(rows: Sequence[Row], name: str) -> dict[tuple[str, Task], Row]:
    """The rows of the system that a name stands for, by dataset and task.

    A name is `MODEL+STRATEGY` or `MODEL:STRATEGY`, both as in the leaderboard (of a system
    without a chat model, the relevance counts as its strategy), or `MODEL` where it has one
    strategy only; an alias will do for a model. With `run:`, `reference:` or `submitted:` before
    it, only rows of that source are meant; else runs go before references. The model's detection in
    the same form of answer belongs to the system, for no strategy has one of its own.

    Args:
        rows: of ours, those that may be meant.
        name: as the user wrote it.

    Raises:
        UnknownNameError: no row has that name; near ones are offered.
        PiiBenchError: there are no rows, or the model has several strategies.
    """
    prefix, colon, rest = name.partition(":")
    sources = [source for source in Source if colon and source == prefix]
    wanted = rest if sources else name
    among = [row for row in rows if not sources or row.source in sources]
    if not among:
        raise PiiBenchError(f"there are no stored runs among which {name!r} could be")
    model, strategy = _system(among, wanted)
    found: dict[tuple[str, Task], Row] = {}
    # A stable sort: the first of its dataset and task is the user's own run.
    for row in sorted(among, key=lambda row: row.source is not Source.RUN):
        if row.model == model and _belongs(row, strategy):
            found.setdefault((row.dataset, row.task), row)
    return found


def _system(rows: Iterable[Row], name: str) -> tuple[str, str]:
    """The model and the strategy of a name."""
    strategies: dict[str, list[str]] = {}
    for row in rows:
        names = strategies.setdefault(row.model, [])
        if row.strategy not in names:
            names.append(row.strategy)
    for model, names in strategies.items():
        spelled = {model, *(alias for alias, card in MODELS.items() if card.full_name == model)}
        for each in names:
            if name in {f"{other}{sign}{each}" for other in spelled for sign in "+:"}:
                return model, each
        if name in spelled:
            return model, _only(model, rows)
    systems = [system_name(model, each) for model, names in strategies.items() for each in names]
    raise UnknownNameError("system among the stored runs", name, [*strategies, *systems])


def _only(model: str, rows: Iterable[Row]) -> str:
    own = [row for row in rows if row.model == model]
    # Detection belongs to every strategy; where there is none, it is what is meant.
    asked = [row.strategy for row in own if row.task is not Task.DETECTION]
    names = list(dict.fromkeys(asked or [row.strategy for row in own]))
    if len(names) > 1:
        choice = ", ".join(system_name(model, each) for each in names)
        raise PiiBenchError(f"{model!r} has several strategies: name one ({choice})")
    return names[0]


def _belongs(row: Row, strategy: str) -> bool:
    if row.task is not Task.DETECTION or row.strategy == strategy:
        return row.strategy == strategy
    if row.strategy.partition("+")[0] in STRATEGIES:
        # Detection by a strategy of its own belongs to that alone.
        return False
    # `detection+schema` next to `naive+schema`, `detection` next to `naive`.
    return row.strategy.partition("+")[2] == strategy.partition("+")[2]
