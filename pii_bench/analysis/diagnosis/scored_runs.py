"""The scores behind a stored run: relevance systems give them again, without any detector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.analysis.diagnosis.curve import ScoredCandidates
from pii_bench.errors import PiiBenchError
from pii_bench.scorer.locate import locator_of
from pii_bench.systems.base import GOLD
from pii_bench.systems.composed import RelevanceSystem
from pii_bench.systems.parts import GoldEntities, PredictedRelevance
from pii_bench.systems.relevance.base import Candidate, gold_candidates
from pii_bench.systems.relevance.catalog import FITTED, build_relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.stored import Run
    from pii_bench.runs.predictions.prediction import Prediction
    from pii_bench.systems.relevance.base import Relevance


@dataclass(frozen=True, slots=True)
class StoredCandidates:
    """The entities of stored detection answers, as candidates.

    A stored answer has texts, not places: a text counts where it first occurs, which may be
    before the place where the detector saw it. So a few scores differ from those of the run.

    Attributes:
        predictions: sample id to detection prediction.
    """

    predictions: Mapping[str, Prediction]

    def __call__(self, sample: Sample) -> list[Candidate]:
        """The candidates of a sample by place; none where it has no answer."""
        answer = self.predictions.get(sample.id)
        subjects = () if answer is None else answer.subjects or ()
        locator = locator_of(sample.description)
        candidates = [
            Candidate(text, pii_type, places[0][0] if places else 0)
            for subject in subjects
            for text, pii_type in subject
            for places in [locator.spans(text)]
        ]
        return sorted(candidates, key=lambda candidate: candidate.start)


def find_scores(
    runs: Iterable[Run],
) -> tuple[list[tuple[Run, ScoredCandidates]], list[str]]:
    """Find what gives the scores of runs: those of relevance systems with a fitted threshold.

    Returns:
        Runs with their scores; and the runs whose system cannot give the same scores today
        (not installed, or its threshold or weights have changed), each with the reason.
    """
    found: list[tuple[Run, ScoredCandidates]] = []
    left_out: list[str] = []
    built: dict[str, Relevance | PiiBenchError] = {}
    for run in runs:
        card = run.manifest.system
        detection = run.detection
        if card.prompt not in FITTED or detection is None:
            continue
        if card.prompt not in built:
            built[card.prompt] = _build(card.prompt)
        owner = f"the curve of {card.model}, {card.prompt} on {run.dataset.source}"
        match built[card.prompt]:
            case PiiBenchError() as error:
                left_out.append(f"{owner}: {error}")
            case relevance if _hash_of(relevance) != card.prompt_sha256:
                what = "its threshold or weights have changed since; run again"
                left_out.append(f"{owner}: {what}")
            case relevance:
                found.append((run, ScoredCandidates(relevance, _candidates(card.model, detection))))
    return found, left_out


def _build(name: str) -> Relevance | PiiBenchError:
    try:
        return build_relevance(name)
    except PiiBenchError as error:
        return error


def _hash_of(relevance: Relevance) -> str:
    """What the card of a run with this relevance says of it."""
    return RelevanceSystem(GoldEntities(), PredictedRelevance(relevance)).card.prompt_sha256


def _candidates(model: str, detection: Run) -> Callable[[Sample], list[Candidate]]:
    return gold_candidates if model == GOLD else StoredCandidates(detection.predictions)
