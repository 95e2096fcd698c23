"""Rows as CSV and Markdown."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pandas as pd

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

The 95 % interval is of the first figure: a bootstrap that draws descriptions. A rank is one
more than the number of rows that are shown to be better (paired permutation tests, Holm's
correction over all pairs of a table, p < 0.05). `Detectable` is the difference to the best
other ranked row that these samples would show with a chance of 80 %. `pii-bench compare` tests
two rows by themselves.
"""


def to_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per row; columns as in `leaderboard.csv`."""
    frame = pd.DataFrame([_flat(row) for row in rows], columns=list(_COLUMNS))
    return frame.astype(dict.fromkeys(("rank", "scored", "gold"), "Int64"))


def to_csv(rows: Sequence[Row]) -> str:
    """The table with four decimals; what is unknown is empty."""
    return to_frame(rows).to_csv(index=False, float_format="%.4f", lineterminator="\n")


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
    header = ["#", "Model", "Strategy", *shown.values(), "95 % interval", "Detectable"]
    header += ["Scored", "Failures", "Unmasked text goes to", "Source"]
    lines = [
        [
            str(row.rank or ""),
            row.model,
            row.strategy,
            *(_figure(row, name) for name in shown),
            f"[{row.interval.low:.3f}, {row.interval.high:.3f}]" if row.interval else "",
            "" if row.detectable is None else f"{row.detectable:.3f}",
            f"{row.scored}/{row.gold}" if row.gold is not None else "",
            failures(row),
            _recipients(row),
            _source(row),
        ]
        for row in rows
    ]
    return pd.DataFrame(lines, columns=header).to_markdown(index=False, disable_numparse=True)


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
    csv, markdown = results / "leaderboard.csv", results / "leaderboard.md"
    write_whole(csv, to_csv(rows))
    write_whole(markdown, to_markdown(rows))
    return csv, markdown


_COLUMNS: Final = (
    *("source", "model", "strategy", "dataset", "task", "oracle", "rank"),
    *("scored", "gold", "coverage", *METRICS),
    *("ci_low", "ci_high", "detectable"),
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
        "ci_low": row.interval.low if row.interval else None,
        "ci_high": row.interval.high if row.interval else None,
        "detectable": row.detectable,
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
