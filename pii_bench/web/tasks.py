"""Tasks: who annotates which sample, and every version of every answer.

An answer is only ever added to: each change is a version of its own, so nothing that was saved is
lost, and undo is a new version that says what an earlier one said.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from pii_bench.errors import PiiBenchError
from pii_bench.web.projects import find_sample
from pii_bench.web.tables import OUTCOMES, SAMPLES, TASKS, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database
    from pii_bench.web.projects import Project

_ATTEMPTS: Final = 20
_EMPTY: Final[Mapping[int, dict[str, Any]]] = {1: {"marks": []}, 2: {"needed": []}}


class Part(StrEnum):
    """As what somebody answers."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"


class ConflictError(PiiBenchError):
    """An answer that was changed elsewhere since, or can no longer be changed."""


@dataclass(frozen=True, slots=True)
class Task:
    """One person, one sample, one stage.

    Attributes:
        account_id: None where it was imported, or the account is gone.
        version: number of the last version; the first is 1.
        answer: what it says.
        seconds: how long somebody was at it.
    """

    id: int
    sample_id: int
    stage: int
    part: Part
    account_id: int | None
    annotator: str
    imported: bool
    version: int
    answer: dict[str, Any]
    done: bool
    seconds: float


def next_task(database: Database, project: Project, user: User, *, qualified: bool) -> Task | None:
    """What somebody should do next: what they have open, else a sample with a free place.

    Samples that others have begun come first, so that agreement is known early; among these
    those of the first positions. Who is not qualified gets the samples of the qualification round.
    """
    for _ in range(_ATTEMPTS):
        with database.reading() as connection:
            found = _open_task(connection, project, user) or _free_place(
                connection, project, user, qualified=qualified
            )
        if found is None or isinstance(found, Task):
            return found
        try:
            return begin_task(database, project, user, *found)
        except IntegrityError:
            # Somebody else took the place at the same time.
            continue
    raise ConflictError("too many people ask for a sample at once; try again")


def _open_task(connection: Connection, project: Project, user: User) -> Task | None:
    query = (
        select(TASKS)
        .join(SAMPLES, SAMPLES.c.id == TASKS.c.sample_id)
        .where(
            SAMPLES.c.project_id == project.id,
            TASKS.c.account_id == user.id,
            TASKS.c.part == Part.ANNOTATOR.value,
            TASKS.c.done.is_(False),
        )
        .order_by(SAMPLES.c.qualifies.desc(), TASKS.c.stage, SAMPLES.c.position)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _task(row)


def _free_place(
    connection: Connection, project: Project, user: User, *, qualified: bool
) -> tuple[int, int] | None:
    """Sample and stage."""
    query = (
        select(TASKS.c.sample_id, TASKS.c.stage, TASKS.c.account_id)
        .join(SAMPLES, SAMPLES.c.id == TASKS.c.sample_id)
        .where(SAMPLES.c.project_id == project.id, TASKS.c.part == Part.ANNOTATOR.value)
    )
    taken: Counter[tuple[int, int]] = Counter()
    own: set[tuple[int, int]] = set()
    for row in connection.execute(query):
        taken[row.sample_id, row.stage] += 1
        if row.account_id == user.id:
            own.add((row.sample_id, row.stage))
    samples = connection.execute(
        select(
            SAMPLES.c.id, SAMPLES.c.position, SAMPLES.c.qualifies, SAMPLES.c.asked.is_not(None)
        ).where(SAMPLES.c.project_id == project.id, SAMPLES.c.qualifies.is_(not qualified))
    ).all()
    free = [
        # Qualification has a place for everybody.
        (stage, 0 if qualifies else -taken[sample_id, stage], position, sample_id)
        for sample_id, position, qualifies, has_items in samples
        for stage in project.plan.stages.numbers
        if (sample_id, stage) not in own
        and (qualifies or taken[sample_id, stage] < project.plan.annotators)
        and (stage == 1 or has_items)
    ]
    if not free:
        return None
    stage, _, _, sample_id = min(free)
    return sample_id, stage


def begin_task(
    database: Database,
    project: Project,
    user: User,
    sample_id: int,
    stage: int,
    *,
    part: Part = Part.ANNOTATOR,
    answer: dict[str, Any] | None = None,
) -> Task:
    """Give somebody a sample; it begins with the system's suggestions where these are on.

    Raises:
        IntegrityError: it is taken.
    """
    with database.writing() as connection:
        stored = find_sample(connection, sample_id)
        begun = dict(_EMPTY[stage])
        suggests = project.plan.suggests and stored.suggestion is not None
        if stage == 1 and part is Part.ANNOTATOR and suggests and not stored.qualifies:
            begun = {"marks": stored.suggestion, "suggested": project.plan.system}
        places = connection.scalars(
            select(TASKS.c.place).where(
                TASKS.c.sample_id == sample_id, TASKS.c.stage == stage, TASKS.c.part == part.value
            )
        ).all()
        place = next(n for n in range(1, len(places) + 2) if n not in places)
        return _insert(
            connection,
            sample_id=sample_id,
            stage=stage,
            part=part.value,
            place=place,
            account_id=user.id,
            annotator=user.name,
            imported=False,
            done=False,
            answer=json.dumps(begun if answer is None else answer),
        )


def import_task(
    connection: Connection, sample_id: int, stage: int, annotator: str, answer: dict[str, Any]
) -> None:
    """Keep an answer that was given elsewhere."""
    places = connection.scalar(
        select(func.count()).where(TASKS.c.sample_id == sample_id, TASKS.c.stage == stage)
    )
    _insert(
        connection,
        sample_id=sample_id,
        stage=stage,
        part=Part.ANNOTATOR.value,
        place=(places or 0) + 1,
        account_id=None,
        annotator=annotator,
        imported=True,
        done=True,
        answer=json.dumps(answer),
    )


def _insert(connection: Connection, **values: Any) -> Task:
    now = time.time()
    row = {**values, "version": 1, "seconds": 0.0, "touched": now}
    made = connection.execute(insert(TASKS).values(**row))
    (task_id,) = made.inserted_primary_key or (0,)
    connection.execute(
        insert(VERSIONS).values(
            task_id=task_id, number=1, answer=values["answer"], before=None, saved=now
        )
    )
    return find_task(connection, task_id)


def find_task(connection: Connection, task_id: int) -> Task:
    """A task by its number.

    Raises:
        LookupError: there is none.
    """
    row = connection.execute(select(TASKS).where(TASKS.c.id == task_id)).one_or_none()
    if row is None:
        raise LookupError(task_id)
    return _task(row)


def tasks_of(
    connection: Connection, project: Project, *, account_id: int | None = None
) -> list[Task]:
    """The tasks of a project, of all or of one person, in the order in which they were begun."""
    query = (
        select(TASKS)
        .join(SAMPLES, SAMPLES.c.id == TASKS.c.sample_id)
        .where(SAMPLES.c.project_id == project.id)
        .order_by(TASKS.c.id)
    )
    if account_id is not None:
        query = query.where(TASKS.c.account_id == account_id)
    return [_task(row) for row in connection.execute(query)]


def count_done(connection: Connection, project: Project, account_id: int) -> int:
    """How many samples somebody has finished as an annotator."""
    query = (
        select(func.count())
        .select_from(TASKS.join(SAMPLES, SAMPLES.c.id == TASKS.c.sample_id))
        .where(
            SAMPLES.c.project_id == project.id,
            TASKS.c.account_id == account_id,
            TASKS.c.part == Part.ANNOTATOR.value,
            TASKS.c.done.is_(True),
        )
    )
    return connection.scalar(query) or 0


def tasks_on(connection: Connection, sample_id: int, stage: int) -> list[Task]:
    """The annotators' tasks on a sample, by place."""
    query = (
        select(TASKS)
        .where(
            TASKS.c.sample_id == sample_id,
            TASKS.c.stage == stage,
            TASKS.c.part == Part.ANNOTATOR.value,
        )
        .order_by(TASKS.c.place)
    )
    return [_task(row) for row in connection.execute(query)]


def _task(row: Any) -> Task:
    return Task(
        id=row.id,
        sample_id=row.sample_id,
        stage=row.stage,
        part=Part(row.part),
        account_id=row.account_id,
        annotator=row.annotator,
        imported=row.imported,
        version=row.version,
        answer=json.loads(row.answer),
        done=row.done,
        seconds=row.seconds,
    )


def save(
    connection: Connection,
    task: Task,
    answer: dict[str, Any],
    *,
    base: int,
    seconds: float,
    done: bool,
) -> int:
    """Add a version to an answer.

    Args:
        connection: of a writing transaction, in which the task was found.
        task: whose.
        answer: checked before.
        base: the version that the change was made to.
        seconds: time at it in all, as the browser counted; more than has passed is not taken.
        done: whether this finishes the task.

    Returns:
        The number of the new version.

    Raises:
        ConflictError: there is a later version than `base`.
    """
    if base != task.version:
        raise ConflictError("This sample was changed in another window or on another machine.")
    text = json.dumps(answer)
    return _add_version(connection, task, text, before=base, seconds=seconds, done=done)


def undo(connection: Connection, task: Task, *, base: int) -> Task:
    """Take the last change back, with a new version that says what the one before said.

    Raises:
        ConflictError: there is a later version than `base`, or nothing to take back.
    """
    if base != task.version:
        raise ConflictError("This sample was changed in another window or on another machine.")
    before = connection.scalar(
        select(VERSIONS.c.before).where(
            VERSIONS.c.task_id == task.id, VERSIONS.c.number == task.version
        )
    )
    if before is None:
        raise ConflictError("There is nothing to take back.")
    earlier = connection.execute(
        select(VERSIONS).where(VERSIONS.c.task_id == task.id, VERSIONS.c.number == before)
    ).one()
    _add_version(
        connection,
        task,
        earlier.answer,
        before=earlier.before,
        seconds=task.seconds,
        done=False,
    )
    return find_task(connection, task.id)


def _add_version(
    connection: Connection,
    task: Task,
    answer: str,
    *,
    before: int | None,
    seconds: float,
    done: bool,
) -> int:
    now, number = time.time(), task.version + 1
    touched = connection.scalar(select(TASKS.c.touched).where(TASKS.c.id == task.id)) or now
    passed = max(0.0, now - touched)
    connection.execute(
        insert(VERSIONS).values(
            task_id=task.id, number=number, answer=answer, before=before, saved=now
        )
    )
    connection.execute(
        update(TASKS)
        .where(TASKS.c.id == task.id)
        .values(
            version=number,
            answer=answer,
            done=done,
            touched=now,
            seconds=min(max(seconds, task.seconds), task.seconds + passed),
        )
    )
    return number


def can_undo(connection: Connection, task: Task) -> bool:
    """Whether there is a change to take back."""
    query = select(VERSIONS.c.before).where(
        VERSIONS.c.task_id == task.id, VERSIONS.c.number == task.version
    )
    return connection.scalar(query) is not None


def keep_time(connection: Connection, task: Task, seconds: float) -> None:
    """Keep how long somebody is at it, where nothing else changes; see `save`."""
    now = time.time()
    touched = connection.scalar(select(TASKS.c.touched).where(TASKS.c.id == task.id)) or now
    kept = min(max(seconds, task.seconds), task.seconds + max(0.0, now - touched))
    connection.execute(update(TASKS).where(TASKS.c.id == task.id).values(seconds=kept, touched=now))


def is_closed(connection: Connection, task: Task) -> bool:
    """Whether an annotator's answer counts already and can no longer be changed."""
    if task.imported:
        return True
    if task.part is Part.ADJUDICATOR:
        later = and_(TASKS.c.sample_id == task.sample_id, TASKS.c.stage == task.stage + 1)
        return bool(connection.scalar(select(func.count()).where(later)))
    query = select(func.count()).where(
        OUTCOMES.c.sample_id == task.sample_id, OUTCOMES.c.stage == task.stage
    )
    qualified = select(SAMPLES.c.qualifies).where(SAMPLES.c.id == task.sample_id)
    if connection.scalar(qualified):
        return task.done
    return bool(connection.scalar(query))


def restart_qualification(database: Database, project: Project, account_id: int) -> None:
    """Let somebody try the qualification round again, from the beginning."""
    own = select(SAMPLES.c.id).where(
        SAMPLES.c.project_id == project.id, SAMPLES.c.qualifies.is_(True)
    )
    with database.writing() as connection:
        connection.execute(
            delete(TASKS).where(TASKS.c.account_id == account_id, TASKS.c.sample_id.in_(own))
        )
