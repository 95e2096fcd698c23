"""The scores of many samples as one table of numbers: little memory, and easily kept in a file."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING, overload

from pii_bench.runs.evaluation import SampleScore
from pii_bench.scorer import PRF, Counts, MaskedTextScore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.prompting.outcome import Status

_OTHERS = 6
"""Texts predicted and hallucinated, and four figures of what is left of a text."""


@dataclass(slots=True, eq=False, repr=False)
class CompactScores(Sequence[SampleScore]):
    """Scores of samples under one task; all have the metrics and the counts of the first.

    Attributes:
        metrics: their names.
        counts: likewise.
        ids: of the samples.
        statuses: of the samples.
        numbers: a row for each sample, one behind the other: three of each metric, three of each
            of the counts, and `_OTHERS`; what is None is no number.
    """

    metrics: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))

    def append(self, score: SampleScore) -> None:
        """Add the score of one more sample.

        Raises:
            KeyError: it lacks a metric of the first.
        """
        if not self.ids:
            self.metrics, self.counts = [*score.metrics], [*score.counts]
        row: list[float | None] = []
        for name in self.metrics:
            metric = score.metrics[name]
            row += metric.precision, metric.recall, metric.f1
        for name in self.counts:
            counts = score.counts[name]
            row += counts.matched, counts.predicted, counts.gold
        left = score.masked_text
        row += score.predicted, score.hallucinated
        row += (left.protection, left.retention, left.collateral) if left else (None,) * 3
        row.append(score.weighted_protection)
        self.ids.append(score.id)
        self.statuses.append(score.status)
        self.numbers.extend(nan if number is None else number for number in row)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[SampleScore]:
        return map(self._score, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> SampleScore: ...
    @overload
    def __getitem__(self, place: slice) -> list[SampleScore]: ...
    def __getitem__(self, place: int | slice) -> SampleScore | list[SampleScore]:
        if isinstance(place, slice):
            return [self._score(each) for each in range(len(self))[place]]
        return self._score(range(len(self))[place])

    @property
    def width(self) -> int:
        """Numbers of a sample."""
        return 3 * (len(self.metrics) + len(self.counts)) + _OTHERS

    def _score(self, place: int) -> SampleScore:
        row = self.numbers[self.width * place : self.width * (place + 1)]
        threes = [row[at : at + 3] for at in range(0, len(row) - _OTHERS, 3)]
        figures, sums = threes[: len(self.metrics)], threes[len(self.metrics) :]
        predicted, hallucinated = map(int, row[-_OTHERS:-4])
        protection, retention, collateral, weighted = map(_number, row[-4:])
        left = None
        if protection is not None and retention is not None:
            left = MaskedTextScore(protection, retention, collateral)
        return SampleScore(
            id=self.ids[place],
            status=self.statuses[place],
            metrics={name: PRF(*own) for name, own in zip(self.metrics, figures, strict=True)},
            counts={
                name: Counts(*map(int, own)) for name, own in zip(self.counts, sums, strict=True)
            },
            predicted=predicted,
            hallucinated=hallucinated,
            masked_text=left,
            weighted_protection=weighted,
        )


def _number(figure: float) -> float | None:
    return None if isnan(figure) else figure
