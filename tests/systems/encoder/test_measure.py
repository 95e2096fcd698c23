from __future__ import annotations

import pytest

from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.systems import KEEP
from pii_bench.systems.encoder.measure import KeepThreshold, fit_thresholds
from pii_bench.systems.encoder.reader import FoundEntity, is_kept
from pii_bench.taxonomy import PiiType
from tests.builders import unlisted


def found(text: str, relevance: float, pii_type: PiiType = PiiType.DEM) -> FoundEntity:
    return FoundEntity(text, pii_type, ((0, len(text)),), (), relevance)


@pytest.mark.parametrize(
    ("protection", "retention", "weight", "mean"),
    [
        (0.5, 1.0, 0.5, 2 / 3),
        # Nine tenths of 1 / 0.5 and one tenth of 1 / 1 are 1.9.
        (0.5, 1.0, 0.9, 1 / 1.9),
        (0.0, 1.0, 0.5, 0.0),
    ],
)
def test_the_mean_is_harmonic_and_weighted(
    protection: float, retention: float, weight: float, mean: float
) -> None:
    assert KeepThreshold(0.5, protection, retention).mean(weight) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("item", "threshold", "kept"),
    [
        (found("asthma", 0.3), 0.3, True),
        (found("asthma", 0.29), 0.3, False),
        # Codes must be needed clearly.
        (found("1234", 0.79, PiiType.CODE), 0.3, False),
        (found("1234", 0.8, PiiType.CODE), 0.3, True),
        (found("1234", 0.8, PiiType.CODE), 0.9, False),
        # Names never are.
        (found("Ann Lee", 0.0, PiiType.PER), 0.0, False),
        (found("Ann Lee", 1.0, PiiType.PER), 0.0, False),
    ],
)
def test_what_is_kept(item: FoundEntity, threshold: float, kept: bool) -> None:
    assert is_kept(item, threshold) is kept


def test_each_setting_keeps_no_less_than_the_one_before() -> None:
    text = "asthma, 32, York, blue"
    places = {"asthma": (0, 6), "32": (8, 10), "York": (12, 16), "blue": (18, 22)}
    relevance = {"asthma": 0.9, "32": 0.6, "York": 0.4, "blue": 0.1}
    entities = tuple(Entity(t, "DEM", None, (span,)) for t, span in places.items())
    needed = (Related("A", "asthma"), Related("A", "York"))
    sample = Sample("s1", text, "Q?", (Subject("A", entities),), needed)
    items = [FoundEntity(t, PiiType.DEM, (places[t],), (), relevance[t]) for t in places]

    points = fit_thresholds([sample], [items])

    assert fit_thresholds([unlisted(sample)], [items]) == points
    assert [*points] == [*KEEP]
    levels = [points[setting].threshold for setting in KEEP]
    assert levels == sorted(levels, reverse=True)
    # Keeping "asthma" alone protects all and retains one half; with "York" comes "32".
    assert (points["least"].protection, points["least"].retention) == (1.0, 0.5)
    assert (points["most"].protection, points["most"].retention) == (0.5, 1.0)


def test_of_nearly_equal_thresholds_the_highest_is_taken() -> None:
    # Of 301 texts the query needs the one entity: in 300 it is relevant by 0.9, in one by 0.2.
    text, place = "asthma", (0, 6)
    subject = Subject("A", (Entity(text, "DEM", None, (place,)),))
    needed = (Related("A", text),)
    samples = [Sample(f"s{n}", text, "Q?", (subject,), needed) for n in range(301)]
    items = [[FoundEntity(text, PiiType.DEM, (place,), (), 0.9 if n else 0.2)] for n in range(301)]

    points = fit_thresholds(samples, items)

    # At 0.2 retention is 1, at 0.9 it is less by a third of a hundredth.
    assert points["balanced"].threshold == 0.9
    assert points["balanced"].retention == pytest.approx(300 / 301)
