"""The leaderboard's columns as Every Eval Ever 0.3.0 describes metrics."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


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
            "Share of the predicted texts that do not stand in the description.",
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
