"""The figures of one sample under the names of the leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.ranking.rows import METRICS, metrics_of
from pii_bench.runs.evaluation import Evaluation

if TYPE_CHECKING:
    from pii_bench.runs.evaluation import SampleScore
    from pii_bench.tasks import Task

_NO_MEANS: Final = frozenset(
    {
        *("micro_f1", "micro_ent_f1", "hallucination_rate", "collateral", "h"),
        *("leak_readable", "leak_restated", "leak_part"),
    }
)

MEAN_METRICS: Final = tuple(name for name in METRICS if name not in _NO_MEANS)
"""The columns that are means over all scored samples; the others come of sums, of those samples
that leave a text (collateral), or of other means (H)."""


def sample_metrics(task: Task, score: SampleScore) -> dict[str, float]:
    """What a sample adds to each mean of its task's row, 0 to 1."""
    alone = Evaluation(task=task, gold=1, scores=(score,), statuses={}, repairs={})
    return {name: value for name, value in metrics_of(alone).items() if name in MEAN_METRICS}
