"""Ours in the layout of the paper's tables, next to its figures, with the differences."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import UnknownNameError
from pii_bench.escaping import markdown_table
from pii_bench.models.catalog import MODELS, find_card
from pii_bench.prompting.strategies import DETECTION
from pii_bench.ranking.rows import Row, Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.models.catalog import ModelCard

BOTH: Final = "single+multi"
"""The samples of both sets taken as one, as the paper's tables of masking do."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of figures: a metric of a task on a dataset."""

    task: Task
    dataset: str
    metric: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table of the paper.

    Attributes:
        number: as in the paper's ACL version.
        title: what it shows, in our words.
        columns: from left to right.
        models: names as in `paper_results.csv`, in the paper's order.
        strategies: likewise; `detection` alone where the prompt is one.
        missing: why no run of ours fills it; empty where runs do.
    """

    number: int
    title: str
    columns: tuple[Column, ...]
    models: tuple[str, ...]
    strategies: tuple[str, ...]
    missing: str = ""


def published_name(model: str) -> str | None:
    """The paper's name of a model of ours; None where the paper does not have it.

    Args:
        model: as in rows: `provider/id`, `provider/id@host`, or a detector's name.
    """
    if model in _NAMES:
        return model
    provider, _, model_id = model.partition("/")
    for asked in (model_id, model_id.rpartition("@")[0]):
        if card := find_card(provider, asked):
            return next((name for name in (card.alias, card.id) if name in _NAMES), None)
    return None


def paper_table(number: int, rows: Iterable[Row], published: Iterable[Row]) -> str:
    """One table of the paper as Markdown, our rows under the published ones.

    A figure of ours has its difference from the published figure above it; the samples
    scored take its place where some are missing, since such a mean is of other samples.

    Args:
        number: a key of `PAPER_TABLES`.
        rows: ours.
        published: the paper's figures.

    Raises:
        UnknownNameError: the paper has no such table of results.
    """
    table = _table(number)
    theirs = _lines(table, published)
    parts = [f"# Table {table.number} of the paper: {table.title}"]
    if table.missing:
        parts.append(table.missing)
        if not theirs:
            return "\n\n".join(parts) + "\n"
        return "\n\n".join([*parts, _NOTE, _markdown(table, theirs)]) + "\n"
    ours = _lines(table, _with_both(rows))
    known, others = _arranged(theirs, ours)
    parts += [_NOTE, _markdown(table, known)]
    if others:
        parts += ["## Ours that this table of the paper does not have", _markdown(table, others)]
    if absent := _without_a_run(theirs, ours):
        parts += ["## Not run by us, or not on these sets", absent]
    return "\n\n".join(parts) + "\n"


def paper_table_records(
    number: int, rows: Iterable[Row], published: Iterable[Row]
) -> list[dict[str, Any]]:
    """The lines of `paper_table` as records, in its order, with figures that are not rounded.

    Each has the table's number, source, model, strategy, whether it is told gold, and `figures`:
    dataset, task, metric and value of each column that it has; of ours also the samples scored
    of those there are, and the difference from the published figure where none is missing.

    Raises:
        UnknownNameError: the paper has no such table of results.
    """
    table = _table(number)
    theirs = _lines(table, published)
    ours = [] if table.missing else _lines(table, _with_both(rows))
    known, others = _arranged(theirs, ours)
    return [
        {
            "table": number,
            "source": str(line.source),
            "model": line.model,
            "strategy": line.strategy,
            "oracle": line.oracle,
            "figures": [
                figure for column in table.columns if (figure := line.figure(column)) is not None
            ],
        }
        for line in (*known, *others)
    ]


def _table(number: int) -> PaperTable:
    if number not in PAPER_TABLES:
        raise UnknownNameError("table of the paper", str(number), map(str, PAPER_TABLES))
    return PAPER_TABLES[number]


def _arranged(
    theirs: Iterable[_Line], ours: Sequence[_Line]
) -> tuple[list[_Line], Sequence[_Line]]:
    """The published lines with ours under each, and ours that the paper does not have."""
    known: list[_Line] = []
    others = ours
    for line in theirs:
        here = [own for own in ours if own.is_of_same_line(line)]
        known += [line, *(replace(own, published=line.cells) for own in here)]
        others = [own for own in others if own not in here]
    return known, others


_NOTE: Final = """\
`published` figures are the paper's, on data that was never released: for orientation, not for
comparison. In brackets: the difference of ours from them, or the samples scored where some are
missing. `oracle` rows are told gold."""

_LABELS: Final = {
    "strict_f1": "Strict-F1",
    "ent_f1": "Ent-F1",
    "rouge_l_f": "RougeL-F",
    "f1": "F1",
}


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a table: the rows of one system from one source, by column."""

    source: Source
    model: str
    strategy: str
    cells: Mapping[Column, Row]
    published: Mapping[Column, Row] | None = None

    def is_of_same_line(self, theirs: _Line) -> bool:
        """Whether it is of the model and strategy of a published line."""
        same = published_name(self.model) == theirs.model
        return same and self.strategy == theirs.strategy

    @property
    def oracle(self) -> bool:
        """Whether it is told gold."""
        return any(row.oracle for row in self.cells.values())

    @property
    def mark(self) -> str:
        """Where it comes from, and whether it is told gold."""
        return f"{self.source}, oracle" if self.oracle else str(self.source)

    def cell(self, column: Column) -> str:
        """A figure; `-` where it would need subjects that the system does not name."""
        row = self.cells.get(column)
        if row is None:
            return ""
        value = row.metrics.get(column.metric)
        if value is None:
            return "-" if column.metric in row.undefined else ""
        if row.source.is_system and not row.complete:
            return f"{value:.3f} ({row.scored}/{row.gold})"
        theirs = self._published_value(column)
        return f"{value:.3f}" if theirs is None else f"{value:.3f} ({value - theirs:+z.3f})"

    def figure(self, column: Column) -> dict[str, Any] | None:
        """A figure as a record; None where there is none."""
        row = self.cells.get(column)
        value = row.metrics.get(column.metric) if row else None
        if row is None or value is None:
            return None
        record = {**asdict(column), "task": str(column.task), "value": value}
        if row.source.is_system:
            record |= {"scored": row.scored, "gold": row.gold}
            theirs = self._published_value(column)
            if theirs is not None and row.complete:
                record["difference"] = value - theirs
        return record

    def _published_value(self, column: Column) -> float | None:
        other = self.published.get(column) if self.published else None
        return other.metrics.get(column.metric) if other else None


def _lines(table: PaperTable, rows: Iterable[Row]) -> list[_Line]:
    """The lines that have a cell in a table, in the paper's order, then by name."""
    found: dict[tuple[Source, str, str], dict[Column, Row]] = defaultdict(dict)
    for row in rows:
        for column in table.columns:
            ours = row.source is not Source.PUBLISHED
            if (row.task, row.dataset) == (column.task, column.dataset) and (
                ours or row.model in table.models
            ):
                # People answer both tasks: one line for both.
                strategy = row.strategy if len(_tasks(table)) == 1 else ""
                found[row.source, row.model, strategy][column] = row
    order = [(strategy, model) for strategy in table.strategies for model in table.models]
    place = {name: number for number, name in enumerate(order)}
    return sorted(
        (_Line(*key, cells) for key, cells in found.items()),
        key=lambda line: (
            place.get((line.strategy, line.model), len(order)),
            line.model,
            line.strategy,
            line.source,
        ),
    )


def _tasks(table: PaperTable) -> set[Task]:
    return {column.task for column in table.columns}


def _with_both(rows: Iterable[Row]) -> list[Row]:
    """The rows, and one over both sets for each system that has single and multi."""
    rows = list(rows)
    sets: dict[tuple[Source, str, str, Task], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        sets[row.source, row.model, row.strategy, row.task][row.dataset] = row
    pairs = [(found.get("single"), found.get("multi")) for found in sets.values()]
    return rows + [_join(single, multi) for single, multi in pairs if single and multi]


def _join(single: Row, multi: Row) -> Row:
    # Means over samples, so each set weighs as many samples as it has.
    n, m = single.scored or 0, multi.scored or 0
    metrics = {
        name: (n * value + m * multi.metrics[name]) / (n + m)
        for name, value in single.metrics.items()
        if name in _LABELS and name in multi.metrics
    }
    return Row(
        source=single.source,
        model=single.model,
        strategy=single.strategy,
        dataset=BOTH,
        task=single.task,
        oracle=single.oracle,
        metrics=metrics,
        scored=n + m,
        gold=(single.gold or 0) + (multi.gold or 0),
        names_subjects=single.names_subjects,
    )


def _markdown(table: PaperTable, lines: Sequence[_Line]) -> str:
    header = ["Strategy", "Model", "Source", *(_label(table, column) for column in table.columns)]
    cells = [
        [line.strategy, line.model, line.mark, *(line.cell(column) for column in table.columns)]
        for line in lines
    ]
    if {line.strategy for line in lines} <= {DETECTION.name, ""}:
        header, cells = header[1:], [line[1:] for line in cells]
    return markdown_table(header, cells)


def _label(table: PaperTable, column: Column) -> str:
    metric = _LABELS[column.metric]
    if len(_tasks(table)) > 1:
        metric = f"{column.task} {metric}"
    return f"{column.dataset}: {metric}"


def _without_a_run(theirs: Sequence[_Line], ours: Sequence[_Line]) -> str:
    """The published lines without a run of ours, by model, and what would run it."""
    absent: dict[str, list[str]] = {}
    for line in theirs:
        if not any(own.is_of_same_line(line) for own in ours):
            absent.setdefault(line.model, []).append(line.strategy)
    items = []
    for model, strategies in absent.items():
        card = _card(model)
        how = f"`--model {card.alias}`, {card.standing}" if card else f"`--model {model}`"
        prompts = [name for name in strategies if name != DETECTION.name]
        items.append(f"- {model} ({how}){': ' if prompts else ''}{', '.join(prompts)}")
    return "\n".join(items)


def _card(name: str) -> ModelCard | None:
    return next((card for card in MODELS.values() if name in {card.alias, card.id}), None)


_SETS: Final = ("single", "multi", "hard", "distract")
_DETECTION_METRICS: Final = ("strict_f1", "ent_f1", "rouge_l_f")
_SET_METRICS: Final = ("f1", "rouge_l_f")
_LARGE: Final = ("gpt-4o-2024-08-06", "llama-3.1-70b-instruct", "qwen2.5-72b-instruct")
_MIDDLE: Final = ("llama-3.1-8b-instruct", "qwen2.5-7b-instruct")
_SMALL: Final = ("qwen2.5-0.5b-instruct", "qwen2.5-1.5b-instruct", "qwen2.5-3b-instruct")
_NEWER: Final = (
    *("gpt-5", "deepseek-v3.2", "deepseek-r1", "qwen3-30b-instruct", "qwen3-30b-thinking"),
    *("qwen3-8b-no-think", "qwen3-8b-think"),
)
_DETECTORS: Final = (
    *("bilstm-crf", "gpt-4o-2024-08-06", "claude-3.5-sonnet", "deepseek-v3"),
    *("llama-3.1-70b-instruct", "qwen2.5-72b-instruct"),
    *_MIDDLE,
)
_REAL: Final = (
    "PII-Real, 20 profiles of researchers, was never released: no run of ours is on it. Nearest "
    "is table {nearest}, on `{datasets}`."
)
_UNKNOWN: Final = (
    "We have no figures of it: `data/published/paper_results.csv` holds none, so there is nothing "
    "to compare with."
)
_STRATEGIES: Final = (
    *("naive", "self-cot", "auto-cot", "self-consistency", "ps-cot"),
    "naive-choice",
)


def _columns(task: Task, datasets: Sequence[str], metrics: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(task, dataset, metric) for dataset in datasets for metric in metrics)


def _detection(
    number: int,
    title: str,
    models: tuple[str, ...],
    metrics: Sequence[str],
    datasets: Sequence[str] = _SETS,
    *,
    missing: str = "",
) -> PaperTable:
    columns = _columns(Task.DETECTION, datasets, metrics)
    return PaperTable(number, title, columns, models, (DETECTION.name,), missing)


def _prompted(
    number: int, title: str, models: tuple[str, ...], task: Task, *datasets: str, missing: str = ""
) -> PaperTable:
    columns = _columns(task, datasets, _SET_METRICS)
    return PaperTable(number, title, columns, models, _STRATEGIES, missing)


PAPER_TABLES: Final[Mapping[int, PaperTable]] = MappingProxyType(
    {
        table.number: table
        for table in (
            PaperTable(
                2,
                "what people reach",
                (
                    *_columns(Task.DETECTION, _SETS, ("strict_f1",)),
                    *_columns(Task.QUERY_RELATED, _SETS, ("f1",)),
                ),
                ("human",),
                ("",),
                missing="It needs people who annotate samples of ours: no command does that.",
            ),
            _prompted(4, "masking", (*_LARGE, *_MIDDLE), Task.MASKING, BOTH),
            _prompted(
                5,
                "query-related PII in hard texts and long conversations",
                _LARGE[:1],
                Task.QUERY_RELATED,
                "hard",
                "distract",
            ),
            _detection(6, "detection", _DETECTORS, _DETECTION_METRICS),
            _prompted(
                7,
                "query-related PII, one person",
                (*_LARGE, *_MIDDLE),
                Task.QUERY_RELATED,
                "single",
            ),
            PaperTable(
                8,
                "privacy against the utility of answers",
                (),
                (),
                (),
                missing="It needs answers to masked prompts, and a judge of them: no command "
                "asks for either. The published figures are in "
                "`data/published/paper_results.csv`.",
            ),
            _detection(12, "detection by small models", _SMALL, _DETECTION_METRICS),
            _prompted(
                13,
                "query-related PII by small models, one person",
                _SMALL,
                Task.QUERY_RELATED,
                "single",
            ),
            _prompted(14, "masking by small models", _SMALL, Task.MASKING, BOTH),
            _detection(
                18,
                "detection in profiles of real people",
                _DETECTORS[1:],
                _DETECTION_METRICS,
                ("real",),
                missing=_REAL.format(nearest=6, datasets="single"),
            ),
            _prompted(
                19,
                "query-related PII of real people",
                (*_LARGE, *_MIDDLE),
                Task.QUERY_RELATED,
                "real",
                missing=_REAL.format(nearest=7, datasets="single"),
            ),
            _prompted(
                20,
                "masking of real people",
                (*_LARGE, *_MIDDLE),
                Task.MASKING,
                "real",
                missing=_REAL.format(nearest=4, datasets=BOTH),
            ),
            _prompted(
                21,
                "query-related PII, two people",
                (*_LARGE, *_MIDDLE),
                Task.QUERY_RELATED,
                "multi",
            ),
            PaperTable(22, "without figures here", (), (), (), missing=_UNKNOWN),
            _detection(23, "detection by newer models", _NEWER, ("strict_f1",)),
            PaperTable(24, "without figures here", (), (), (), missing=_UNKNOWN),
            _prompted(
                25,
                "query-related PII by newer models, one person",
                _NEWER,
                Task.QUERY_RELATED,
                "single",
            ),
            _prompted(26, "masking by newer models, one person", _NEWER, Task.MASKING, "single"),
        )
    }
)
"""The tables of results by number; 21 is numbered 9 in the first version on arXiv."""

_NAMES: Final = frozenset(name for table in PAPER_TABLES.values() for name in table.models)
