from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.systems.relevance import catalog
from pii_bench.systems.relevance.base import Candidate, choose
from pii_bench.systems.relevance.catalog import FITTED, RELEVANCE, build_relevance
from pii_bench.systems.relevance.thresholds import read_thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = ("all", "none", "random", "keyword", "embedding")
"""Those that need no extra."""

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


def test_the_systems() -> None:
    assert [*RELEVANCE] == [*HERE, "embedding-minilm", "encoder"]


@pytest.mark.parametrize("name", HERE)
def test_a_system_is_built_by_its_name_and_gives_one_score_per_candidate(name: str) -> None:
    system = build_relevance(name)

    assert system.name == name
    assert len(system.scores("Is my pay fair?", TEXT, CANDIDATES)) == len(CANDIDATES)
    assert system.scores("Why?", TEXT, []) == []


@pytest.mark.parametrize("name", HERE)
def test_no_order_of_candidates_changes_what_is_chosen(name: str) -> None:
    system = build_relevance(name)

    forth = choose(system, "Is my pay fair?", TEXT, CANDIDATES)
    back = choose(system, "Is my pay fair?", TEXT, CANDIDATES[::-1])

    assert set(forth) == set(back)


@pytest.mark.parametrize("name", [name for name in HERE if name != "all"])
@pytest.mark.parametrize("query", ["Is my pay fair?", "Who is Ann Lee?", ""])
def test_only_all_ever_chooses_a_person(name: str, query: str) -> None:
    assert "Ann Lee" not in choose(build_relevance(name), query, TEXT, CANDIDATES)
    assert "Ann Lee" not in choose(build_relevance(name), query, TEXT, CANDIDATES[:1])


@pytest.mark.parametrize("name", ["keyword", "embedding"])
def test_those_that_read_find_the_pay(name: str) -> None:
    assert "$900" in choose(build_relevance(name), "Is my salary fair?", TEXT, CANDIDATES)


@pytest.mark.parametrize("name", ["random", "keyword", "embedding"])
def test_a_stored_threshold_is_the_system_s(name: str) -> None:
    system = build_relevance(name)

    assert system.threshold == read_thresholds()[name]["threshold"]
    assert system.identity["threshold"] == repr(system.threshold)


def test_all_that_are_fitted_have_a_stored_threshold() -> None:
    assert read_thresholds().keys() == FITTED.keys()


def test_a_threshold_that_is_not_stored_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    empty: Mapping[str, Mapping[str, float]] = {}
    monkeypatch.setattr(catalog, "read_thresholds", lambda: empty)

    with pytest.raises(InputFileError, match="holds no threshold of 'keyword'"):
        build_relevance("keyword")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"relevance system 'keywords'; did you mean 'key"):
        build_relevance("keywords")
