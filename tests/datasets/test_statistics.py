from __future__ import annotations

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.statistics import (
    Statistics,
    measure,
    published_statistics,
    to_markdown,
)
from pii_bench.files import DATA
from pii_bench.taxonomy import PiiType
from tests.builders import make_sample

NONE = dict.fromkeys(PiiType, 0)

# "Ann Lee is 32." with the query "Am I old?", and two code points without subjects and query.
TOY = [make_sample("s1"), make_sample("s2", description="𝒜é", query=None, subjects=[], related=[])]


@pytest.fixture(scope="module")
def published() -> dict[str, Statistics]:
    return published_statistics()


def test_descriptions_are_averaged_over_all_samples_and_queries_over_those_with_one() -> None:
    statistics = measure(TOY)

    assert statistics.samples == 2
    assert statistics.subjects == 0.5
    assert statistics.description_chars == (14 + 2) / 2
    assert statistics.description_entities == 1
    assert (statistics.query_chars, statistics.query_entities) == (9, 1)
    assert statistics.types == NONE | {PiiType.PER: 1, PiiType.DEM: 1}


def test_a_set_without_queries_and_entities_has_zeros() -> None:
    statistics = measure(TOY[1:])

    assert (statistics.query_chars, statistics.query_entities) == (0, 0)
    assert "| PER        | 0 (0.0%) |" in to_markdown(statistics, None)


def test_distinct_categories_of_the_taxonomy_are_counted() -> None:
    entities = [
        {"text": "Ann Lee", "type": "PER", "category": "Full Name"},
        {"text": "32", "type": "DEM", "category": "Age"},
        {"text": "Ann", "type": "DEM", "category": "Shoe Size"},
        {"text": "Lee", "type": "DEM"},
    ]
    sample = make_sample("s3", subjects=[{"id": "A", "entities": entities}])

    assert measure([*TOY, sample]).categories == 2


def test_the_tables_of_the_paper_are_loaded(published: dict[str, Statistics]) -> None:
    assert list(published) == ["single", "multi", "hard", "distract"]
    multi = published["multi"]
    assert (multi.samples, multi.subjects, multi.query_entities) == (1228, 2, 2.06)
    assert (multi.description_chars, multi.description_entities) == (652.65, 13.14)
    assert multi.query_chars == 236.21
    assert multi.types[PiiType.LOC] == 1516
    assert all(set(paper.types) == set(PiiType) for paper in published.values())
    assert {paper.categories for paper in published.values()} == {None}


def test_only_the_printed_mean_of_hard_contradicts_its_counts(
    published: dict[str, Statistics],
) -> None:
    contradictions = {
        name
        for name, paper in published.items()
        if abs(sum(paper.types.values()) / paper.samples - paper.description_entities) > 0.05
    }

    assert contradictions == {"hard"}


def test_tables_of_a_set_with_counterpart() -> None:
    paper = Statistics(4, 1, 10, 2, 10, 1, NONE | {PiiType.PER: 4, PiiType.DEM: 4})

    assert to_markdown(measure(TOY), paper).splitlines() == [
        "| per sample              |   ours |   paper |   difference |",
        "|:------------------------|-------:|--------:|-------------:|",
        "| samples                 |      2 |       4 |       -50.0% |",
        "| subjects                |   0.50 |       1 |       -50.0% |",
        "| description, characters |   8.00 |      10 |       -20.0% |",
        "| description, entities   |   1.00 |       2 |       -50.0% |",
        "| query, characters       |   9.00 |      10 |       -10.0% |",
        "| query, entities         |   1.00 |       1 |        +0.0% |",
        "",
        "| entities   |      ours |     paper |   difference |",
        "|:-----------|----------:|----------:|-------------:|",
        "| PER        | 1 (50.0%) | 4 (50.0%) |       -75.0% |",
        "| CODE       |  0 (0.0%) |  0 (0.0%) |              |",
        "| LOC        |  0 (0.0%) |  0 (0.0%) |              |",
        "| ORG        |  0 (0.0%) |  0 (0.0%) |              |",
        "| DEM        | 1 (50.0%) | 4 (50.0%) |       -75.0% |",
        "| DATETIME   |  0 (0.0%) |  0 (0.0%) |              |",
        "| QUANTITY   |  0 (0.0%) |  0 (0.0%) |              |",
        "",
        "2 of the 55 categories occur.",
    ]


def test_tables_of_a_set_without_counterpart() -> None:
    lines = to_markdown(measure(TOY), None).splitlines()

    assert lines[0] == "| per sample              |   ours |"
    assert "| DEM        | 1 (50.0%) |" in lines


@pytest.mark.parametrize(
    ("name", "descriptions", "queries"),
    [("single", 0.03, 0.05), ("multi", 0.03, 0.05), ("distract", 0.1, 0.1)],
)
def test_our_means_are_close_to_those_of_the_paper(
    name: str, descriptions: float, queries: float
) -> None:
    ours, paper = measure(load_dataset(name).samples), published_statistics()[name]

    assert (ours.samples, ours.subjects) == (paper.samples, paper.subjects)
    for part, share in (("description", descriptions), ("query", queries)):
        for figure in (f"{part}_chars", f"{part}_entities"):
            assert getattr(ours, figure) == pytest.approx(getattr(paper, figure), rel=share), figure
    if name != "distract":
        assert ours.types == pytest.approx(paper.types, rel=0.03)


def test_the_readme_reports_every_quality_goal_as_met() -> None:
    lines = (DATA / "README.md").read_text(encoding="utf-8").splitlines()
    with_goal = [line for line in lines if line.startswith("|") and "≤" in line]

    assert len(with_goal) == 9
    assert not [line for line in with_goal if not line.rstrip("| ").endswith(" yes")]
