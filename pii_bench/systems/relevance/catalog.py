"""Relevance systems by name, and the fitting of their thresholds on dev with gold entities."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import read_native
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.files import sha256_of, write_whole
from pii_bench.systems import ENCODER
from pii_bench.systems.relevance.base import (
    THRESHOLDS,
    Constant,
    RandomChoice,
    ScoredSample,
    best_threshold,
    gold_candidates,
    macro_f1,
    read_thresholds,
    share_threshold,
)
from pii_bench.systems.relevance.embedding import (
    EmbeddingRelevance,
    MiniLmEncoder,
    WordLlamaEncoder,
)
from pii_bench.systems.relevance.keyword import KeywordRelevance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Relevance


WITHOUT_EXTRA: Final = ("random", "keyword", "embedding")
"""Systems whose threshold is fitted on dev, and that need no extra."""

FITTED: Final = (*WITHOUT_EXTRA, "embedding-minilm")
"""Systems whose threshold is fitted on dev."""

RELEVANCE: Final = ("all", "none", *FITTED, ENCODER)
"""Names of the relevance systems."""


def build_relevance(name: str) -> Relevance:
    """Build a relevance system; those of `FITTED` have the threshold stored in `THRESHOLDS`.

    Raises:
        UnknownNameError: there is no such system.
        MissingExtraError: a package that it needs is not installed.
        InputFileError: its threshold or its weights are missing or broken.
    """
    if name in {"all", "none"}:
        return Constant(name, 1.0 if name == "all" else 0.0)
    if name == ENCODER:
        from pii_bench.systems.encoder import EncoderScorer

        return EncoderScorer()
    if name not in FITTED:
        raise UnknownNameError("relevance system", name, RELEVANCE)
    stored = read_thresholds()
    if name not in stored:
        raise InputFileError(
            THRESHOLDS, f"has no threshold of {name!r}: run `pii-bench fit {name}`"
        )
    return _build_fitted(name, stored[name]["threshold"])


def _build_fitted(name: str, threshold: float) -> Relevance:
    match name:
        case "random":
            return RandomChoice(threshold)
        case "keyword":
            return KeywordRelevance(threshold)
        case "embedding":
            return EmbeddingRelevance(name, WordLlamaEncoder(), threshold)
        case "embedding-minilm":
            return EmbeddingRelevance(name, MiniLmEncoder(), threshold)
        case _:
            raise ValueError(f"{name!r} has no threshold to fit")


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted threshold, its macro F1, and the identity of the system without the threshold."""

    threshold: float
    f1: float
    identity: Mapping[str, str]


def fit(name: str, samples: Iterable[Sample]) -> Fit:
    """Fit the threshold of a system of `FITTED` on the samples of dev that have a query.

    Raises:
        MissingExtraError: a package that it needs is not installed.
        PiiBenchError: there is no sample with a query, or no candidate.
    """
    system = _build_fitted(name, 0.0)
    scored = [_score(system, sample) for sample in samples if sample.query]
    if not scored:
        raise PiiBenchError("dev must have samples with a query")
    threshold = share_threshold(scored) if name == "random" else best_threshold(scored)
    identity = {key: value for key, value in system.identity.items() if key != "threshold"}
    return Fit(threshold, macro_f1(scored, threshold), identity)


def fit_thresholds(
    names: Sequence[str], dev: Sequence[Path], path: Path = THRESHOLDS
) -> Mapping[str, Fit]:
    """Fit systems of `FITTED` on dev files and write their thresholds; keep those of others.

    Raises:
        UnknownNameError: there is no such system, or it has no threshold to fit.
        InputFileError: a file is missing or broken.
        ResultsError: the thresholds cannot be written.
        PiiBenchError: as for `fit`.
    """
    for name in names:
        if name not in FITTED:
            raise UnknownNameError(
                "relevance system", name, FITTED, among="those with a threshold to fit"
            )
    samples = [sample for file in dev for sample in read_native(file)]
    fits = {name: fit(name, samples) for name in names}
    hashes = {file.stem: sha256_of(file) for file in dev}
    stored = dict(read_thresholds(path)) if path.exists() else {}
    for name, fitted in fits.items():
        stored[name] = {
            "threshold": fitted.threshold,
            "dev_f1": round(fitted.f1, 4),
            "dev_sha256": hashes,
            **fitted.identity,
        }
    write_whole(path, json.dumps(stored, indent=2, sort_keys=True) + "\n")
    return fits


def _score(system: Relevance, sample: Sample) -> ScoredSample:
    candidates = gold_candidates(sample)
    return ScoredSample(
        texts=tuple(candidate.text for candidate in candidates),
        scores=tuple(system.scores(sample.query or "", sample.description, candidates)),
        needed=frozenset(need.text for need in sample.related),
    )
