"""The scores of many samples in little memory: a few hundred bytes each, not thousands."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, overload

from pii_bench.prompting.outcome import Status
from pii_bench.runs.evaluation import SampleScore
from pii_bench.scorer import PRF, Counts, MaskedTextScore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STATUSES = tuple(Status)


class CompactScores(Sequence[SampleScore]):
    """Scores of samples under one task, kept as columns of numbers.

    All have the metrics and the counts of the first.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._statuses = array("b")
        self._metrics: Mapping[str, array[float]] | None = None
        self._counts: Mapping[str, array[int]] | None = None
        self._texts = array("q")
        # Protection, retention, collateral and weighted protection; what is None is no number.
        self._left = array("d")

    def append(self, score: SampleScore) -> None:
        """Add the score of one more sample.

        Raises:
            KeyError: it lacks a metric of the first.
        """
        if self._metrics is None or self._counts is None:
            self._metrics = {name: array("d") for name in score.metrics}
            self._counts = {name: array("q") for name in score.counts}
        self._ids.append(score.id)
        self._statuses.append(_STATUSES.index(score.status))
        self._texts.extend((score.predicted, score.hallucinated))
        left = score.masked_text
        figures_left = (left.protection, left.retention, left.collateral) if left else (None,) * 3
        for figure in (*figures_left, score.weighted_protection):
            self._left.append(nan if figure is None else figure)
        for name, figures in self._metrics.items():
            metric = score.metrics[name]
            figures.extend((metric.precision, metric.recall, metric.f1))
        for name, numbers in self._counts.items():
            counts = score.counts[name]
            numbers.extend((counts.matched, counts.predicted, counts.gold))

    def __len__(self) -> int:
        return len(self._ids)

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

    def _score(self, place: int) -> SampleScore:
        of_three = slice(3 * place, 3 * place + 3)
        predicted, hallucinated = self._texts[2 * place : 2 * place + 2]
        metrics, counts = self._metrics or {}, self._counts or {}
        return SampleScore(
            id=self._ids[place],
            status=_STATUSES[self._statuses[place]],
            metrics={name: PRF(*figures[of_three]) for name, figures in metrics.items()},
            counts={name: Counts(*numbers[of_three]) for name, numbers in counts.items()},
            predicted=predicted,
            hallucinated=hallucinated,
            masked_text=self._masked_text(place),
            weighted_protection=_number(self._left[4 * place + 3]),
        )

    def _masked_text(self, place: int) -> MaskedTextScore | None:
        protection, retention, collateral = self._left[4 * place : 4 * place + 3]
        if isnan(protection):
            return None
        return MaskedTextScore(protection, retention, _number(collateral))


def _number(figure: float) -> float | None:
    return None if isnan(figure) else figure
