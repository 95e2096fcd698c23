"""The blind readers of our sets as rows: a ceiling next to the paper's human one."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.readings import READINGS, load_readings
from pii_bench.ranking.rows import Row
from pii_bench.ranking.source import Source
from pii_bench.ranking.statistics.scores import Scores
from pii_bench.scorer import macro, score_query_related
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.scorer import PRF

READERS: Final = "readers"
_STRATEGY: Final = "blind"


def reading_rows(datasets: Iterable[str], folder: Path = READINGS) -> list[Row]:
    """A row for each dataset of ours that was read: F1 of readers against gold, on first readings.

    The gold is that of the version that was read, before anything was mended. A sample has the
    mean over its readings.

    Raises:
        InputFileError: a file of readings is broken.
    """
    rows = []
    for dataset in sorted(DATASETS.keys() & set(datasets)):
        by_sample: dict[str, list[PRF]] = {}
        for reading in load_readings(dataset, folder):
            if reading.round == 1:
                score = score_query_related(reading.needed, reading.gold).exact
                by_sample.setdefault(reading.id, []).append(score)
        if by_sample:
            rows.append(_row(dataset, by_sample))
    return rows


def _row(dataset: str, by_sample: dict[str, list[PRF]]) -> Row:
    mean = macro([score for scores in by_sample.values() for score in scores])
    ids = tuple(by_sample)
    f1 = Scores(ids, ids, tuple(fmean(s.f1 for s in own) for own in by_sample.values()))
    count = sum(map(len, by_sample.values()))
    return Row(
        source=Source.READING,
        model=READERS,
        strategy=_STRATEGY,
        dataset=dataset,
        task=Task.QUERY_RELATED,
        oracle=False,
        metrics=(
            {"f1": mean.f1, "precision": mean.precision, "recall": mean.recall} if mean else {}
        ),
        scored=len(ids),
        gold=len(ids),
        note=f"a large language model, blind to gold: {count} first readings",
        by_sample={"f1": f1},
    )
