"""Acknowledged saves are stored, even after a kill or with fifty people at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import httpx2
import pytest
from sqlalchemy import select

from pii_bench.web.database import Database
from pii_bench.web.tables import VERSIONS
from tests.web.chromium import serving, started
from tests.web.savers import changes, lost, remarks_of, save_together, study

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS, PEOPLE, SAVES = 30, 50, 10


def test_acknowledged_saves_survive_a_kill_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    (secret,) = study(str(path), 1)
    random, kept = Random(19), set()

    async def save(url: str) -> None:
        with suppress(httpx2.TransportError):
            async for task, remark, _ in changes(url, secret, 10**6):
                kept.add((task, remark))

    async def kill_while_saving() -> None:
        process, url = started(tmp_path, "--database", path.name)
        saving = asyncio.create_task(save(url))
        await asyncio.sleep(random.uniform(0.05, 0.6))
        process.kill()
        process.wait()
        await saving

    for _ in range(KILLS):
        asyncio.run(kill_while_saving())

        assert kept <= remarks_of(str(path))
        database = Database(str(path))
        with database.reading() as connection:
            numbers = sorted(connection.scalars(select(VERSIONS.c.number)))
        database.close()
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(kept) > KILLS


def test_concurrent_saves_of_fifty_people_are_all_stored(tmp_path: Path) -> None:
    where = tmp_path / "many.sqlite"
    secrets = study(str(where), PEOPLE)

    with serving(tmp_path, "--database", where.name) as url:
        result = asyncio.run(save_together(url, secrets, SAVES))

    assert [len(own) for own in result.acknowledged.values()] == [SAVES] * PEOPLE
    assert lost(str(where), result) == []
