"""Rows of the leaderboard: how they are made, ranked and found by name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from math import fsum
from typing import TYPE_CHECKING, Final

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.catalog import MODELS
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.scores import MASKED_TEXT, intervals, scores_of
from pii_bench.ranking.significance import ranked
from pii_bench.scorer import masking_headline
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pii_bench.ranking.scores import Interval, Scores
    from pii_bench.runs.evaluation import Evaluation
    from pii_bench.runs.records import Signature
    from pii_bench.scorer import PRF


class Source(StrEnum):
    """The origin of a row's figures."""

    RUN = "run"
    REFERENCE = "reference"
    SUBMITTED = "submitted"
    READING = "reading"
    HUMAN = "human"
    PUBLISHED = "published"

    @property
    def is_system(self) -> bool:
        """True if a system answered the samples of this suite, so that the row can be ranked."""
        return self not in {Source.READING, Source.HUMAN, Source.PUBLISHED}


PEOPLE: Final = "human"
"""The model of the paper's figures of people; they are published rows."""


def source_marks(source: Source, *, oracle: bool, complete: bool) -> list[str]:
    """Return the source of a row, then `oracle` and `incomplete` if they apply."""
    marks = [str(source)]
    if oracle:
        marks.append("oracle")
    if source.is_system and not complete:
        marks.append("incomplete")
    return marks


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one model and strategy on one dataset and task.

    Attributes:
        rank: one more than the number of competing rows of the same dataset and task whose
            headline is significantly higher; None for rows that do not compete. A run and the
            reference that it repeats count once and share a rank.
        oracle: True if the system uses the annotation.
        scored: number of samples in the means.
        gold: number of samples that the task applies to; None for published figures and for
            people's answers to a file.
        metrics: column name to value from 0 to 1; unknown values are absent.
        rates: status to its share of the samples asked; None for published figures.
        signature: the line that reproduces the row; empty for published figures.
        undefined: metrics of detection that are absent because the system or the dataset names
            no subjects, or the system no types.
        unmasked_text_to: recipients of unmasked text; empty for published figures.
        by_sample: column name to the figure of each sample, for columns that are tested; empty
            for published figures and if nothing is scored.
        interval: 95 % interval of the headline, if known.
        detectable: the smallest difference from the best other competing row that the samples
            can be expected to show (`significance.smallest_detectable`), if any.
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
    undefined: frozenset[str] = frozenset()
    unmasked_text_to: str = ""
    by_sample: Mapping[str, Scores] = field(default_factory=dict, repr=False)
    interval: Interval | None = None
    detectable: float | None = None

    @property
    def headline_name(self) -> str:
        """The column that ranks the row."""
        return HEADLINE_NAMES[self.task]

    @property
    def headline(self) -> float | None:
        """Strict-F1 for detection, F1 for query-related, H for masking and rewriting.

        None for a detection without subjects: Ent-F1 ignores subjects and types, so it is higher
        than Strict-F1 and would rank the row above systems that answer the whole task. None for
        the paper's figures of masking too: by their F1, masking everything would win.
        """
        return self.metrics.get(self.headline_name)

    @property
    def substitute(self) -> float | None:
        """The figure to show and sort by if there is no headline: Ent-F1 or F1."""
        return self.metrics.get("ent_f1" if self.task is Task.DETECTION else "f1")

    @property
    def sort_figure(self) -> float:
        """The headline, or else its substitute."""
        return (self.substitute or 0.0) if self.headline is None else self.headline

    @property
    def complete(self) -> bool:
        """True if every gold sample is scored."""
        return self.gold is not None and self.scored == self.gold

    @property
    def answers_key(self) -> Hashable:
        """Equal for a run and a reference of the same system with the same figures."""
        figures = frozenset(self.metrics.items())
        return self.model, self.strategy, self.dataset, self.task, self.scored, figures

    @property
    def failed(self) -> float:
        """Share of the scored samples without a usable answer, from 0 to 1; 0 if unknown."""
        scored = {status: rate for status, rate in (self.rates or {}).items() if status.scored}
        total = sum(scored.values())
        failed = sum(rate for status, rate in scored.items() if not status.answered)
        return failed / total if total else 0.0

    @property
    def competes(self) -> bool:
        """True if the row is ranked: a complete run of a system, no oracle, with a headline."""
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
"""Metric columns in the order of the table; a row has those of its task."""

HEADLINE_NAMES: Final = {
    Task.DETECTION: "strict_f1",
    Task.QUERY_RELATED: "f1",
    Task.MASKING: "h",
    Task.REWRITE: "h",
}
"""The column that ranks the rows of a task."""

TESTED: Final[Mapping[Task, Mapping[str, str]]] = {
    Task.DETECTION: {"strict_f1": "strict", "ent_f1": "entity"},
    Task.QUERY_RELATED: {"f1": "exact"},
    Task.MASKING: {"h": MASKED_TEXT, "f1": "exact"},
    Task.REWRITE: {"h": MASKED_TEXT, "f1": "exact"},
}
"""The columns whose figures are kept by sample, with their metrics."""

SUBJECT_METRICS = frozenset(
    {"strict_f1", "ent_matched_f1", "rouge_l_f", "precision", "recall", "micro_f1"}
)
"""Metrics of detection that depend on the subjects of entities."""

TYPE_METRICS = SUBJECT_METRICS - {"ent_matched_f1"}
"""Metrics of detection that depend on the types of entities; they depend on subjects too."""


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
    """Return the row of an evaluation.

    The clusters are those of `scores.clusters_of`. A detection that names no subjects lacks
    `SUBJECT_METRICS`, one that names no types `TYPE_METRICS`.
    """
    gold, asked = evaluation.gold, sum(evaluation.statuses.values())
    undefined = frozenset[str]()
    if evaluation.task is Task.DETECTION and not (names_subjects and names_types):
        undefined = TYPE_METRICS if names_subjects else SUBJECT_METRICS
    metrics = metrics_of(evaluation)
    metrics = {name: value for name, value in metrics.items() if name not in undefined}
    by_sample = {}
    for name, metric in TESTED[evaluation.task].items():
        scores = scores_of(evaluation, metric, clusters)
        if scores is not None and name in metrics:
            by_sample[name] = scores
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
        undefined=undefined,
        unmasked_text_to=unmasked_text_to,
        by_sample=by_sample,
    )


def metrics_of(evaluation: Evaluation) -> dict[str, float]:
    """Return the columns of an evaluation.

    They are means over samples, except that `micro_*` are of summed counts and H is of two means.
    """
    main = "strict" if evaluation.task is Task.DETECTION else "exact"
    mean = evaluation.macro(main)
    predicted = sum(score.predicted for score in evaluation.scores)
    hallucinated = sum(score.hallucinated for score in evaluation.scores)
    named: dict[str, float | None] = {
        "precision": mean.precision if mean else None,
        "recall": mean.recall if mean else None,
        "rouge_l_f": _f1(evaluation.macro("rouge_l")),
        "micro_f1": _f1(evaluation.micro(main)),
        "hallucination_rate": hallucinated / predicted if predicted else None,
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
        # Shares of the texts not needed that a rewriting gives away; the counts have these names.
        for name in ("leak_readable", "leak_restated", "leak_part"):
            named[name] = _share(evaluation, name)
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
    """Return the rows with the intervals of their headlines, if they have figures by sample."""
    rows = list(rows)
    scores = {
        place: row.by_sample[row.headline_name]
        for place, row in enumerate(rows)
        if row.headline_name in row.by_sample
    }
    for place, interval in zip(scores, intervals(list(scores.values())), strict=True):
        rows[place] = replace(rows[place], interval=interval)
    return rows


def rank(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by dataset, task and headline, and set `interval`, `rank` and `detectable`.

    For the ranks see `significance.ranked`. Rows without a headline follow those with one, sorted
    by Ent-F1 for detection and by F1 for other tasks.

    Raises:
        ValueError: competing rows have different samples.
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
            -row.sort_figure,
            row.model,
            row.strategy,
            row.source,
        ),
    )
    result: list[Row] = []
    for _, group in groupby(ordered, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        competing = [row for row in members if row.competes]
        distinct = {row.answers_key: row.by_sample[row.headline_name] for row in competing}
        standings = dict(zip(distinct, ranked(list(distinct.values())), strict=True))
        for row in competing:
            standing = standings[row.answers_key]
            result.append(replace(row, rank=standing.rank, detectable=standing.detectable))
        result += [row for row in members if not row.competes]
    return result


def _share(evaluation: Evaluation, name: str) -> float | None:
    """Return matched / gold of a count, summed over the samples; None if gold is 0."""
    counts = [score.counts[name] for score in evaluation.scores]
    gold = sum(count.gold for count in counts)
    return sum(count.matched for count in counts) / gold if gold else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _f1(score: PRF | None) -> float | None:
    return None if score is None else score.f1


def system_name(model: str, strategy: str) -> str:
    """Return the name of a system: `MODEL:STRATEGY` for prompts, else `MODEL+STRATEGY`.

    A submission has no strategy; its name is the model.
    """
    if not strategy:
        return model
    sign = ":" if strategy.partition("+")[0] in STRATEGIES else "+"
    return f"{model}{sign}{strategy}"


def find_rows(rows: Sequence[Row], name: str) -> dict[tuple[str, Task], Row]:
    """Return the rows of a system by dataset and task.

    A name is `MODEL+STRATEGY` or `MODEL:STRATEGY` as in the leaderboard, or `MODEL` if the model
    has only one strategy. A model may be given by its alias. The strategy of a system without a
    chat model is its relevance system. `run:`, `reference:` or `submitted:` before the name limit
    the rows to that source; otherwise runs have precedence over references. The model's detection
    in the same form of answer belongs to each of its strategies.

    Raises:
        UnknownNameError: no row has that name; the message offers similar names.
        PiiBenchError: there are no rows, or the model has several strategies.
    """
    prefix, colon, rest = name.partition(":")
    sources = [source for source in Source if colon and source == prefix]
    among = [row for row in rows if not sources or row.source in sources]
    if not among:
        raise PiiBenchError(f"there are no stored runs among which {name!r} could be")
    model, strategy = _resolve_name(among, rest if sources else name)
    found: dict[tuple[str, Task], Row] = {}
    for row in sorted(among, key=lambda row: row.source is not Source.RUN):
        if row.model == model and _belongs(row, strategy):
            found.setdefault((row.dataset, row.task), row)
    return found


def _resolve_name(rows: Iterable[Row], name: str) -> tuple[str, str]:
    """Return the model and the strategy of a name."""
    strategies: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.strategy not in strategies[row.model]:
            strategies[row.model].append(row.strategy)
    for model, known in strategies.items():
        spellings = {model, *(alias for alias, card in MODELS.items() if card.full_name == model)}
        for strategy in known:
            if name in {f"{spelling}{sign}{strategy}" for spelling in spellings for sign in "+:"}:
                return model, strategy
        if name in spellings:
            return model, _only_strategy(model, rows)
    systems = [
        system_name(model, strategy) for model, known in strategies.items() for strategy in known
    ]
    names = dict.fromkeys([*strategies, *systems])
    raise UnknownNameError("system", name, names, among="the stored runs")


def _only_strategy(model: str, rows: Iterable[Row]) -> str:
    own = [row for row in rows if row.model == model]
    # Detection belongs to every strategy, so it counts only if there is nothing else.
    others = [row.strategy for row in own if row.task is not Task.DETECTION]
    names = list(dict.fromkeys(others or [row.strategy for row in own]))
    if len(names) > 1:
        choice = ", ".join(system_name(model, name) for name in names)
        raise PiiBenchError(f"{model!r} has several strategies: name one ({choice})")
    return names[0]


def _belongs(row: Row, strategy: str) -> bool:
    if row.task is not Task.DETECTION or row.strategy == strategy:
        return row.strategy == strategy
    if row.strategy.partition("+")[0] in STRATEGIES:
        # A strategy of detection, such as `json`, is a system of its own.
        return False
    # `detection+schema` belongs to `naive+schema`, `detection` to `naive`.
    return row.strategy.partition("+")[2] == strategy.partition("+")[2]
