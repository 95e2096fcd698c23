from __future__ import annotations

from pii_bench.integrations.every_eval_ever.every_eval_ever_metrics import METRICS
from pii_bench.ranking import rows


def test_every_column_of_the_leaderboard_is_described_once() -> None:
    assert tuple(METRICS) == rows.METRICS
    assert len({metric.id for metric in METRICS.values()}) == len(METRICS)


def test_only_a_share_of_mistakes_is_better_when_it_is_lower() -> None:
    assert [name for name, metric in METRICS.items() if metric.lower_is_better] == [
        *("hallucination_rate", "collateral", "leak_readable", "leak_restated", "leak_part"),
    ]
