"""What a system suggests is prepared once and marked with the system's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.web.projects import Stages, find_project, samples_of
from pii_bench.web.suggestions import check_system, prepare
from tests.web.study import RECORDS, open_next, project, state_of

if TYPE_CHECKING:
    from tests.web.server import Server


def test_the_encoder_suggests_marks(team: Server) -> None:
    made = project(
        team, "ann", records=RECORDS[:1], stages=Stages.MARK, system="encoder", suggests=True
    )

    prepare(team.web.database, made)

    with team.web.database.reading() as connection:
        assert find_project(connection, made.id).trouble == ""
        (stored,) = samples_of(connection, made)
    assert stored.suggestion is not None
    answer = state_of(ann := team.browser("ann"), open_next(ann, made))["answer"]
    assert answer["suggested"] == "encoder"
    assert {"Bonn", "32"} <= {
        stored.sample.description[mark["start"] : mark["end"]] for mark in answer["marks"]
    }
    assert {mark["origin"] for mark in answer["marks"]} == {"encoder"}


def test_what_keeps_a_system_from_answering_is_said(team: Server) -> None:
    made = project(team, records=RECORDS[:1], stages=Stages.MARK, system="openai/x", suggests=True)

    prepare(team.web.database, made)

    with team.web.database.reading() as connection:
        assert "OPENAI_API_KEY" in find_project(connection, made.id).trouble
    assert "OPENAI_API_KEY" in team.browser("olga").page(f"/projects/{made.id}")


@pytest.mark.parametrize("name", ["python:os:system", "encoder:/etc", "replay:/etc/passwd", "none"])
def test_a_browser_names_no_file_or_module(name: str) -> None:
    with pytest.raises(PiiBenchError):
        check_system(name)
