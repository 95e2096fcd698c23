"""Leaderboards as CSV, Markdown, LaTeX and HTML, and the summary of a run."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.escaping import csv_text, latex, markdown, markdown_code, visible
from pii_bench.files import write_whole
from pii_bench.ranking.rows import METRICS, PEOPLE, Row, Source, source_marks
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


SHOWN: Final[Mapping[Task, Mapping[str, str]]] = {
    Task.DETECTION: {"strict_f1": "Strict-F1", "ent_f1": "Ent-F1", "rouge_l_f": "RougeL-F"},
    Task.QUERY_RELATED: {"f1": "F1", "precision": "P", "recall": "R", "rouge_l_f": "RougeL-F"},
    Task.MASKING: {
        "h": "H",
        "protection": "Protection",
        "retention": "Retention",
        "collateral": "Collateral",
        "f1": "F1",
        "rouge_l_f": "RougeL-F",
    },
    Task.REWRITE: {
        "h": "H",
        "protection": "Protection",
        "retention": "Retention",
        "leak_readable": "Leaks as written",
        "leak_restated": "Leaks restated",
        "leak_part": "Leaks in part",
        "f1": "F1",
    },
}
"""Metrics that the tables of a task show, with their headings."""

_INTRODUCTION: Final = """\
# Leaderboard

All figures are means over samples. Sources: `run` and `reference` rows come from stored responses
(`pii-bench leaderboard` scores them again); `submitted` rows from predictions made elsewhere
(`pii-bench score --name`), whose origin is not verified; `reading` rows from a large language model
that read our texts blind, and `human` rows from people who annotated in the web application (both
unranked); `published` rows from the paper, on data that was not released: they are for orientation,
not for comparison. `oracle` rows use gold and `incomplete` rows lack samples: neither is ranked.
Detectors that do not assign entities to people have `-` in figures that depend on it, and no rank
in detection. `Not ok` has the shares of answers that were repaired or failed. Unmasked text names
the recipient of the text before masking.

Masking is ranked by H, the harmonic mean of protection and retention, both computed from the
characters that are masked: protection is the share of unneeded texts of which nothing can be read,
retention the share of needed texts of which an occurrence can be read in full. Masking nothing and
masking everything have H = 0 if each query needs something. Collateral is the share of the other
characters that are masked. F1 and RougeL-F of masking are the paper's metrics, over the sets of
masked texts: they favour masking everything. Published rows have only these, so they have no H and
no rank and follow the others, in the order of F1.

A rewritten text has no masked characters. The gold texts are searched in it: as written, in another
form (numbers in words, dates, place names, diacritics), or in part. An unneeded text that is found
is a leak; protection, retention and H follow from that, and leaks are shares of all unneeded texts.
Compare rewritten texts with each other, not with masked ones.

The 95 % interval belongs to the first figure (bootstrap over descriptions). A rank is one more than
the number of rows that are significantly better (paired permutation tests, Holm's correction over
all pairs of a table, p < 0.05). `Detectable` is the difference to the best other ranked row that
these samples would detect with a power of 80 %. `pii-bench compare` tests two rows by themselves.
"""


def to_csv(rows: Sequence[Row]) -> str:
    """Return the leaderboard as CSV; unknown values are empty."""
    records = [record_of(row) for row in rows]
    return csv_text(_COLUMNS, ([record.get(name) for name in _COLUMNS] for record in records))


def to_markdown(rows: Sequence[Row]) -> str:
    """Return a table per dataset and task, with oracles in their own, then the signatures."""
    parts = [_INTRODUCTION]
    title = ""
    for name, heading, members in _tables(rows):
        if name != title:
            parts.append(f"## {markdown(name)}\n")
            title = name
        table = f"{to_table(members)}\n"
        parts.append(f"{heading}\n\n{table}" if heading else table)
    if signatures := [f"- {markdown_code(row.signature)}\n" for row in rows if row.signature]:
        parts.append("## Signatures\n\n" + "".join(signatures))
    return "\n".join(parts)


def to_latex(rows: Sequence[Row]) -> str:
    """Return the tables for a paper, with `booktabs` and without signatures."""
    parts = ["% Needs \\usepackage{booktabs}. Made by `pii-bench leaderboard`."]
    for name, heading, members in _tables(rows):
        caption = f"{name} ({heading.lower()})" if heading else name
        parts.append(
            "\\begin{table}\n\\centering\n\\small\n"
            f"{_tabulate(members, 'latex_booktabs')}\n"
            f"\\caption{{{latex(caption)}}}\n\\end{{table}}"
        )
    return "\n\n".join(parts) + "\n"


def to_table(rows: Sequence[Row]) -> str:
    """Return the Markdown table of rows of one dataset and task."""
    return _tabulate(rows, "pipe")


def not_ok(row: Row) -> str:
    """Return the shares of samples with another status than `ok`, such as `malformed 25%`."""
    rates = (row.rates or {}).items()
    return ", ".join(f"{s} {rate:.0%}" for s, rate in rates if s is not Status.OK and rate)


def write_leaderboard(rows: Sequence[Row], results: Path) -> tuple[Path, ...]:
    """Write `leaderboard.csv`, `.md`, `.tex` and `.html`, and return their paths.

    Raises:
        ResultsError: a file cannot be written.
    """
    from pii_bench.ranking.html import leaderboard_page  # it imports this module

    formats = {"csv": to_csv, "md": to_markdown, "tex": to_latex, "html": leaderboard_page}
    written = []
    for suffix, render in formats.items():
        path = results / f"leaderboard.{suffix}"
        write_whole(path, render(rows))
        written.append(path)
    return tuple(written)


_COLUMNS: Final = (
    *("source", "model", "strategy", "dataset", "task", "oracle", "rank"),
    *("scored", "gold", "coverage", *METRICS),
    *("ci_low", "ci_high", "detectable"),
    *(f"rate_{status}" for status in Status),
    *("unmasked_text_to", "signature", "note"),
)


def _tables(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield the name of each dataset and task with a heading and rows; oracles are apart."""
    for (dataset, task), group in groupby(rows, key=lambda row: (row.dataset, row.task)):
        members = list(group)
        ours = [row for row in members if not row.oracle]
        oracles = [row for row in members if row.oracle]
        if ours:
            yield f"{dataset}: {task}", "", ours
        if oracles:
            yield f"{dataset}: {task}", "Told gold (oracles)", oracles


def _tabulate(rows: Sequence[Row], style: str) -> str:
    """Return a table of rows of one task in a style of `tabulate`, which escapes LaTeX itself."""
    escape = markdown if style == "pipe" else visible
    shown = SHOWN[rows[0].task]
    header = ["#", "Model", "Strategy", *shown.values(), "95 % interval", "Detectable"]
    header += ["Scored", "Not ok", "Unmasked text goes to", "Source"]
    lines = [
        [
            str(row.rank or ""),
            escape(row.model),
            escape(row.strategy),
            *(figure(row, name) for name in shown),
            f"[{row.interval.low:.3f}, {row.interval.high:.3f}]" if row.interval else "",
            "" if row.detectable is None else f"{row.detectable:.3f}",
            f"{row.scored}/{row.gold}" if row.gold is not None else "",
            not_ok(row),
            escape(_recipients(row)),
            ", ".join(source_marks(row.source, oracle=row.oracle, complete=row.complete)),
        ]
        for row in rows
    ]
    return str(tabulate(lines, header, tablefmt=style, disable_numparse=True))


def record_of(row: Row) -> dict[str, object]:
    """Return the columns of the CSV file by name; metrics and rates that a row lacks are absent."""
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


def figure(row: Row, name: str) -> str:
    """Return a metric as text: `-` if it is undefined, empty if it is unknown."""
    if (value := row.metrics.get(name)) is not None:
        return f"{value:.3f}"
    return "-" if name in row.undefined else ""


def _recipients(row: Row) -> str:
    # The host of an endpoint is enough.
    return re.sub(r"https?://([^/)]+)[^)]*", r"\1", row.unmasked_text_to)


_HEADLINES: Final[Mapping[Task, str]] = {
    Task.DETECTION: "Strict-F1, or Ent-F1 in brackets where no subjects are named",
    Task.QUERY_RELATED: "F1",
    Task.MASKING: "H; published: F1 in brackets",
    Task.REWRITE: "H",
}

_LADDER: Final[Mapping[tuple[str, str], str]] = {
    ("gold", "none"): "mask everything",
    ("gold", "all"): "mask nothing",
    ("gold", "random"): "choose at random",
    ("bilstm-crf", "gold"): "told what is needed",
}
"""Reference systems to compare a figure with: (model, strategy) to what they do."""


def summarise(
    rows: Sequence[Row], ran: Collection[tuple[str, str, str]], tasks: Iterable[Task]
) -> str:
    """Return a table for each task and a summary of masking in words.

    `rows` are those of the leaderboard; `ran` is model, strategy and dataset of each run.
    """
    own = [
        row
        for row in rows
        if row.source is Source.RUN and (row.model, row.strategy, row.dataset) in ran
    ]
    datasets = list(dict.fromkeys(dataset for _, _, dataset in ran))
    own.sort(key=lambda row: datasets.index(row.dataset))
    parts = []
    for task in tasks:
        shown = [row for row in own if row.task is task]
        if shown:
            of_task = [row for row in rows if row.task is task and row.dataset in datasets]
            parts.append(f"{task} ({_HEADLINES[task]})\n\n{_table(shown, of_task, datasets)}\n")
    if words := _masking_in_words(own, rows):
        parts.append(words + "\n")
    return "\n".join(parts)


def _table(own: Sequence[Row], rows: Sequence[Row], datasets: Sequence[str]) -> str:
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    for row in own:
        lines[_name(row)][row.dataset] = _cell(row)
    for row in rows:
        role = _LADDER.get((row.model, row.strategy))
        if row.source is Source.REFERENCE and role is not None and row.task is not Task.DETECTION:
            lines[f"{role} ({_name(row)})"][row.dataset] = _cell(row)
        if row.source is Source.HUMAN:
            lines["people, each alone"][row.dataset] = _cell(row)
        if row.source is Source.READING:
            lines["blind readers (a large language model)"][row.dataset] = _cell(row)
    published = [row for row in rows if row.source is Source.PUBLISHED and not row.oracle]
    # The best of each dataset comes last, and stays.
    for row in sorted(published, key=lambda row: row.sort_figure):
        who = "people" if row.model == PEOPLE else "best published"
        lines[f"{who}, on the paper's data"][row.dataset] = _cell(row)
    table = [
        [name[:44], *(cells.get(dataset, "") for dataset in datasets)]
        for name, cells in lines.items()
    ]
    align = ("left", *("right" for _ in datasets))
    return tabulate(
        table, headers=["", *datasets], colalign=align, tablefmt="simple", disable_numparse=True
    )


def _name(row: Row) -> str:
    name = row.model if row.task is Task.DETECTION else f"{row.model}+{row.strategy}"
    return markdown(f"{name}, oracle" if row.source is Source.RUN and row.oracle else name)


def _cell(row: Row) -> str:
    if row.headline is not None:
        text = f"{row.headline:.3f}"
    else:
        text = "-" if row.substitute is None else f"({row.substitute:.3f})"
    partial = row.source.is_system and not row.complete
    return f"{text} {row.scored}/{row.gold}" if partial else text


def _protection_in_words(masking: Sequence[Row]) -> str:
    if all(row.failed == 1 for row in masking):
        return "No sample has a usable answer."
    leaked = _by_set(masking, lambda row: 1 - row.metrics["protection"])
    hidden = _by_set(masking, lambda row: 1 - row.metrics["retention"])
    sentences = [
        f"Of the values that a query does not need, {leaked} can still be read.",
        f"Of those that it needs, {hidden} are hidden.",
    ]
    if any(row.failed for row in masking):
        failed = _by_set(masking, lambda row: row.failed, digits=1)
        sentences.append(
            f"{failed} of the samples have no usable answer: their values count as both."
        )
    return "\n".join(fill(each, 100, break_on_hyphens=False) for each in sentences)


def _by_set(masking: Sequence[Row], share: Callable[[Row], float], digits: int = 0) -> str:
    """Return the share of each set: a mean over sets would give the small ones too much weight."""
    shares = [f"{share(row):.{digits}%}" for row in masking]
    if len(shares) == 1:
        return shares[0]
    named = [f"{text} ({row.dataset})" for text, row in zip(shares, masking, strict=True)]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _masking_in_words(own: Sequence[Row], rows: Sequence[Row]) -> str:
    """Describe the masking of a single system; empty if none or several were run."""
    masking = [row for row in own if row.task is Task.MASKING and row.headline is not None]
    if len({(row.model, row.strategy) for row in masking}) != 1:
        return ""
    first = _protection_in_words(masking)
    references = {
        (row.model, row.strategy): row.headline
        for row in rows
        if row.source is Source.REFERENCE
        and row.task is Task.MASKING
        and row.dataset == masking[0].dataset
    }
    random, told = references.get(("gold", "random")), references.get(("bilstm-crf", "gold"))
    if random is None or told is None:
        return first
    several = len({row.dataset for row in masking}) > 1
    where = f" on {masking[0].dataset}" if several else ""
    return (
        f"{first}\nH{where} is {masking[0].headline:.3f}: choosing at random gives "
        f"{random:.3f}, and being told what is needed {told:.3f}."
    )
