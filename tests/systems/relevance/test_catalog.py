from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.sample import sample_to_record
from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.systems.relevance import catalog
from pii_bench.systems.relevance.base import Candidate, choose, read_thresholds
from pii_bench.systems.relevance.catalog import (
    FITTED,
    RELEVANCE,
    build_relevance,
    fit,
    fit_thresholds,
)
from tests.builders import make_sample, write_lines
from tests.datasets.check.samples import build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

WITHOUT_EXTRA = ("all", "none", "random", "keyword", "embedding")

TEXT = "Ann Lee is 32. She is a potter in York, and earns $900. Her hours: 09:00 to 12:00."
CANDIDATES = [
    Candidate(text, kind, TEXT.index(text))
    for text, kind in (
        ("Ann Lee", "PER"),
        ("32", "DEM"),
        ("potter", "DEM"),
        ("York", "LOC"),
        ("$900", "QUANTITY"),
        ("09:00", "DATETIME"),
    )
]


def test_the_names_of_the_systems() -> None:
    assert list(RELEVANCE) == [*WITHOUT_EXTRA, "embedding-minilm", "encoder"]


@pytest.mark.parametrize("name", WITHOUT_EXTRA)
def test_a_system_is_built_by_its_name_and_chooses_in_any_order(name: str) -> None:
    system = build_relevance(name)

    chosen = choose(system, "Is my pay fair?", TEXT, CANDIDATES)
    chosen_in_reverse = choose(system, "Is my pay fair?", TEXT, CANDIDATES[::-1])

    assert system.name == name
    assert set(chosen) == set(chosen_in_reverse)
    assert system.scores("Why?", TEXT, []) == []


@pytest.mark.parametrize("name", ["keyword", "embedding"])
def test_a_query_about_salary_chooses_the_income(name: str) -> None:
    assert "$900" in choose(build_relevance(name), "Is my salary fair?", TEXT, CANDIDATES)


@pytest.mark.parametrize("name", ["random", "keyword", "embedding"])
def test_a_fitted_system_has_its_stored_threshold(name: str) -> None:
    system, stored = build_relevance(name), read_thresholds()

    assert stored.keys() == FITTED.keys()
    assert system.threshold == stored[name]["threshold"]
    assert system.identity["threshold"] == repr(system.threshold)


def test_a_missing_threshold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    empty: Mapping[str, Mapping[str, float]] = {}
    monkeypatch.setattr(catalog, "read_thresholds", lambda: empty)

    with pytest.raises(InputFileError, match="'keyword': run `pii-bench fit keyword`"):
        build_relevance("keyword")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"relevance system 'keywords'; did you mean 'key"):
        build_relevance("keywords")


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


def test_fitting_finds_the_threshold_of_the_needed_candidates() -> None:
    fitted = fit("keyword", [PAY, TOWN])

    # In each sample the scores are 1 and 0, so 0.5 and -0.5 relative to their mean.
    assert (fitted.threshold, fitted.f1) == (0.0, 1.0)
    assert fitted.identity.keys() == {"words"}
    # Half of the candidates are needed.
    assert fit("random", [PAY, TOWN]).threshold == 0.5


def test_samples_without_a_query_are_ignored() -> None:
    without_query = make_sample(query=None, related=[])

    assert fit("keyword", [PAY, without_query]).f1 == 1.0
    with pytest.raises(PiiBenchError, match="samples with a query"):
        fit("keyword", [without_query])


@pytest.mark.parametrize("name", ["all", "nonsense"])
def test_only_systems_with_a_threshold_can_be_fitted(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="allowed: random, keyword, embedding"):
        fit_thresholds([name], [], tmp_path / "thresholds.json")


def test_thresholds_are_stored_with_the_hashes_of_the_dev_files(tmp_path: Path) -> None:
    dev = write_lines(tmp_path / "dev.jsonl", [sample_to_record(PAY)])
    path = tmp_path / "models" / "thresholds.json"
    hashes = {"dev": hashlib.sha256(dev.read_bytes()).hexdigest()}

    fit_thresholds(["random"], [dev], path)
    fit_thresholds(["keyword"], [dev], path)
    before = path.read_bytes()
    fit_thresholds(["keyword", "random"], [dev], path)

    assert path.read_bytes() == before
    stored = json.loads(path.read_text())
    assert stored["keyword"].keys() == {"threshold", "dev_f1", "dev_sha256", "words"}
    assert (stored["keyword"]["threshold"], stored["keyword"]["dev_f1"]) == (0.0, 1.0)
    assert stored["keyword"]["dev_sha256"] == hashes
    assert (stored["random"]["seed"], stored["random"]["threshold"]) == ("0", 0.5)
