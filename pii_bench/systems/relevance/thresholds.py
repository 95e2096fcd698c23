"""Thresholds: how one is found on dev, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.resources import DATA
from pii_bench.scorer.measures import Counts
from pii_bench.scorer.text import text_set
from pii_bench.systems.relevance.base import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

THRESHOLDS: Final = DATA / "models" / "relevance" / "thresholds.json"


@dataclass(frozen=True, slots=True)
class Scored:
    """The candidates of one sample with their scores.

    Attributes:
        texts: of the candidates.
        scores: one for each.
        needed: texts of the related entities.
    """

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    needed: frozenset[str]

    def f1(self, threshold: float) -> float:
        """Exact F1 of those that reach a threshold (scorer, "Counts")."""
        chosen = (t for t, score in zip(self.texts, self.scores, strict=True) if score >= threshold)
        return Counts.of(text_set(chosen), text_set(self.needed)).f1


def macro_f1(scored: Sequence[Scored], threshold: float) -> float:
    """Mean F1 over at least one sample."""
    return fsum(sample.f1(threshold) for sample in scored) / len(scored)


def best_threshold(scored: Sequence[Scored]) -> float:
    """The threshold with the largest macro F1, the highest of equals.

    It lies halfway between two scores, so that rounding moves no candidate across it.

    Raises:
        PiiBenchError: no candidate may be chosen at all.
    """
    f1 = [sample.f1(float("inf")) for sample in scored]
    total, best, highest = fsum(f1), -1.0, 0.0
    levels = _levels(scored)
    # From the highest score down: a score that is let in changes its own samples alone.
    for (score, places), (below, _) in zip(levels, [*levels[1:], levels[-1]], strict=True):
        for place in places:
            new = scored[place].f1(score)
            total += new - f1[place]
            f1[place] = new
        if total > best + 1e-9:
            best, highest = total, (score + below) / 2
    return highest


def share_threshold(scored: Sequence[Scored]) -> float:
    """For scores spread evenly from 0 to 1: lets in the share of candidates that is needed.

    Raises:
        PiiBenchError: no candidate may be chosen at all.
    """
    needed = [
        text in sample.needed
        for sample in scored
        for text, score in zip(sample.texts, sample.scores, strict=True)
        if score > NEVER
    ]
    if not needed:
        raise _nothing_to_choose()
    return 1 - sum(needed) / len(needed)


def _levels(scored: Sequence[Scored]) -> list[tuple[float, set[int]]]:
    """Every score, highest first, with the places of the samples that hold it."""
    held = sorted(
        (
            (score, place)
            for place, sample in enumerate(scored)
            for score in sample.scores
            if score > NEVER
        ),
        reverse=True,
    )
    if not held:
        raise _nothing_to_choose()
    return [
        (score, {place for _, place in group})
        for score, group in groupby(held, key=lambda item: item[0])
    ]


def _nothing_to_choose() -> PiiBenchError:
    return PiiBenchError("dev must have candidates that are no person's name")


def read_thresholds(path: Path = THRESHOLDS) -> Mapping[str, Mapping[str, Any]]:
    """System to what was fitted for it: at least `threshold`.

    Raises:
        InputFileError: the file cannot be read or is not of this form.
    """
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, RecursionError):
        raise InputFileError(path, "not valid JSON") from None
    if not isinstance(record, dict) or not all(map(_is_fitted, record.values())):
        raise InputFileError(path, "must be an object of objects, each with a number 'threshold'")
    return record


def _is_fitted(value: object) -> bool:
    return isinstance(value, dict) and type(value.get("threshold")) is float
