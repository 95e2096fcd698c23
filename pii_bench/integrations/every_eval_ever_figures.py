"""Metrics and sample lines in the format of Every Eval Ever 0.3.0."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.catalog import DATASETS
from pii_bench.integrations.questions import sample_metrics
from pii_bench.models.catalog import is_replay
from pii_bench.prompting.parsing.answers import PARSER
from pii_bench.scorer import normalise
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.evaluation import Evaluation, SampleScore
    from pii_bench.systems.predictions import Prediction

WITHHELD: Final = "[withheld]"
"""Replaces an input that must not be published; the schema requires a text."""

_COMMON: Final = frozenset({"f1", "precision", "recall"})
"""Columns that other projects define in the same way; the ids of others are in our namespace."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the leaderboard; all values are from 0 to 1."""

    name: str
    kind: str
    description: str
    lower_is_better: bool = False

    def document(self, column: str) -> dict[str, Any]:
        """Return the object `metric_config`."""
        return {
            "evaluation_description": self.description,
            "metric_id": column if column in _COMMON else f"pii_bench.{column}",
            "metric_name": self.name,
            "metric_kind": self.kind,
            "metric_unit": "proportion",
            "lower_is_better": self.lower_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        }


METRICS: Final[Mapping[str, Metric]] = {
    "strict_f1": Metric(
        "Strict-F1",
        "f1",
        "F1 over text and type, person by person under the best matching; mean over samples.",
    ),
    "ent_f1": Metric(
        "Ent-F1",
        "f1",
        "F1 over the texts of all people together, types ignored; mean over samples.",
    ),
    "f1": Metric("F1", "f1", "F1 over texts; mean over samples."),
    "rouge_l_f": Metric(
        "RougeL-F",
        "rouge",
        "F1 with the longest common subsequence instead of equality; mean over samples.",
    ),
    "precision": Metric(
        "Precision", "precision", "Precision of the headline figure; mean over samples."
    ),
    "recall": Metric("Recall", "recall", "Recall of the headline figure; mean over samples."),
    "ent_matched_f1": Metric(
        "Ent-F1, matched",
        "f1",
        "F1 over texts, person by person under the best matching; mean over samples.",
    ),
    "micro_f1": Metric(
        "F1, micro", "f1", "The headline F1 of counts that are summed over all samples."
    ),
    "micro_ent_f1": Metric(
        "Ent-F1, micro", "f1", "Ent-F1 of counts that are summed over all samples."
    ),
    "hallucination_rate": Metric(
        "Hallucination rate",
        "rate",
        "Share of the predicted texts that are not in the description.",
        lower_is_better=True,
    ),
    "protection": Metric(
        "Protection",
        "share",
        "Share of the texts that the query does not need of which the masked text shows no "
        "character; mean over samples.",
    ),
    "retention": Metric(
        "Retention",
        "share",
        "Share of the texts that the query needs of which the masked text shows an occurrence "
        "in full; mean over samples.",
    ),
    "collateral": Metric(
        "Collateral",
        "share",
        "Share of the characters that are no PII and are masked; mean over samples with a "
        "masked text.",
        lower_is_better=True,
    ),
    "h": Metric(
        "H", "harmonic_mean", "Harmonic mean of the mean protection and the mean retention."
    ),
    "weighted_protection": Metric(
        "Protection, weighted",
        "share",
        "Protection where each text weighs as much as the tier of its sensitivity, 1 to 3; "
        "mean over samples.",
    ),
    **{
        f"leak_{name}": Metric(
            f"Leak, {manner}",
            "share",
            f"Share of all texts not needed that a rewriting tells {manner}.",
            lower_is_better=True,
        )
        for name, manner in (
            ("readable", "as written"),
            ("restated", "in another form"),
            ("part", "in part"),
        )
    },
}
"""By column of the leaderboard."""


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """One task of a run.

    Attributes:
        row: its row of the leaderboard.
        predictions: by sample id.
        completions: by sample id, in order; for masking, those of both parts.
    """

    row: Row
    dataset: Dataset
    evaluation: Evaluation
    predictions: Mapping[str, Prediction]
    completions: Mapping[str, Sequence[Completion]]

    @property
    def evaluation_name(self) -> str:
        """`pii_bench.<dataset>.<task>`."""
        return f"pii_bench.{self.row.dataset}.{self.row.task}"

    def result_id(self, evaluation_id: str, metric: str) -> str:
        """Return the id that links a score to its samples' lines."""
        return f"{evaluation_id}#{self.row.task}.{metric}"

    @property
    def shows_inputs(self) -> bool:
        """Whether the dataset ships with the package, so that its texts are public."""
        return self.dataset.source in DATASETS

    @property
    def shows_outputs(self) -> bool:
        """Whether the answers may be published: not those of a replay, whose origin is unknown."""
        return self.shows_inputs and not is_replay(self.row.model)


def sample_lines(
    scored: ScoredTask, head: Mapping[str, str], evaluation_id: str
) -> Iterator[dict[str, Any]]:
    """Yield a line per scored sample and metric of the row; all begin with `head`."""
    samples = {sample.id: sample for sample in scored.dataset.samples}
    for score in scored.evaluation.scores:
        shared = _shared_fields(scored, samples[score.id], score)
        for metric, value in sample_metrics(scored.row.task, score).items():
            if metric in scored.row.metrics:
                yield {
                    **head,
                    "evaluation_name": scored.evaluation_name,
                    "evaluation_result_id": scored.result_id(evaluation_id, metric),
                    **shared,
                    # Only a fully correct answer scores 1.
                    "evaluation": {"score": value, "is_correct": value == 1.0},
                }


def _shared_fields(scored: ScoredTask, sample: Sample, score: SampleScore) -> dict[str, Any]:
    """Return the fields that are the same for all metrics of a sample."""
    task, prediction = scored.row.task, scored.predictions[score.id]
    # Submitted predictions have no completions.
    completions = scored.completions.get(score.id, ())
    if scored.shows_inputs:
        raw = sample.description
        if task is not Task.DETECTION:
            raw = f"{sample.description}\n\n{sample.query}"
        source: dict[str, Any] = {"raw": raw, "reference": _reference(task, sample)}
        sample_hash = _hash(source)
    else:
        source, sample_hash = {"raw": WITHHELD, "reference": []}, None
    return {
        "sample_id": sample.id,
        "sample_hash": sample_hash,
        "interaction_type": "single_turn",
        "input": source,
        "output": _output(completions, task, prediction) if scored.shows_outputs else {"raw": []},
        "answer_attribution": _attribution(task, prediction) if scored.shows_outputs else [],
        "token_usage": _usage(completions),
        "error": None if score.status.answered else str(score.status),
        "metadata": {"task": str(task), "status": str(score.status)},
    }


def _reference(task: Task, sample: Sample) -> list[str]:
    related = [entity.text for entity in sample.related]
    match task:
        case Task.DETECTION:
            return [_json(subject) for subject in sample.gold_subjects]
        case Task.QUERY_RELATED:
            return related
        case Task.MASKING | Task.REWRITE:
            return _masked((entity.text for entity in sample.entities), related)


def _attribution(task: Task, prediction: Prediction) -> list[dict[str, Any]]:
    if not prediction.status.answered:
        return []
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": _json(_answer(task, prediction)),
            "extraction_method": PARSER,
            "is_terminal": True,
        }
    ]


def _answer(task: Task, prediction: Prediction) -> object:
    subjects, related = prediction.subjects or (), prediction.related or ()
    match task:
        case Task.DETECTION:
            return subjects
        case Task.QUERY_RELATED:
            return related
        case Task.MASKING:
            return _masked((text for subject in subjects for text, _ in subject), related)
        case Task.REWRITE:
            return prediction.rewritten


def _masked(texts: Iterable[str], related: Iterable[str]) -> list[str]:
    needed = {normalise(text) for text in related}
    return list(dict.fromkeys(text for text in texts if normalise(text) not in needed))


def _output(
    completions: Sequence[Completion], task: Task, prediction: Prediction
) -> dict[str, Any]:
    """Return a model's completions, or the answer of a system that is not a chat model."""
    raw = [completion.text for completion in completions]
    if not completions and prediction.status.answered:
        raw = [_json(_answer(task, prediction))]
    reasoning = [completion.reasoning for completion in completions if completion.reasoning]
    return {"raw": raw, "reasoning_trace": reasoning or None}


def _usage(completions: Sequence[Completion]) -> dict[str, int] | None:
    usages = [completion.usage for completion in completions if completion.usage is not None]
    if not usages or len(usages) < len(completions):
        return None
    sent = sum(usage.input_tokens for usage in usages)
    written = sum(usage.output_tokens for usage in usages)
    counts = {"input_tokens": sent, "output_tokens": written, "total_tokens": sent + written}
    cached = sum(usage.cached_tokens for usage in usages)
    reasoning = sum(usage.reasoning_tokens for usage in usages)
    # In `Usage`, 0 may mean unknown.
    if cached:
        counts["input_tokens_cache_read"] = cached
    if reasoning:
        counts["reasoning_tokens"] = reasoning
    return counts


def _hash(source: dict[str, Any]) -> str:
    canonical = json.dumps(source, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
