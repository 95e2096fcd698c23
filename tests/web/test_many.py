"""Fifty people save at the same moment: nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.web.chromium import serving
from tests.web.savers import lost, save_together, study

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE, SAVES = 50, 10


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_fifty_people_save_at_once_is_all_there(tmp_path: Path) -> None:
    where = tmp_path / "many.sqlite"
    secrets = study(str(where), PEOPLE)

    with serving(tmp_path, "--database", where.name) as url:
        told = asyncio.run(save_together(url, secrets, SAVES))

    assert {len(own) for own in told.acknowledged.values()} == {SAVES}
    assert len(told.acknowledged) == PEOPLE
    assert lost(str(where), told) == []
