"""Figures as CSV and Markdown; none of the files holds a text."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.figures import Mean, Missing, SampleFigures, UtilityRow
from pii_bench.analysis.utility.stored import FOLDER
from pii_bench.escaping import csv_text, markdown, markdown_code, markdown_table
from pii_bench.files import write_whole
from pii_bench.ranking.rows import source_marks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.collect import Measured

_INTRODUCTION: Final = """\
# Privacy and utility

P: the share of the occurrences of E that the masked text no longer holds; one that is masked in
part is gone. U: how much of the answer to the text as it is the answer to the masked text keeps, 0
to 1. By cosine: that of the embedded answers, below 0 taken as 0; it tells how alike answers are,
not whether they are right. By a judge: (m - 1) / (u - 1) of its ratings from 1 to 10, m of the
masked and u of the unmasked answer, each the mean over both orders, and 1 where m is not below u.
B: the weighted mean of both, per sample. Figures are means over the samples that have them, whose
number follows; a failed answer or verdict is missing and never 0.

`oracle` rows are told gold by what masks. `incomplete` rows lack samples. `published` rows are the
paper's, on data that was never released and by a utility that it does not name: for orientation,
not for comparison.
"""

_COLUMNS: Final = (
    *("source", "dataset", "condition", "oracle", "answerer", "measure", "weight"),
    *("privacy", "utility", "balanced", "n_privacy", "n_utility", "n_balanced"),
    *("samples", "asked", *Missing, "rating_masked", "rating_unmasked", "signature", "note"),
)
_REASONS: Final = {
    Missing.NO_MASKING: "without masking",
    Missing.NO_ANSWER: "without answer",
    Missing.NO_VERDICT: "without verdict",
    Missing.UNPARSED: "verdict unparsed",
}


def to_csv(rows: Sequence[UtilityRow]) -> str:
    """One line per row, four decimals; what is unknown is empty."""
    flat = map(record_of, rows)
    return csv_text(_COLUMNS, ([row[name] for name in _COLUMNS] for row in flat))


def samples_to_csv(measured: Sequence[Measured]) -> str:
    """One line per row and sample."""
    lines = [_sample(row, figures) for row, samples in measured for figures in samples]
    return csv_text(_SAMPLE_COLUMNS, ([line[name] for name in _SAMPLE_COLUMNS] for line in lines))


def to_markdown(rows: Sequence[UtilityRow]) -> str:
    """One table per dataset, the paper's last, then the signatures."""
    parts = [_INTRODUCTION]
    for dataset, group in groupby(rows, key=lambda row: row.dataset):
        parts.append(f"## {markdown(dataset)}\n\n{to_table(list(group))}\n")
    if signed := [row.signature for row in rows if row.signature]:
        parts.append(
            "## Signatures\n\n" + "\n".join(f"- {markdown_code(line)}" for line in signed) + "\n"
        )
    return "\n".join(parts)


def to_table(rows: Sequence[UtilityRow]) -> str:
    """The Markdown table of some rows."""
    header = ("Masked", "Answerer", "U by", "P", "U", "B", "Asked", "Missing", "Source")
    lines = [
        (
            row.condition,
            row.answerer,
            row.measure,
            *(_figure(mean) for mean in _means(row)),
            "" if row.asked is None else f"{row.asked}/{row.samples}",
            _missing(row),
            ", ".join(source_marks(row)),
        )
        for row in rows
    ]
    return markdown_table(header, lines)


def write_utility(
    measured: Sequence[Measured], published: Sequence[UtilityRow], results: Path
) -> tuple[Path, Path, Path]:
    """Write `utility.csv`, `utility.md` and `samples.csv` into `<results>/utility`.

    Raises:
        ResultsError: they cannot be written.
    """
    folder = results / FOLDER
    table, page, samples = (folder / name for name in ("utility.csv", "utility.md", "samples.csv"))
    rows = [*(row for row, _ in measured), *published]
    write_whole(table, to_csv(rows))
    write_whole(page, to_markdown(rows))
    write_whole(samples, samples_to_csv(measured))
    return table, page, samples


_SAMPLE_COLUMNS: Final = (
    *("dataset", "condition", "answerer", "measure", "id", "privacy", "utility", "balanced"),
    *("missing", "rating_masked", "rating_unmasked"),
)


def record_of(row: UtilityRow) -> dict[str, object]:
    """A row as one record, the columns of the CSV file by name."""
    privacy, utility, balanced = _means(row)
    masked, unmasked = row.means.ratings or (None, None)
    return {
        "source": row.source,
        "dataset": row.dataset,
        "condition": row.condition,
        "oracle": row.oracle,
        "answerer": row.answerer,
        "measure": row.measure,
        "weight": row.weight,
        "privacy": privacy.value,
        "utility": utility.value,
        "balanced": balanced.value,
        "n_privacy": privacy.samples,
        "n_utility": utility.samples,
        "n_balanced": balanced.samples,
        "samples": row.samples,
        "asked": row.asked,
        **{
            str(why): None if row.asked is None else row.means.missing.get(why, 0)
            for why in Missing
        },
        "rating_masked": masked,
        "rating_unmasked": unmasked,
        "signature": row.signature,
        "note": row.note,
    }


def _sample(row: UtilityRow, figures: SampleFigures) -> dict[str, object]:
    ratings = figures.ratings
    return {
        "dataset": row.dataset,
        "condition": row.condition,
        "answerer": row.answerer,
        "measure": row.measure,
        "id": figures.id,
        "privacy": figures.privacy,
        "utility": figures.utility,
        "balanced": figures.balanced(row.weight),
        "missing": figures.missing,
        "rating_masked": ratings.masked if ratings else None,
        "rating_unmasked": ratings.unmasked if ratings else None,
    }


def _means(row: UtilityRow) -> tuple[Mean, Mean, Mean]:
    return row.means.privacy, row.means.utility, row.means.balanced


def _figure(mean: Mean) -> str:
    if mean.value is None:
        return "-"
    return f"{mean.value:.3f}" + ("" if mean.samples is None else f" ({mean.samples})")


def _missing(row: UtilityRow) -> str:
    return ", ".join(f"{count} {_REASONS[why]}" for why, count in sorted(row.means.missing.items()))
