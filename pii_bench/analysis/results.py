"""All analyses of a results folder, and their CSV files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from pii_bench.analysis.agreement import (
    Agreement,
    Consistency,
    agreements,
    consistencies,
    transfers,
)
from pii_bench.analysis.means import (
    CurvePoint,
    Drop,
    Headline,
    OfReason,
    Tradeoff,
    by_reason,
    curves,
    drops,
    headlines,
    published_headlines,
    tradeoffs,
)
from pii_bench.analysis.recall import Share, shares
from pii_bench.analysis.robustness import Robustness, of_versions, robustness
from pii_bench.analysis.runs import BASE, CURVES, RunName, pooled
from pii_bench.escaping import csv_text
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.runs import EvaluatedRun
    from pii_bench.ranking.rows import Row

FOLDER: Final = "analysis"


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analyses of the runs of a folder; one field for each CSV file."""

    headlines: Sequence[Headline]
    curves: Sequence[CurvePoint]
    recall: Sequence[Share]
    drops: Sequence[Drop]
    reasons: Sequence[OfReason]
    robustness: Sequence[Robustness]
    consistency: Sequence[Consistency]
    agreement: Sequence[Agreement]
    transfers: Sequence[Agreement] = ()
    tradeoffs: Sequence[Tradeoff] = ()


def analyse(runs: Sequence[EvaluatedRun], published: Iterable[Row]) -> Analysis:
    """Analyse runs of single sets, and pools of them.

    Runs on perturbed samples are in `robustness` only.

    Raises:
        InputFileError: the table of published statistics is broken.
    """
    plain = [run for run in runs if not of_versions(run)]
    whole = [*plain, *pooled(plain, CURVES)]
    means = headlines([*plain, *pooled(plain, BASE)]) + published_headlines(published)
    systems = consistencies(means)
    return Analysis(
        headlines=means,
        curves=curves(whole),
        recall=shares(whole),
        drops=drops(means),
        reasons=by_reason(plain),
        robustness=robustness(runs),
        consistency=systems,
        agreement=agreements(systems),
        transfers=transfers(means),
        tradeoffs=tradeoffs(runs),
    )


def records(analysis: Analysis) -> list[dict[str, object]]:
    """Return the rows of all CSV files as dicts; `table` is the file's name without suffix."""
    return [
        {"table": name, **dict(zip(_header(kind), cells, strict=True))}
        for name, kind in _KINDS.items()
        for cells in map(_cells, getattr(analysis, name))
    ]


def to_csv(kind: type, results: Iterable[object]) -> str:
    """Return results of one kind as CSV, with four decimals; None is an empty cell.

    The run's name comes first, then the other fields, then the rates that follow from them.
    """
    return csv_text(_header(kind), map(_cells, results))


def write_csvs(analysis: Analysis, results: Path) -> list[Path]:
    """Write `<results>/analysis/<name>.csv` for each field of an analysis.

    Raises:
        ResultsError: a file cannot be written.
    """
    paths = []
    for name, kind in _KINDS.items():
        path = results / FOLDER / f"{name}.csv"
        write_whole(path, to_csv(kind, getattr(analysis, name)))
        paths.append(path)
    return paths


_KINDS: Final[Mapping[str, type]] = {
    "headlines": Headline,
    "curves": CurvePoint,
    "recall": Share,
    "drops": Drop,
    "reasons": OfReason,
    "robustness": Robustness,
    "consistency": Consistency,
    "agreement": Agreement,
    "transfers": Agreement,
    "tradeoffs": Tradeoff,
}
_RATES: Final[Mapping[type, tuple[str, ...]]] = {
    Share: ("precision", "recall", "f1"),
    Drop: ("drop", "relative"),
    Robustness: ("drop",),
    Consistency: ("pcs",),
}


def _header(kind: type) -> list[str]:
    names = [field.name for field in fields(kind)]
    if names[0] == "run":
        names[:1] = [field.name for field in fields(RunName)]
    return [*names, *_RATES.get(kind, ())]


def _cells(result: Any) -> list[object]:
    """Return the values of a result by column."""
    record = asdict(result)
    run = record.pop("run", {})
    rates = [getattr(result, name) for name in _RATES.get(type(result), ())]
    return [*run.values(), *record.values(), *rates]
