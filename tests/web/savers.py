"""Clients that save changes concurrently, and checks that the database has all of them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx2
from sqlalchemy import select

from pii_bench.web.accounts import COOKIE, Role, add_account, begin_session
from pii_bench.web.database import Database
from pii_bench.web.projects import SHARED_PROJECTS, Plan, Stages, create_project
from pii_bench.web.tables import OUTCOMES, TASKS, VERSIONS
from tests.web.server import PASSWORD
from tests.web.study import ANN, BO, dataset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

_MARKS: Final[tuple[list[dict[str, object]], ...]] = ([ANN], [ANN, BO], [])


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The seconds of each save, and the remarks that the server acknowledged, by task."""

    times: Sequence[float]
    acknowledged: Mapping[int, Sequence[str]]


def study(where: str, people: int) -> list[str]:
    """Create a project in which `people` annotate each sample; return their session secrets."""
    database = Database(where)
    project = create_project(database, Plan("Many", Stages.MARK, annotators=people), dataset())
    secrets = []
    for number in range(people):
        account = add_account(database, f"a{number}", Role.ANNOTATOR, PASSWORD)
        SHARED_PROJECTS.add_member(database, project.id, account.id)
        secrets.append(begin_session(database, account))
    database.close()
    return secrets


async def changes(url: str, secret: str, saves: int) -> AsyncIterator[tuple[int, str, float]]:
    """Open the next sample of a user and save changes of it; the last one finishes it.

    Yields:
        The task, the remark of an acknowledged change, and the seconds of the request.
    """
    headers = {"origin": url, "cookie": f"{COOKIE}={secret}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
        page = (await client.get("/projects")).text
        token = re.search(r'name="csrf-token" content="([^"]+)"', page)
        assert token, "no session"
        client.headers["x-csrf-token"] = token[1]
        opened = await client.post("/projects/1/next")
        task = int(opened.headers["location"].rpartition("/")[2])
        version = (await client.get(f"/tasks/{task}/state")).json()["version"]
        for number in range(saves):
            remark = f"{task} {version}"
            answer = {"marks": _MARKS[number % 3], "remark": remark}
            is_last = number == saves - 1
            body = {"base": version, "answer": answer, "seconds": 1, "done": is_last}
            start = time.perf_counter()
            saved = await client.post(f"/tasks/{task}/save", json=body)
            seconds = time.perf_counter() - start
            saved.raise_for_status()
            version = saved.json()["version"]
            yield task, remark, seconds


async def save_together(url: str, secrets: Sequence[str], saves: int) -> SaveResult:
    """Let all users save `changes` at the same time."""
    times: list[float] = []
    acknowledged: dict[int, list[str]] = {}

    async def person(secret: str) -> None:
        async for task, remark, seconds in changes(url, secret, saves):
            times.append(seconds)
            acknowledged.setdefault(task, []).append(remark)

    await asyncio.gather(*map(person, secrets))
    return SaveResult(times, acknowledged)


def remarks_of(where: str) -> set[tuple[int, str]]:
    """Return the task and the remark of every version in a database."""
    database = Database(where)
    with database.reading() as connection:
        rows = connection.execute(select(VERSIONS.c.task_id, VERSIONS.c.answer)).all()
    database.close()
    return {(row.task_id, json.loads(row.answer).get("remark")) for row in rows}


def lost(where: str, result: SaveResult) -> list[str]:
    """Return the acknowledged remarks that are missing in the versions or answers of a database.

    If the outcome of the finished sample is missing, return that.
    """
    kept, database = remarks_of(where), Database(where)
    with database.reading() as connection:
        last = {
            row.id: json.loads(row.answer).get("remark")
            for row in connection.execute(select(TASKS.c.id, TASKS.c.answer))
        }
        outcome = connection.scalar(select(OUTCOMES.c.kappa))
    database.close()
    if outcome is None:
        return ["the outcome"]
    missing = [r for task, own in result.acknowledged.items() for r in own if (task, r) not in kept]
    return missing + [own[-1] for task, own in result.acknowledged.items() if last[task] != own[-1]]
