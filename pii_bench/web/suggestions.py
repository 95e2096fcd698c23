"""What a system suggests for the samples of a project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sqlalchemy import update

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError
from pii_bench.runs.predictions.prediction import read_response
from pii_bench.systems.catalog import SystemOptions, build_systems, check_name
from pii_bench.tasks import Task
from pii_bench.web.marks import marks_of_subjects
from pii_bench.web.project_tables import PROJECTS
from pii_bench.web.projects import ProjectError, keep_suggestion, samples_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.systems.base import System
    from pii_bench.web.database import Database
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


def prepare(database: Database, project: Project) -> None:
    """Ask a project's system about every sample that it has no answer for yet.

    What goes wrong is kept with the project (`trouble`), in words without a text.
    """
    with database.reading() as connection:
        waiting = [each for each in samples_of(connection, project) if each.suggestion is None]
    try:
        systems = build_systems(project.plan.system, SystemOptions())
        trouble = asyncio.run(_ask(database, project.plan.system, systems, waiting))
    except PiiBenchError as error:
        trouble = str(error)
    with database.writing() as connection:
        connection.execute(
            update(PROJECTS).where(PROJECTS.c.id == project.id).values(trouble=trouble[:500])
        )


async def _ask(
    database: Database, name: str, systems: Sequence[System], waiting: Sequence[StoredSample]
) -> str:
    detection = [system for system in systems if system.card.task is Task.DETECTION]
    if not detection:
        return f"{name} does not detect"
    card, failed = detection[0].card, 0
    try:
        for stored in waiting:
            text = stored.sample.description
            try:
                response = await detection[0].respond(stored.sample)
            except CallError:
                failed += 1
                continue
            answer = read_response(Task.DETECTION, response, card.output, card.taxonomy, text)
            marks = marks_of_subjects(text, answer.subjects or (), name)
            await asyncio.to_thread(keep_suggestion, database, stored.id, marks)
    finally:
        for system in systems:
            await system.close()
    return f"{failed} of {len(waiting)} calls failed; prepare again" if failed else ""
