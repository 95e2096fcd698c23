"""Simulated systems whose truth is known: what the figures claim holds as often as they say.

Bounds leave room for the chance of a few hundred simulations. Thousands, run once, gave what
they are around: P(p < 0.05) = 0.0498 of 20,000 exact tests and 0.0504 of 8,000 with random
flips, 0.946 of 3,000 intervals held the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from pii_bench.ranking.scores import intervals
from pii_bench.ranking.significance import p_values, smallest_detectable
from tests.ranking.of_values import parted, scores

if TYPE_CHECKING:
    from pii_bench.ranking.scores import Scores

# A Kolmogorov-Smirnov test rejects one right sample in a hundred at this.
REJECTED = 0.01


CLUSTERS = np.repeat(np.arange(24), [1, 2, 3] * 8)


def pairs_of_systems(seed: int, parts: int = 1) -> list[tuple[Scores, Scores]]:
    """300 pairs of systems equally good, each of which is right or wrong by whole descriptions."""
    random = np.random.default_rng(seed)

    def one() -> Scores:
        luck = random.random(24)[CLUSTERS]
        noise = random.normal(0, 0.1, size=(parts, len(CLUSTERS)))
        if parts == 1:
            return scores(np.clip(luck + noise[0], 0, 1).tolist(), CLUSTERS.tolist())
        # What is protected is rarely retained.
        protection, retention = np.clip([luck + noise[0], 1.2 - luck + noise[1]], 0, 1).tolist()
        return parted(protection, retention, CLUSTERS.tolist())

    return [(one(), one()) for _ in range(300)]


@pytest.mark.parametrize(("seed", "parts"), [(1, 1), (12, 2)], ids=["mean", "H"])
def test_between_systems_equally_good_p_is_uniform(seed: int, parts: int) -> None:
    p = [p_values(pair)[0, 1] for pair in pairs_of_systems(seed, parts)]

    assert stats.kstest(p, "uniform").pvalue > REJECTED
    # A binomial of 300 with chance 0.05 lies from 8 to 23 in 98 % of cases.
    assert 8 <= sum(each < 0.05 for each in p) <= 23


def test_intervals_hold_the_mean_about_as_often_as_they_claim() -> None:
    # Descriptions of 1 to 3 samples, skewed as good systems are: mostly 1, else from 0 to 1.
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(120), [1, 2, 3] * 40)
    simulated = []
    for _ in range(1_000):
        wrong = (random.random(120) < 0.3)[clusters]
        values = np.where(wrong, random.random(len(clusters)), 1.0)
        simulated.append(scores(values.tolist(), clusters.tolist()))
    mean = 0.7 + 0.3 / 2

    held = [each is not None and each.low <= mean <= each.high for each in intervals(simulated)]

    # Three standard deviations of a binomial of 1,000 with chance 0.946 are 0.021.
    assert 0.925 <= np.mean(held) <= 0.967


def test_a_difference_that_is_detectable_is_found_four_times_in_five() -> None:
    random = np.random.default_rng(4)
    clusters, spread = 40, 0.2
    nothing = scores([0.0] * clusters)
    expected = np.sum(stats.t.ppf([0.975, 0.8], df=clusters - 1)) * spread / np.sqrt(clusters)
    samples = [scores(random.normal(expected, spread, size=clusters).tolist()) for _ in range(300)]

    found = sum(p_values([sample, nothing])[0, 1] < 0.05 for sample in samples)
    detectable = [smallest_detectable(sample, nothing) for sample in samples]

    # Three standard deviations of a binomial of 300 with chance 0.8 are 0.07.
    assert 0.73 <= found / 300 <= 0.87
    assert np.mean([each for each in detectable if each]) == pytest.approx(expected, rel=0.03)
