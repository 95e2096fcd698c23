"""Relevance systems by name, and the fitting of their thresholds on dev with gold entities."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

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
    """A system whose threshold is fitted on dev.

    Attributes:
        build: makes it with a threshold.
        rule: finds the threshold.
        extra: whether it needs what an optional extra installs.
    """

    build: Callable[[float], Relevance]
    rule: Callable[[Sequence[ScoredSample]], float] = best_threshold
    extra: bool = False


FITTED: Final[Mapping[str, Fitted]] = MappingProxyType(
    {
        "random": Fitted(RandomChoice, share_threshold),
        "keyword": Fitted(KeywordRelevance),
        "embedding": Fitted(
            lambda threshold: EmbeddingRelevance("embedding", WordLlamaEncoder(), threshold)
        ),
        "embedding-minilm": Fitted(
            lambda threshold: EmbeddingRelevance("embedding-minilm", MiniLmEncoder(), threshold),
            extra=True,
        ),
    }
)


def build_relevance(name: str) -> Relevance:
    """Build a system of `RELEVANCE`.

    Raises:
        UnknownNameError: no such system.
        MissingExtraError: what it needs is not installed.
        InputFileError: its threshold or its weights are missing or broken.
    """
    if name not in RELEVANCE:
        raise UnknownNameError("relevance system", name, RELEVANCE)
    return RELEVANCE[name]()


def _with_stored_threshold(name: str) -> Relevance:
    stored = read_thresholds()
    if name not in stored:
        raise InputFileError(THRESHOLDS, f"holds no threshold of {name!r}")
    return FITTED[name].build(stored[name]["threshold"])


def _of_encoder() -> Relevance:
    from pii_bench.systems.encoder import EncoderScorer

    return EncoderScorer()


RELEVANCE: Final[Mapping[str, Callable[[], Relevance]]] = MappingProxyType(
    {
        "all": partial(Constant, "all", 1.0),
        "none": partial(Constant, "none", 0.0),
        **{name: partial(_with_stored_threshold, name) for name in FITTED},
        ENCODER: _of_encoder,
    }
)
"""By name, what makes the system. Those of `FITTED` take their threshold from `THRESHOLDS`."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted threshold.

    Attributes:
        threshold: the least score of a needed entity.
        f1: macro F1 on the samples that it was fitted on.
        identity: of the system, but for its threshold.
    """

    threshold: float
    f1: float
    identity: Mapping[str, str]


def fit(name: str, samples: Iterable[Sample]) -> Fit:
    """Fit the threshold of a system of `FITTED` on samples of dev that have a query.

    Raises:
        UnknownNameError: no such system, or it has nothing to fit.
        MissingExtraError: what it needs is not installed.
        PiiBenchError: there is nothing to fit on.
    """
    _require_fitted(name)
    system = FITTED[name].build(0.0)
    scored = [_score(system, sample) for sample in samples if sample.query]
    if not scored:
        raise PiiBenchError("dev must have samples with a query")
    threshold = FITTED[name].rule(scored)
    identity = {key: value for key, value in system.identity.items() if key != "threshold"}
    return Fit(threshold, macro_f1(scored, threshold), identity)


def fit_thresholds(
    names: Sequence[str], dev: Sequence[Path], path: Path = THRESHOLDS
) -> Mapping[str, Fit]:
    """Fit systems of `FITTED` on dev files and write their thresholds; keep those of others.

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


def _score(system: Relevance, sample: Sample) -> ScoredSample:
    candidates = gold_candidates(sample)
    return ScoredSample(
        texts=tuple(candidate.text for candidate in candidates),
        scores=tuple(system.scores(sample.query or "", sample.description, candidates)),
        needed=frozenset(need.text for need in sample.related),
    )


def _to_record(fitted: Fit, hashes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "threshold": fitted.threshold,
        "dev_f1": round(fitted.f1, 4),
        "dev_sha256": dict(hashes),
        **fitted.identity,
    }
