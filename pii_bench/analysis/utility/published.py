"""The paper's figures on privacy and utility, as rows."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.figures import Mean, Means, UtilityRow
from pii_bench.errors import InputFileError
from pii_bench.ranking.published import PUBLISHED
from pii_bench.ranking.source import Source

if TYPE_CHECKING:
    from pathlib import Path

_TASK: Final = "privacy_utility"
_METRICS: Final = ("privacy", "utility", "balanced")
_MEASURE: Final = "not said"


def published_figures(path: Path = PUBLISHED) -> list[UtilityRow]:
    """One row per condition of the paper, in the file's order.

    Raises:
        InputFileError: absent, or a figure that is no number between 0 and 1.
    """
    figures: dict[tuple[str, str, str, str], dict[str, float]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for record in csv.DictReader(file):
                if record["task"] != _TASK:
                    continue
                metric, value = record["metric"], float(record["value"])
                if metric not in _METRICS or not 0 <= value <= 1:
                    raise ValueError(f"{metric} = {value}")
                key = record["dataset"], record["model"], record["strategy"], record["table"]
                figures.setdefault(key, {})[metric] = value
    except (OSError, KeyError, ValueError) as error:
        raise InputFileError(path, f"no table of published figures: {error}") from error
    return [
        UtilityRow(
            source=Source.PUBLISHED,
            dataset=dataset,
            condition=condition,
            oracle=False,
            answerer=answerer,
            measure=_MEASURE,
            means=Means(
                privacy=Mean(values.get("privacy")),
                utility=Mean(values.get("utility")),
                balanced=Mean(values.get("balanced")),
            ),
            note=f"paper, table {table}",
        )
        for (dataset, answerer, condition, table), values in figures.items()
    ]
