from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.sample import sample_to_record
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.systems.relevance.fit import fit, fit_thresholds
from tests.builders import make_sample, write_lines
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

PAY: Sample = build(
    "She gets $900 in York.",
    {"$900": "Monthly Income", "York": "City/Region"},
    query="Is her salary fair?",
    related=[("A", "$900")],
)
TOWN: Sample = build(
    "He gets $700 in Leeds.",
    {"$700": "Monthly Income", "Leeds": "City/Region"},
    query="Is his town nice?",
    related=[("A", "Leeds")],
)


def test_a_threshold_is_fitted_to_what_is_needed() -> None:
    fitted = fit("keyword", [PAY, TOWN])

    # The cue is 1 for one of two: 0.5 above the mean and 0.5 below.
    assert (fitted.threshold, fitted.f1) == (0.0, 1.0)
    assert fitted.identity["threshold"] == "0.0"


def test_the_rate_of_chance_is_the_share_that_is_needed() -> None:
    assert fit("random", [PAY, TOWN]).threshold == 0.5


def test_a_sample_without_a_query_does_not_count() -> None:
    silent = make_sample(query=None, related=[])

    assert fit("keyword", [PAY, silent]).f1 == 1.0
    with pytest.raises(PiiBenchError, match="samples with a query"):
        fit("keyword", [silent])


@pytest.mark.parametrize("name", ["all", "nonsense"])
def test_only_systems_with_a_threshold_can_be_fitted(name: str) -> None:
    with pytest.raises(UnknownNameError, match="allowed: random, keyword, embedding"):
        fit(name, [PAY])


def test_thresholds_are_kept_with_what_they_were_fitted_on(tmp_path: Path) -> None:
    dev = write_lines(tmp_path / "dev.jsonl", [sample_to_record(PAY)])
    path = tmp_path / "models" / "thresholds.json"
    hashes = {"dev": hashlib.sha256(dev.read_bytes()).hexdigest()}

    fit_thresholds(["random"], [dev], path)
    fit_thresholds(["keyword"], [dev], path)

    stored = json.loads(path.read_text())
    assert stored["keyword"].keys() == {"threshold", "dev_f1", "dev_sha256", "words"}
    assert (stored["keyword"]["threshold"], stored["keyword"]["dev_f1"]) == (0.0, 1.0)
    assert stored["keyword"]["dev_sha256"] == hashes
    assert (stored["random"]["seed"], stored["random"]["threshold"]) == ("0", 0.5)


def test_fitting_again_gives_the_same_bytes(tmp_path: Path) -> None:
    dev = write_lines(tmp_path / "dev.jsonl", [sample_to_record(PAY)])
    paths = [tmp_path / "one.json", tmp_path / "two.json"]

    for path in paths:
        fit_thresholds(["embedding", "random"], [dev], path)

    assert paths[0].read_bytes() == paths[1].read_bytes()
