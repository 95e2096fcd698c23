"""Fits the thresholds of relevance systems on dev, with gold entities as candidates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.checksums import sha256_of
from pii_bench.datasets.sample import read_native
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.files import write_whole
from pii_bench.systems.relevance.base import gold_candidates
from pii_bench.systems.relevance.catalog import FITTED
from pii_bench.systems.relevance.thresholds import (
    THRESHOLDS,
    Scored,
    macro_f1,
    read_thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Relevance


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted threshold.

    Attributes:
        threshold: the least score of a needed entity.
        f1: macro F1 on the samples that it was fitted on.
        identity: of the system with that threshold.
    """

    threshold: float
    f1: float
    identity: Mapping[str, str]


def fit(name: str, samples: Iterable[Sample]) -> Fit:
    """Fit the threshold of a system.

    Args:
        name: of `FITTED`.
        samples: of dev; those without a query do not count.

    Raises:
        UnknownNameError: no such system, or it has nothing to fit.
        MissingExtraError: what it needs is not installed.
        PiiBenchError: there is nothing to fit on.
    """
    _require_fitted(name)
    system = FITTED[name].build(0.0)
    scored = [_score(system, sample, sample.query) for sample in samples if sample.query]
    if not scored:
        raise PiiBenchError("dev must have samples with a query")
    threshold = FITTED[name].rule(scored)
    identity = {**system.identity, "threshold": repr(threshold)}
    return Fit(threshold, macro_f1(scored, threshold), identity)


def fit_thresholds(
    names: Sequence[str], dev: Sequence[Path], path: Path = THRESHOLDS
) -> Mapping[str, Fit]:
    """Fit systems on dev files and keep the thresholds; those of other systems stay.

    Args:
        names: of `FITTED`.
        dev: dataset files.
        path: of the thresholds, made where there is none.

    Raises:
        InputFileError: a file is missing or broken.
        ResultsError: the thresholds cannot be written.
        PiiBenchError: as `fit`.
    """
    for name in names:
        _require_fitted(name)
    samples = [sample for file in dev for sample in read_native(file)]
    fits = {name: fit(name, samples) for name in names}
    hashes = {file.stem: sha256_of(file) for file in dev}
    kept = dict(read_thresholds(path)) if path.exists() else {}
    kept |= {name: _to_record(fitted, hashes) for name, fitted in fits.items()}
    write_whole(path, json.dumps(kept, indent=2, sort_keys=True) + "\n")
    return fits


def _require_fitted(name: str) -> None:
    if name not in FITTED:
        raise UnknownNameError("relevance system with a threshold to fit", name, FITTED)


def _score(system: Relevance, sample: Sample, query: str) -> Scored:
    candidates = gold_candidates(sample)
    return Scored(
        texts=tuple(candidate.text for candidate in candidates),
        scores=tuple(system.scores(query, sample.description, candidates)),
        needed=frozenset(need.text for need in sample.related),
    )


def _to_record(fitted: Fit, hashes: Mapping[str, str]) -> dict[str, Any]:
    identity = {key: value for key, value in fitted.identity.items() if key != "threshold"}
    return {
        "threshold": fitted.threshold,
        "dev_f1": round(fitted.f1, 4),
        "dev_sha256": dict(hashes),
        **identity,
    }
