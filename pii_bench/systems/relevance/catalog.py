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
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Relevance


@dataclass(frozen=True, slots=True)
class Fitted:
    """A system whose threshold is fitted on dev, by a rule; `extra` if it needs an extra."""

    build: Callable[[float], Relevance]
    rule: Callable[[Sequence[ScoredSample]], float] = best_threshold
    extra: bool = False


FITTED: Final[Mapping[str, Fitted]] = {
    "random": Fitted(RandomChoice, share_threshold),
    "keyword": Fitted(KeywordRelevance),
    "embedding": Fitted(lambda least: EmbeddingRelevance("embedding", WordLlamaEncoder(), least)),
    "embedding-minilm": Fitted(
        lambda least: EmbeddingRelevance("embedding-minilm", MiniLmEncoder(), least), extra=True
    ),
}

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
    return FITTED[name].build(stored[name]["threshold"])


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
    system = FITTED[name].build(0.0)
    scored = [_score(system, sample) for sample in samples if sample.query]
    if not scored:
        raise PiiBenchError("dev must have samples with a query")
    threshold = FITTED[name].rule(scored)
    identity = {key: value for key, value in system.identity.items() if key != "threshold"}
    return Fit(threshold, macro_f1(scored, threshold), identity)


def fit_thresholds(names: Sequence[str], dev: Sequence[Path], path: Path) -> Mapping[str, Fit]:
    """Fit systems of `FITTED` on dev files and write their thresholds; keep those of others.

    Raises:
        InputFileError: a file is missing or broken.
        ResultsError: the thresholds cannot be written.
        UnknownNameError: there is no such system, or it has no threshold to fit.
        MissingExtraError, PiiBenchError: as for `fit`.
    """
    for name in names:
        if name not in FITTED:
            among = "those with a threshold to fit"
            raise UnknownNameError("relevance system", name, FITTED, among=among)
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
