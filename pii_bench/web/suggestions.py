"""What a system suggests for the samples of a project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sqlalchemy import update

from pii_bench.errors import PiiBenchError
from pii_bench.systems.catalog import check_name
from pii_bench.web.marks import marks_of_subjects
from pii_bench.web.projects import ProjectError, keep_suggestion, samples_of
from pii_bench.web.tables import PROJECTS
from pii_bench.web.worker import Failure

if TYPE_CHECKING:
    from pii_bench.web.database import Database
    from pii_bench.web.masker import Masker
    from pii_bench.web.projects import Project, StoredSample


def check_system(name: str) -> None:
    """Refuse a system that a browser may not name: paths and modules of the server.

    Raises:
        ProjectError: it has a colon.
        UnknownNameError: it is in none of the tables.
    """
    if ":" in name:
        raise ProjectError(f"{name!r} names a file or module: give a system by its plain name")
    check_name(name)


async def prepare(database: Database, masker: Masker, project: Project) -> None:
    """Ask a project's system about every sample that it has no answer for yet.

    What goes wrong is kept with the project (`trouble`), in words without a text.
    """
    waiting = await asyncio.to_thread(_waiting, database, project)
    name, failed = project.plan.system, 0
    try:
        for stored in waiting:
            text = stored.sample.description
            found = await masker.subjects(name, text)
            if isinstance(found, Failure):
                failed += 1
                continue
            marks = marks_of_subjects(text, found, name)
            await asyncio.to_thread(keep_suggestion, database, stored.id, marks)
        trouble = f"{failed} of {len(waiting)} calls failed; prepare again" if failed else ""
    except PiiBenchError as error:
        trouble = str(error)
    await asyncio.to_thread(_keep_trouble, database, project, trouble)


def _waiting(database: Database, project: Project) -> list[StoredSample]:
    with database.reading() as connection:
        return [each for each in samples_of(connection, project) if each.suggestion is None]


def _keep_trouble(database: Database, project: Project, trouble: str) -> None:
    with database.writing() as connection:
        connection.execute(
            update(PROJECTS).where(PROJECTS.c.id == project.id).values(trouble=trouble[:500])
        )
