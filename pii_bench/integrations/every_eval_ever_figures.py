"""Figures as Every Eval Ever 0.3.0 has them: its description of each metric, and sample lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.catalog import DATASETS
from pii_bench.integrations.questions import sample_metrics
from pii_bench.models.catalog import REPLAY
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
"""Replaces an input that is not ours to publish; the schema wants a text."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the leaderboard; all go from 0 to 1.

    Attributes:
        id: a common one where other projects mean the same by it, else in our name space.
        kind: the family that it belongs to.
    """

    id: str
    name: str
    kind: str
    description: str
    lower_is_better: bool = False

    def document(self) -> dict[str, Any]:
        """The object `metric_config`."""
        return {
            "evaluation_description": self.description,
            "metric_id": self.id,
            "metric_name": self.name,
            "metric_kind": self.kind,
            "metric_unit": "proportion",
            "lower_is_better": self.lower_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        }


METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        "strict_f1": Metric(
            "pii_bench.strict_f1",
            "Strict-F1",
            "f1",
            "F1 over text and type, person by person under the best matching; mean over samples.",
        ),
        "ent_f1": Metric(
            "pii_bench.ent_f1",
            "Ent-F1",
            "f1",
            "F1 over the texts of all people together, types ignored; mean over samples.",
        ),
        "f1": Metric("f1", "F1", "f1", "F1 over texts; mean over samples."),
        "rouge_l_f": Metric(
            "pii_bench.rouge_l_f",
            "RougeL-F",
            "rouge",
            "F1 with the longest common subsequence instead of equality; mean over samples.",
        ),
        "precision": Metric(
            "precision",
            "Precision",
            "precision",
            "Precision of the headline figure; mean over samples.",
        ),
        "recall": Metric(
            "recall", "Recall", "recall", "Recall of the headline figure; mean over samples."
        ),
        "ent_matched_f1": Metric(
            "pii_bench.ent_matched_f1",
            "Ent-F1, matched",
            "f1",
            "F1 over texts, person by person under the best matching; mean over samples.",
        ),
        "micro_f1": Metric(
            "pii_bench.micro_f1",
            "F1, micro",
            "f1",
            "The headline F1 of counts that are summed over all samples.",
        ),
        "micro_ent_f1": Metric(
            "pii_bench.micro_ent_f1",
            "Ent-F1, micro",
            "f1",
            "Ent-F1 of counts that are summed over all samples.",
        ),
        "hallucination_rate": Metric(
            "pii_bench.hallucination_rate",
            "Hallucination rate",
            "rate",
            "Share of the predicted texts that are not in the description.",
            lower_is_better=True,
        ),
        "protection": Metric(
            "pii_bench.protection",
            "Protection",
            "share",
            "Share of the texts that the query does not need of which the masked text shows no "
            "character; mean over samples.",
        ),
        "retention": Metric(
            "pii_bench.retention",
            "Retention",
            "share",
            "Share of the texts that the query needs of which the masked text shows an occurrence "
            "in full; mean over samples.",
        ),
        "collateral": Metric(
            "pii_bench.collateral",
            "Collateral",
            "share",
            "Share of the characters that are no PII and are masked; mean over samples with a "
            "masked text.",
            lower_is_better=True,
        ),
        "h": Metric(
            "pii_bench.h",
            "H",
            "harmonic_mean",
            "Harmonic mean of the mean protection and the mean retention.",
        ),
        "weighted_protection": Metric(
            "pii_bench.weighted_protection",
            "Protection, weighted",
            "share",
            "Protection where each text weighs as much as the tier of its sensitivity, 1 to 3; "
            "mean over samples.",
        ),
        **{
            f"leak_{how}": Metric(
                f"pii_bench.leak_{how}",
                f"Leak, {told}",
                "share",
                f"Share of all texts not needed that a rewriting tells {told}.",
                lower_is_better=True,
            )
            for how, told in (
                ("readable", "as written"),
                ("restated", "in another form"),
                ("part", "in part"),
            )
        },
    }
)
"""By the leaderboard's names of its columns."""


@dataclass(frozen=True, slots=True)
class ScoredTask:
    """One task of a run, as far as it is answered.

    Attributes:
        row: its row of the leaderboard.
        predictions: sample id to what was answered.
        completions: sample id to all that came back, in order; masking has those of its parts.
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
        """Joins a figure and the lines of its samples."""
        return f"{evaluation_id}#{self.row.task}.{metric}"

    @property
    def shows_inputs(self) -> bool:
        """Whether the texts are published anyway: those of the datasets that ship."""
        return self.dataset.source in DATASETS

    @property
    def shows_outputs(self) -> bool:
        """Whether the answers say nothing but what a system makes of published texts.

        What a file for replay holds, and where it was made, is unknown.
        """
        return self.shows_inputs and self.row.model.partition("/")[0] != REPLAY


def sample_lines(
    scored: ScoredTask, head: Mapping[str, str], evaluation_id: str
) -> Iterator[dict[str, Any]]:
    """The lines of every scored sample, by metric in the row's order; all begin with `head`."""
    samples = {sample.id: sample for sample in scored.dataset.samples}
    for score in scored.evaluation.scores:
        about = _about(scored, samples[score.id], score)
        for metric, value in sample_metrics(scored.row.task, score).items():
            if metric in scored.row.metrics:
                yield {
                    **head,
                    "evaluation_name": scored.evaluation_name,
                    "evaluation_result_id": scored.result_id(evaluation_id, metric),
                    **about,
                    # Only what is right in everything scores 1.
                    "evaluation": {"score": value, "is_correct": value == 1.0},
                }


def _about(scored: ScoredTask, sample: Sample, score: SampleScore) -> dict[str, Any]:
    task, prediction = scored.row.task, scored.predictions[score.id]
    # What is submitted has none.
    completions = scored.completions.get(score.id, ())
    raw = sample.description if task is Task.DETECTION else _with_query(sample)
    reference = _reference(task, sample)
    shown = scored.shows_inputs
    return {
        "sample_id": sample.id,
        "sample_hash": _hash(raw, reference) if shown else None,
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": reference}
        if shown
        else {"raw": WITHHELD, "reference": []},
        "output": _output(completions, task, prediction) if scored.shows_outputs else {"raw": []},
        "answer_attribution": _attribution(task, prediction) if scored.shows_outputs else [],
        "token_usage": _usage(completions),
        "error": None if score.status.answered else str(score.status),
        "metadata": {
            "task": str(task),
            "status": str(score.status),
            "repairs": ", ".join(prediction.repairs),
        },
    }


def _with_query(sample: Sample) -> str:
    return f"{sample.description}\n\n{sample.query}"


def _reference(task: Task, sample: Sample) -> list[str]:
    related = [entity.text for entity in sample.related]
    match task:
        case Task.DETECTION:
            return [
                _json([(entity.text, entity.type) for entity in subject.entities])
                for subject in sample.subjects
            ]
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
            return _masked((text for each in subjects for text, _ in each), related)
        case Task.REWRITE:
            return prediction.rewritten


def _masked(texts: Iterable[str], related: Iterable[str]) -> list[str]:
    needed = {normalise(text) for text in related}
    return list(dict.fromkeys(text for text in texts if normalise(text) not in needed))


def _output(
    completions: Sequence[Completion], task: Task, prediction: Prediction
) -> dict[str, Any]:
    """What a model wrote; of a system that is no chat model, its answer."""
    answers = [_json(_answer(task, prediction))] if prediction.status.answered else []
    reasoning = [each.reasoning for each in completions if each.reasoning]
    return {
        "raw": [completion.text for completion in completions] or answers,
        "reasoning_trace": reasoning or None,
    }


def _usage(completions: Sequence[Completion]) -> dict[str, int] | None:
    usages = [each.usage for each in completions if each.usage is not None]
    if not usages or len(usages) < len(completions):
        return None
    read = sum(usage.input_tokens for usage in usages)
    written = sum(usage.output_tokens for usage in usages)
    counts = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    # A 0 of ours may mean unknown.
    parts = {
        "input_tokens_cache_read": sum(usage.cached_tokens for usage in usages),
        "reasoning_tokens": sum(usage.reasoning_tokens for usage in usages),
    }
    return counts | {name: count for name, count in parts.items() if count}


def _hash(raw: str, reference: list[str]) -> str:
    content = {"raw": raw, "reference": reference}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
