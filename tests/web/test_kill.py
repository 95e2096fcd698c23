"""The server is killed while people save: what it has acknowledged is there afterwards."""

from __future__ import annotations

import subprocess
import threading
import time
from random import Random
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from pii_bench.web.accounts import local_owner
from pii_bench.web.database import Database
from pii_bench.web.projects import Plan, Stages, add_member, create_project
from tests.cli.command import COMMAND, environment
from tests.web.chromium import free_port, wait_for_server
from tests.web.study import ANN, BO, dataset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = 30


class Writer(threading.Thread):
    """Saves one change after the other, and remembers what was acknowledged."""

    def __init__(self, url: str, task: int, token: str) -> None:
        super().__init__()
        self.acknowledged: dict[int, Any] = {}
        self.stopping = threading.Event()
        headers = {"x-csrf-token": token, "origin": url}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=10)
        self._task = task

    def run(self) -> None:
        """Until told to stop, or the server is gone."""
        try:
            state = self._client.get(f"/tasks/{self._task}/state").json()
            version = state["version"]
            while not self.stopping.is_set():
                answer = {"marks": [[ANN], [ANN, BO], []][version % 3], "remark": f"{version}"}
                body = {"base": version, "answer": answer, "seconds": 1, "done": False}
                saved = self._client.post(f"/tasks/{self._task}/save", json=body)
                assert saved.status_code == 200, saved.text
                version = saved.json()["version"]
                self.acknowledged[version] = answer["remark"]
        except httpx2.TransportError:
            return


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    database = Database(str(path))
    owner = local_owner(database)
    plan = Plan("Killed", Stages.MARK, annotators=1)
    add_member(database, create_project(database, plan, dataset()), owner.id)
    database.close()
    random, kept = Random(19), {}
    killed = 0
    task = 0
    while killed < KILLS:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [*COMMAND, "serve", "--database", path.name, "--port", str(port)]
        with (tmp_path / "log.txt").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 -- our own command
                command, cwd=tmp_path, env=environment(), stdout=log, stderr=log
            )
        wait_for_server(url, process)
        with httpx2.Client(base_url=url) as client:
            page = client.get("/projects").text
            token = page.partition('name="csrf-token" content="')[2].partition('"')[0]
            headers = {"x-csrf-token": token, "origin": url}
            if not task:
                opened = client.post("/projects/1/next", headers=headers)
                task = int(opened.headers["location"].rpartition("/")[2])
        writer = Writer(url, task, token)
        writer.start()
        time.sleep(random.uniform(0.05, 0.6))
        process.kill()
        process.wait()
        writer.stopping.set()
        writer.join()
        killed += 1
        kept.update(writer.acknowledged)

        database = Database(str(path))
        with database.reading() as connection:
            query = "SELECT number, answer FROM versions WHERE task_id = ?"
            found = connection.exec_driver_sql(query, (task,))
            rows: dict[int, str] = {row.number: row.answer for row in found}
        database.close()
        lost = [n for n, remark in kept.items() if f'"remark": "{remark}"' not in rows.get(n, "")]
        assert lost == []
        assert sorted(rows) == list(range(1, max(rows) + 1))
    assert len(kept) > KILLS
