"""Creating projects, and the suggestions of a system."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.web.project_pages import check_system, prepare
from pii_bench.web.projects import SHARED_PROJECTS, Stages, samples_of
from pii_bench.web.settings import Settings
from tests.web.recorder import ASKED, GATE
from tests.web.server import Server
from tests.web.study import RECORDS, new_project, record

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web.server import Browser


RECORDER = "python:tests.web.recorder:build"


def test_the_page_shows_why_a_system_cannot_answer(team: Server, olga: Browser) -> None:
    project = new_project(
        team, records=RECORDS[:1], stages=Stages.MARK, system="openai/x", suggests=True
    )

    asyncio.run(prepare(team.web.database, team.web.masker, project))

    with team.web.database.reading() as connection:
        assert "OPENAI_API_KEY" in SHARED_PROJECTS.get(connection, project.id).trouble
    assert "OPENAI_API_KEY" in olga.page(f"/projects/{project.id}")


def test_failed_suggestions_are_counted_and_the_others_are_stored(team: Server) -> None:
    records = (record("one", "Ann met Bo.", [], []), record("two", "Bo will FAIL.", [], []))
    project = new_project(
        team,
        records=records,
        stages=Stages.MARK,
        system=RECORDER,
        suggests=True,
    )
    ASKED.clear()
    GATE.set()

    asyncio.run(prepare(team.web.database, team.web.masker, project))

    assert ASKED == ["Ann met Bo.", "Bo will FAIL."]
    with team.web.database.reading() as connection:
        assert (
            SHARED_PROJECTS.get(connection, project.id).trouble
            == "1 of 2 calls failed; prepare again"
        )
        first, second = samples_of(connection, project)
    assert [(mark["start"], mark["end"]) for mark in first.suggestion or ()] == [(0, 3), (8, 10)]
    assert {mark["origin"] for mark in first.suggestion or ()} == {RECORDER}
    assert second.suggestion is None


def test_suggestions_are_prepared_in_a_process_of_the_pool(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "pool.sqlite"), workers=1)
    others = set(multiprocessing.active_children())
    with ExitStack() as stack:
        server = Server(settings, stack)
        project = new_project(server, records=RECORDS[:1], stages=Stages.MARK, system="encoder")

        asyncio.run(prepare(server.web.database, server.web.masker, project))

        assert len(set(multiprocessing.active_children()) - others) == 1
        with server.web.database.reading() as connection:
            assert SHARED_PROJECTS.get(connection, project.id).trouble == ""
            (stored,) = samples_of(connection, project)
    marked = [(mark["start"], mark["end"]) for mark in stored.suggestion or ()]
    assert {"Bonn", "32"} <= {stored.sample.description[slice(*span)] for span in marked}


@pytest.mark.parametrize("name", ["python:os:system", "encoder:/etc", "replay:/etc/passwd", "none"])
def test_a_system_may_not_name_a_file_or_module(name: str) -> None:
    with pytest.raises(PiiBenchError):
        check_system(name)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"name": " "}, "a name of 1 to 200"),
        ({"name": "x", "annotators": "0"}, "1 to 50 annotators"),
        ({"name": "x", "threshold": "2"}, "a threshold from 0 to 1"),
        ({"name": "x", "source": "none"}, "choose a dataset or a file"),
        ({"name": "x", "system": "python:os:system"}, "names a file or module"),
        ({"name": "x", "system": "encodre"}, "did you mean"),
        ({"name": "x", "qualification": "50"}, "too few"),
    ],
)
def test_an_invalid_project_is_refused(olga: Browser, form: Any, reason: str) -> None:
    answer = olga.post("/projects/new", data={"source": "demo", **form})

    assert answer.status_code == 400
    assert reason in answer.json()["error"]["message"]


def test_a_project_is_created_from_a_file(olga: Browser) -> None:
    body = "".join(json.dumps(each) + "\n" for each in RECORDS).encode()
    file = {"file": ("<b>my texts.jsonl", body)}

    page = olga.post("/projects/new", data={"name": "Mine", "limit": "2"}, files=file)

    assert page.is_success
    assert "2 samples" in page.text
    assert "b-my-texts" in page.text
    broken = olga.post("/projects/new", data={"name": "x"}, files={"file": ("a.jsonl", b"{}\n")})
    assert broken.status_code == 400
    assert broken.json()["error"]["message"].startswith("a.jsonl:1:")
    half = {"file": ("a.jsonl", body.replace(b"How old", b"\\ud83d"))}
    refused = olga.post("/projects/new", data={"name": "x"}, files=half)
    assert refused.status_code == 400
    assert "surrogate" in refused.json()["error"]["message"]
    wrong = olga.post("/projects/new", data={"name": "x"}, files={"file": ("a.exe", b"{}\n")})
    assert "end in one of" in wrong.json()["error"]["message"]
