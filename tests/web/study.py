"""A small study for tests: samples of one line, projects with them, and answers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from pii_bench.datasets.catalog import Dataset
from pii_bench.datasets.sample import sample_from_record
from pii_bench.web.projects import SHARED_PROJECTS, Plan, Project, Stages, create_project
from pii_bench.web.tables import SAMPLES

if TYPE_CHECKING:
    from tests.web.server import Browser, Server

TEXT: Final = "Ann met Bo in Bonn. Bo is 32."
SECOND: Final = "Eve pays $90 to Leeds Water."
SCRIPT: Final = "<script>alert(1)</script> & Zoe"


def record(
    name: str, text: str, entities: list[tuple[str, str, str, str]], needed: list[str]
) -> Any:
    """Return a sample record without spans; entities are (person, text, type, category)."""
    subjects: dict[str, list[Any]] = {}
    for person, value, kind, category in entities:
        entity = {"text": value, "type": kind, "category": category}
        subjects.setdefault(person, []).append(entity)
    return {
        "id": name,
        "description": text,
        "query": "How old is he, and where?",
        "subjects": [{"id": person, "entities": own} for person, own in subjects.items()],
        "related": [
            {"subject": person, "text": value} for person, value, *_ in entities if value in needed
        ],
        "meta": {},
    }


RECORDS: Final = (
    record(
        "one",
        TEXT,
        [
            ("A", "Ann", "PER", "Full Name"),
            ("B", "Bo", "PER", "Full Name"),
            ("B", "Bonn", "LOC", "City/Region"),
            ("B", "32", "DEM", "Age"),
        ],
        ["32"],
    ),
    record(
        "two",
        SECOND,
        [("A", "Eve", "PER", "Full Name"), ("A", "$90", "QUANTITY", "Monthly Expenses")],
        ["$90"],
    ),
    record("three", SCRIPT, [("A", "Zoe", "PER", "Full Name")], []),
)

# Marks in TEXT.
ANN: Final = {"start": 0, "end": 3, "persons": ["A"], "type": "PER", "category": "Full Name"}
BO: Final = {"start": 8, "end": 10, "persons": ["B"], "type": "PER", "category": "Full Name"}
BO_AGAIN: Final = {**BO, "start": 20, "end": 22}
BONN: Final = {"start": 14, "end": 18, "persons": ["B"], "type": "LOC", "category": "City/Region"}
AGE: Final = {"start": 26, "end": 28, "persons": ["B"], "type": "DEM", "category": "Age"}
ALL: Final = (ANN, BO, BONN, BO_AGAIN, AGE)


def dataset(*records: Any) -> Dataset:
    """Return a dataset of these records, or of all `RECORDS`."""
    samples = tuple(sample_from_record(each) for each in records or RECORDS)
    return Dataset("study-00000000", "study", "0" * 64, samples)


def new_project(
    server: Server, *people: str, records: tuple[Any, ...] = (), **plan: Any
) -> Project:
    """Create a project with these members."""
    values = {"name": "Pilot", "stages": Stages.BOTH, "annotators": 2, **plan}
    project = create_project(server.web.database, Plan(**values), dataset(*records))
    for name in people:
        SHARED_PROJECTS.add_member(server.web.database, project.id, server.account(name).id)
    return project


def open_next(browser: Browser, project: Project) -> int:
    """Return the next task of a user."""
    answer = browser.post(f"/projects/{project.id}/next", follow_redirects=False)
    match = re.fullmatch(r"/tasks/(\d+)", answer.headers["location"])
    assert match, answer.headers["location"]
    return int(match[1])


def state_of(browser: Browser, task: int) -> Any:
    """Return the state that the page of a task loads."""
    return browser.get(f"/tasks/{task}/state").json()


def save(
    browser: Browser, task: int, answer: Any, *, base: int | None = None, done: bool = False
) -> Any:
    """Save an answer, based on the current version or on another."""
    version = state_of(browser, task)["version"] if base is None else base
    body = {"base": version, "answer": answer, "seconds": 1.0, "done": done}
    return browser.post(f"/tasks/{task}/save", json=body)


def choice(*needed: int, **more: Any) -> Any:
    """Return a complete answer of stage 2."""
    return {"needed": list(needed), "necessary": True, "sufficient": True, **more}


def sample_ids(server: Server, project: Project) -> dict[str, int]:
    """Return the IDs of a project's samples by name."""
    query = select(SAMPLES.c.name, SAMPLES.c.id).where(SAMPLES.c.project_id == project.id)
    with server.web.database.reading() as connection:
        return {row.name: row.id for row in connection.execute(query)}


def lines(text: str) -> list[Any]:
    """Parse JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]
