"""Rows as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.files import write_whole
from pii_bench.leaderboard.rows import METRICS, SUBJECT_METRICS, Row, Source
from pii_bench.outcome import Status
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SHOWN: Final = {
    Task.DETECTION: {"strict_f1": "Strict-F1", "ent_f1": "Ent-F1", "rouge_l_f": "RougeL-F"},
    Task.QUERY_RELATED: {"f1": "F1", "precision": "P", "recall": "R", "rouge_l_f": "RougeL-F"},
    Task.MASKING: {"f1": "F1", "precision": "P", "recall": "R", "rouge_l_f": "RougeL-F"},
}

_INTRODUCTION: Final = """\
# Leaderboard

Means over samples. `run` and `reference` rows are ours and come from stored responses
(`pii-bench leaderboard` makes them again); `published` rows are the paper's figures, on
data that was never released: for orientation, not for comparison. `oracle` rows are told
gold and `incomplete` rows lack samples: neither is ranked. A detector that does not say whose
an entity is has `-` where a figure depends on it, and no rank in detection. Unmasked text goes
to whoever is sent a text before anything in it is masked.
"""


def to_csv(rows: Sequence[Row]) -> str:
    """The table with four decimals; what is unknown is empty."""
    table = io.StringIO()
    writer = csv.DictWriter(table, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {
                name: f"{value:.4f}" if isinstance(value, float) else value
                for name, value in _flat(row).items()
            }
        )
    return table.getvalue()


def to_markdown(rows: Sequence[Row]) -> str:
    """One table per dataset and task, then the signatures."""
    parts = [_INTRODUCTION]
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        parts.append(f"## {dataset}: {task}\n\n{to_table(list(group), task)}\n")
    if signed := [row.signature for row in rows if row.signature]:
        parts.append("## Signatures\n\n" + "\n".join(f"- `{line}`" for line in signed) + "\n")
    return "\n".join(parts)


def to_table(rows: Sequence[Row], task: Task) -> str:
    """The Markdown table of one dataset and task."""
    shown = _SHOWN[task]
    header = ["#", "Model", "Strategy", *shown.values(), "Scored", "Failures"]
    header += ["Unmasked text goes to", "Source"]
    lines = [
        [
            str(row.rank or ""),
            row.model,
            row.strategy,
            *(_figure(row, name) for name in shown),
            f"{row.scored}/{row.gold}" if row.gold is not None else "",
            failures(row),
            _recipients(row),
            _source(row),
        ]
        for row in rows
    ]
    return tabulate(lines, headers=header, tablefmt="pipe", disable_numparse=True)


def failures(row: Row) -> str:
    """The samples without an answer by status, such as `malformed 25 %`."""
    rates = row.rates or {}
    shown = [(s, rate) for s, rate in rates.items() if not s.answered and rate]
    return ", ".join(f"{status} {rate:.0%}" for status, rate in shown)


def write_leaderboard(rows: Sequence[Row], results: Path) -> tuple[Path, Path]:
    """Write `leaderboard.csv` and `leaderboard.md`.

    Raises:
        ResultsError: they cannot be written.
    """
    table, markdown = results / "leaderboard.csv", results / "leaderboard.md"
    write_whole(table, to_csv(rows))
    write_whole(markdown, to_markdown(rows))
    return table, markdown


_COLUMNS: Final = (
    *("source", "model", "strategy", "dataset", "task", "oracle", "rank"),
    *("scored", "gold", "coverage", *METRICS),
    *(f"rate_{status}" for status in Status),
    *("unmasked_text_to", "signature", "note"),
)


def _flat(row: Row) -> dict[str, object]:
    return {
        "source": row.source,
        "model": row.model,
        "strategy": row.strategy,
        "dataset": row.dataset,
        "task": row.task,
        "oracle": row.oracle,
        "rank": row.rank,
        "scored": row.scored,
        "gold": row.gold,
        "coverage": row.scored / row.gold if row.gold and row.scored is not None else None,
        **row.metrics,
        **{f"rate_{status}": rate for status, rate in (row.rates or {}).items()},
        "unmasked_text_to": row.unmasked_text_to,
        "signature": row.signature,
        "note": row.note,
    }


def _figure(row: Row, name: str) -> str:
    if (value := row.metrics.get(name)) is not None:
        return f"{value:.3f}"
    undefined = row.task is Task.DETECTION and not row.names_subjects and name in SUBJECT_METRICS
    return "-" if undefined else ""


def _recipients(row: Row) -> str:
    # Of an endpoint, the host tells who it is.
    return re.sub(r"https?://([^/)]+)[^)]*", r"\1", row.unmasked_text_to)


def _source(row: Row) -> str:
    marks = [str(row.source)]
    if row.oracle:
        marks.append("oracle")
    if row.source is not Source.PUBLISHED and not row.complete:
        marks.append("incomplete")
    return ", ".join(marks)
