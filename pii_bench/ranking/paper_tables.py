"""Our results in the layout of the paper's tables, with the differences from its figures."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import UnknownNameError
from pii_bench.escaping import markdown_table
from pii_bench.models.catalog import MODELS, find_card
from pii_bench.prompting.strategies import DETECTION
from pii_bench.ranking.external import PUBLISHED, TASKS, read_published
from pii_bench.ranking.render import SHOWN, figure
from pii_bench.ranking.rows import METRICS, Row, Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BOTH: Final = "single+multi"
"""The samples of both sets together, as in the paper's tables of masking."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures: a metric of a task on a dataset."""

    task: Task
    dataset: str
    metric: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper, in the order of the file of published figures.

    Attributes:
        lines: (strategy, model) of each line; the strategy is empty in the table of people.
        missing: the reason why runs cannot fill the table; empty if they can.
    """

    title: str
    columns: Sequence[Column]
    lines: Sequence[tuple[str, str]]
    missing: str

    @property
    def several_tasks(self) -> bool:
        """True for the table of people, who answer two tasks."""
        return len({column.task for column in self.columns}) > 1


def published_name(model: str) -> str | None:
    """Return the paper's name of a model; None if the paper does not have it.

    The model is that of a row: `provider/id`, `provider/id@host`, or a detector's name.
    """
    names = _published_models()
    if model in names:
        return model
    provider, _, model_id = model.partition("/")
    for candidate in (model_id, model_id.rpartition("@")[0]):
        if card := find_card(provider, candidate):
            return next((name for name in (card.alias, card.id) if name in names), None)
    return None


@cache
def _published_models() -> frozenset[str]:
    return frozenset(model for _, _, model, _, _ in read_published(PUBLISHED, TASKS, METRICS))


def paper_table(number: int, rows: Iterable[Row], published: Iterable[Row]) -> str:
    """Return a table of the paper as Markdown, with our rows below the published ones.

    Each of our figures has its difference from the published figure in brackets, or the number of
    scored samples if some are missing.

    Raises:
        UnknownNameError: the paper has no such table of results.
    """
    table = _table(number)
    theirs, ours = _lines(table, published), _ours(table, rows)
    parts = [f"# Table {number} of the paper: {table.title}"]
    if table.missing:
        parts.append(table.missing)
        if theirs or ours:
            parts += [_NOTE, _markdown(table, [*theirs, *ours])]
    else:
        known, others = _arrange(theirs, ours)
        parts += [_NOTE, _markdown(table, known)]
        if others:
            heading = "## Ours that this table of the paper does not have"
            parts += [heading, _markdown(table, others)]
        if absent := _missing_runs(theirs, ours):
            parts += ["## Not run by us, or not on these sets", absent]
    return "\n\n".join(parts) + "\n"


def paper_table_records(
    number: int, rows: Iterable[Row], published: Iterable[Row]
) -> list[dict[str, Any]]:
    """Return the lines of `paper_table` as records, without rounding.

    A record has the table's number, source, model, strategy, `oracle`, and `figures`: dataset,
    task, metric and value of each column. Our figures also have the numbers of scored and gold
    samples and, if all are scored, the difference from the published figure.

    Raises:
        UnknownNameError: the paper has no such table of results.
    """
    table = _table(number)
    known, others = _arrange(_lines(table, published), _ours(table, rows))
    return [
        {
            "table": number,
            "source": str(line.source),
            "model": line.model,
            "strategy": line.strategy,
            "oracle": line.oracle,
            "figures": line.figures(table.columns),
        }
        for line in (*known, *others)
    ]


def _table(number: int) -> PaperTable:
    if number not in PAPER_TABLES:
        raise UnknownNameError("table of the paper", str(number), map(str, PAPER_TABLES))
    metrics: dict[tuple[Task, str], set[str]] = defaultdict(set)
    lines: dict[tuple[str, str], None] = {}
    for condition, figures in read_published(PUBLISHED, TASKS, METRICS).items():
        name, dataset, model, strategy, table = condition
        if table == str(number):
            task = TASKS[name]
            metrics[task, dataset].update(metric for metric, _, _ in figures)
            lines[DETECTION.name if task is Task.DETECTION else strategy, model] = None
    columns = [
        Column(task, dataset, metric)
        for task in Task
        for of_task, dataset in metrics
        if of_task is task
        for metric in SHOWN[task]
        if metric in metrics[task, dataset]
    ]
    return PaperTable(PAPER_TABLES[number], columns, list(lines), _MISSING.get(number, ""))


def _ours(table: PaperTable, rows: Iterable[Row]) -> list[_Line]:
    """Return our lines: of people in the paper's table of people, of systems in the others."""
    if table.several_tasks:
        return _lines(table, [row for row in rows if row.source is Source.HUMAN])
    if table.missing:
        return []
    return _lines(table, _with_both(row for row in rows if row.source is not Source.HUMAN))


def _arrange(theirs: Iterable[_Line], ours: Sequence[_Line]) -> tuple[list[_Line], Sequence[_Line]]:
    """Return the published lines, each followed by ours, and our lines without a published one."""
    known: list[_Line] = []
    others = ours
    for line in theirs:
        same = [own for own in ours if own.matches(line)]
        known += [line, *(replace(own, published=line.cells) for own in same)]
        others = [own for own in others if own not in same]
    return known, others


_NOTE: Final = """\
`published` figures are the paper's, on data that was never released; they cannot be compared
directly. In brackets: the difference of ours from them, or the number of samples scored if some are
missing. `oracle` rows use the annotation."""

_LABELS: Final = {**SHOWN[Task.DETECTION], "f1": "F1"}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a table: the rows of a system from one source, by column."""

    source: Source
    model: str
    strategy: str
    cells: Mapping[Column, Row]
    published: Mapping[Column, Row] = field(default_factory=dict)

    def matches(self, theirs: _Line) -> bool:
        """Return True if the model and the strategy are those of a published line."""
        same = published_name(self.model) == theirs.model
        return same and self.strategy == theirs.strategy

    @property
    def oracle(self) -> bool:
        return any(row.oracle for row in self.cells.values())

    def cell(self, column: Column) -> str:
        """Return a figure as text; `-` if it depends on subjects or types that the system lacks."""
        row = self.cells.get(column)
        if row is None:
            return ""
        value = row.metrics.get(column.metric)
        if value is None:
            return figure(row, column.metric)
        if row.source.is_system and not row.complete:
            return f"{value:.3f} ({row.scored}/{row.gold})"
        theirs = self._published_value(column)
        return f"{value:.3f}" if theirs is None else f"{value:.3f} ({value - theirs:+z.3f})"

    def figures(self, columns: Sequence[Column]) -> list[dict[str, Any]]:
        """Return the known figures as records."""
        records = []
        for column in columns:
            row = self.cells.get(column)
            if row is None or column.metric not in row.metrics:
                continue
            value = row.metrics[column.metric]
            record = {**asdict(column), "task": str(column.task), "value": value}
            if row.source.is_system:
                record |= {"scored": row.scored, "gold": row.gold}
                theirs = self._published_value(column)
                if theirs is not None and row.complete:
                    record["difference"] = value - theirs
            records.append(record)
        return records

    def _published_value(self, column: Column) -> float | None:
        row = self.published.get(column)
        return None if row is None else row.metrics.get(column.metric)


def _lines(table: PaperTable, rows: Iterable[Row]) -> list[_Line]:
    """Return the lines of a table in the paper's order, then by name."""
    cells: dict[tuple[Source, str, str], dict[Column, Row]] = defaultdict(dict)
    models = {model for _, model in table.lines}
    for row in rows:
        if row.source is Source.PUBLISHED and row.model not in models:
            continue
        for column in table.columns:
            if (row.task, row.dataset) == (column.task, column.dataset):
                # People have one line for both tasks.
                strategy = "" if table.several_tasks else row.strategy
                cells[row.source, row.model, strategy][column] = row
    place = {name: number for number, name in enumerate(table.lines)}
    return sorted(
        (_Line(*key, own) for key, own in cells.items()),
        key=lambda line: (
            place.get((line.strategy, line.model), len(place)),
            line.model,
            line.strategy,
            line.source,
        ),
    )


def _with_both(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, and a joined one for each system with rows on single and multi."""
    rows = list(rows)
    systems: dict[tuple[Source, str, str, Task], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        systems[row.source, row.model, row.strategy, row.task][row.dataset] = row
    joined = [
        _join(by_dataset["single"], by_dataset["multi"])
        for by_dataset in systems.values()
        if {"single", "multi"} <= by_dataset.keys()
    ]
    return rows + joined


def _join(single: Row, multi: Row) -> Row:
    # Means over samples: the weight of a set is its number of samples.
    n, m = single.scored or 0, multi.scored or 0
    metrics = {
        name: (n * value + m * multi.metrics[name]) / (n + m)
        for name, value in single.metrics.items()
        if name in _LABELS and name in multi.metrics
    }
    gold = (single.gold or 0) + (multi.gold or 0)
    return replace(single, dataset=BOTH, metrics=metrics, scored=n + m, gold=gold)


def _markdown(table: PaperTable, lines: Sequence[_Line]) -> str:
    header = ["Strategy", "Model", "Source"]
    for column in table.columns:
        task = f"{column.task} " if table.several_tasks else ""
        header.append(f"{column.dataset}: {task}{_LABELS[column.metric]}")
    cells = []
    for line in lines:
        source = f"{line.source}, oracle" if line.oracle else str(line.source)
        figures = [line.cell(column) for column in table.columns]
        cells.append([line.strategy, line.model, source, *figures])
    if {line.strategy for line in lines} <= {DETECTION.name, ""}:
        header, cells = header[1:], [line[1:] for line in cells]
    return markdown_table(header, cells)


def _missing_runs(theirs: Sequence[_Line], ours: Sequence[_Line]) -> str:
    """Return a list of the published lines without a run of ours, by model."""
    absent: dict[str, list[str]] = defaultdict(list)
    for line in theirs:
        if not any(own.matches(line) for own in ours):
            absent[line.model].append(line.strategy)
    items = []
    for model, strategies in absent.items():
        how = f"`--model {model}`"
        for card in MODELS.values():
            if model in {card.alias, card.id}:
                how = f"`--model {card.alias}`, {card.standing}"
                break
        prompts = [name for name in strategies if name != DETECTION.name]
        items.append(f"- {model} ({how}){': ' if prompts else ''}{', '.join(prompts)}")
    return "\n".join(items)


PAPER_TABLES: Final[Mapping[int, str]] = {
    2: "what people reach",
    4: "masking",
    5: "query-related PII in hard texts and long conversations",
    6: "detection",
    7: "query-related PII, one person",
    8: "privacy against the utility of answers",
    12: "detection by small models",
    13: "query-related PII by small models, one person",
    14: "masking by small models",
    18: "detection in profiles of real people",
    19: "query-related PII of real people",
    20: "masking of real people",
    21: "query-related PII, two people",
    22: "not available",
    23: "detection by newer models",
    24: "not available",
    25: "query-related PII by newer models, one person",
    26: "masking by newer models, one person",
}
"""The tables of results: number to a title in our words.

Table 21 is table 9 in the first version on arXiv.
"""

_REAL: Final = (
    "PII-Real, 20 profiles of researchers, was never released: no run of ours is on it. Nearest "
    "is table {nearest}, on `{datasets}`."
)
_NO_FIGURES: Final = "`data/published/paper_results.csv` has no figures of this table."
_MISSING: Final[Mapping[int, str]] = {
    2: "It needs people who annotate samples of ours in the web application (`pii-bench serve`); "
    "`human` rows are theirs.",
    8: "It needs answers to masked prompts, and a judge of them: `pii-bench utility` gets both, "
    "and prints our figures and the published ones.",
    18: _REAL.format(nearest=6, datasets="single"),
    19: _REAL.format(nearest=7, datasets="single"),
    20: _REAL.format(nearest=4, datasets=BOTH),
    22: _NO_FIGURES,
    24: _NO_FIGURES,
}
"""Number of a table to the reason why no run can fill it."""
