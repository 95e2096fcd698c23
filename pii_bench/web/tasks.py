"""Tasks: the assignment of samples to annotators, and all versions of their answers.

Every change adds a version, so nothing that was saved is lost; undo adds a copy of an earlier one.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, func, insert, select, update

from pii_bench.errors import PiiBenchError
from pii_bench.web.database import NotThereError, find_row, insert_row
from pii_bench.web.projects import find_sample
from pii_bench.web.tables import OUTCOMES, SAMPLES, TASKS, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Select

    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database
    from pii_bench.web.projects import Project

_EMPTY: Final[Mapping[int, dict[str, Any]]] = {1: {"marks": []}, 2: {"needed": []}}


class Part(StrEnum):
    """The role in which a person answers."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"


class ConflictError(PiiBenchError):
    """A change to an answer that has a later version or is closed."""


@dataclass(frozen=True, slots=True)
class Task:
    """The answer of one person for one sample in one stage, in its last version.

    Attributes:
        account_id: None if the answer was imported or the account was deleted.
        version: number of the version; the first is 1.
        seconds: time that the person spent on it.
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


def next_task(
    connection: Connection, project: Project, user: User, *, qualified: bool
) -> Task | None:
    """Return the user's open task, else begin one on a sample with a free place; None if none is.

    Samples that others have begun come first, so that agreement is known early, in the order of
    the dataset. Users who are not `qualified` get those of the qualification round.

    The transaction must be a writing one, so that no other user takes the place meanwhile.
    """
    query = (
        _select_annotations(project)
        .where(TASKS.c.account_id == user.id, TASKS.c.done.is_(False))
        .order_by(SAMPLES.c.qualifies.desc(), TASKS.c.stage, SAMPLES.c.position)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is not None:
        return _task(row)
    place = _free_place(connection, project, user, qualified=qualified)
    return None if place is None else begin_task(connection, project, user, *place)


def _select_tasks(project: Project) -> Select[Any]:
    return select(TASKS).join_from(TASKS, SAMPLES).where(SAMPLES.c.project_id == project.id)


def _select_annotations(project: Project) -> Select[Any]:
    return _select_tasks(project).where(TASKS.c.part == Part.ANNOTATOR.value)


def _free_place(
    connection: Connection, project: Project, user: User, *, qualified: bool
) -> tuple[int, int] | None:
    """Return the id of a sample with a free place, and the stage."""
    place = (TASKS.c.sample_id, TASKS.c.stage)
    taken_by_user = func.count().filter(TASKS.c.account_id == user.id)
    query = _select_annotations(project).with_only_columns(*place, func.count(), taken_by_user)
    counts = {
        (sample_id, stage): (taken, own)
        for sample_id, stage, taken, own in connection.execute(query.group_by(*place))
    }
    samples = connection.execute(
        select(
            SAMPLES.c.id, SAMPLES.c.position, SAMPLES.c.qualifies, SAMPLES.c.asked.is_not(None)
        ).where(SAMPLES.c.project_id == project.id, SAMPLES.c.qualifies.is_(not qualified))
    ).all()
    free = []
    for sample_id, position, qualifies, has_items in samples:
        for stage in project.plan.stages.numbers:
            taken, own = counts.get((sample_id, stage), (0, 0))
            # The qualification round has a place for everybody.
            has_place = qualifies or taken < project.plan.annotators
            if has_place and not own and (stage == 1 or has_items):
                free.append((stage, 0 if qualifies else -taken, position, sample_id))
    if not free:
        return None
    stage, _, _, sample_id = min(free)
    return sample_id, stage


def begin_task(
    connection: Connection,
    project: Project,
    user: User,
    sample_id: int,
    stage: int,
    *,
    part: Part = Part.ANNOTATOR,
    answer: dict[str, Any] | None = None,
) -> Task:
    """Create a task; without an answer it starts from the suggestions, if the project has them."""
    if answer is None:
        answer = _EMPTY[stage]
        stored = find_sample(connection, sample_id)
        suggests = project.plan.suggests and stored.suggestion is not None
        if stage == 1 and suggests and not stored.qualifies:
            answer = {"marks": stored.suggestion, "suggested": project.plan.system}
    return add_task(connection, sample_id, stage, part, answer, user.name, user.id)


def add_task(
    connection: Connection,
    sample_id: int,
    stage: int,
    part: Part,
    answer: dict[str, Any],
    annotator: str,
    account_id: int | None,
) -> Task:
    """Store a task in the first free place; without an account it is imported and done."""
    places = connection.scalars(
        select(TASKS.c.place).where(
            TASKS.c.sample_id == sample_id, TASKS.c.stage == stage, TASKS.c.part == part.value
        )
    ).all()
    now, text = time.time(), json.dumps(answer)
    row = {
        "sample_id": sample_id,
        "stage": stage,
        "part": part.value,
        "place": next(n for n in range(1, len(places) + 2) if n not in places),
        "account_id": account_id,
        "annotator": annotator,
        "imported": account_id is None,
        "version": 1,
        "answer": text,
        "done": account_id is None,
        "seconds": 0.0,
        "touched": now,
    }
    task_id = insert_row(connection, TASKS, **row)
    first = {"task_id": task_id, "number": 1, "answer": text, "before": None, "saved": now}
    connection.execute(insert(VERSIONS).values(**first))
    return find_task(connection, task_id)


def find_task(connection: Connection, task_id: int) -> Task:
    """Return a task by its id."""
    return _task(find_row(connection, TASKS, task_id))


def own_task(connection: Connection, user: User, task_id: int) -> Task:
    """Return a task of the user.

    Raises:
        NotThereError: it does not exist or belongs to another user, even if the user is an owner.
    """
    task = find_task(connection, task_id)
    if task.account_id != user.id:
        raise NotThereError
    return task


def tasks_of(
    connection: Connection, project: Project, *, account_id: int | None = None
) -> list[Task]:
    """Return the tasks of a project, of everybody or of one account, oldest first."""
    query = _select_tasks(project).order_by(TASKS.c.id)
    if account_id is not None:
        query = query.where(TASKS.c.account_id == account_id)
    return [_task(row) for row in connection.execute(query)]


def count_done(connection: Connection, project: Project, account_id: int) -> int:
    """Return the number of tasks that an annotator has finished."""
    query = _select_annotations(project).where(
        TASKS.c.account_id == account_id, TASKS.c.done.is_(True)
    )
    return connection.scalar(query.with_only_columns(func.count())) or 0


def tasks_on(
    connection: Connection, sample_id: int, stage: int, part: Part = Part.ANNOTATOR
) -> list[Task]:
    """Return the tasks on a sample in one stage, by place."""
    query = (
        select(TASKS)
        .where(TASKS.c.sample_id == sample_id, TASKS.c.stage == stage, TASKS.c.part == part.value)
        .order_by(TASKS.c.place)
    )
    return [_task(row) for row in connection.execute(query)]


def _task(row: Any) -> Task:
    values = {field.name: getattr(row, field.name) for field in fields(Task)}
    return Task(**{**values, "part": Part(row.part), "answer": json.loads(row.answer)})


def save(
    connection: Connection,
    task: Task,
    answer: dict[str, Any],
    *,
    base: int,
    seconds: float,
    done: bool,
) -> int:
    """Add a version to an answer, based on the version `base`, and return its number.

    The transaction must be a writing one, in which the task was read. `seconds` is the total time
    spent, see `keep_time`.

    Raises:
        ConflictError: there is a later version than `base`, or the task is closed.
    """
    _check_base(connection, task, base)
    _add_version(connection, task, json.dumps(answer), before=base, done=done)
    keep_time(connection, task, seconds)
    return task.version + 1


def undo(connection: Connection, task: Task, *, base: int) -> Task:
    """Undo the last change by adding a copy of the version before it.

    Raises:
        ConflictError: there is a later version than `base`, nothing to undo, or the task is
            closed.
    """
    _check_base(connection, task, base)
    before = _before(connection, task)
    if before is None:
        raise ConflictError("There is nothing to take back.")
    earlier = connection.execute(
        select(VERSIONS).where(VERSIONS.c.task_id == task.id, VERSIONS.c.number == before)
    ).one()
    _add_version(connection, task, earlier.answer, before=earlier.before, done=False)
    keep_time(connection, task, task.seconds)
    return find_task(connection, task.id)


def can_undo(connection: Connection, task: Task) -> bool:
    """Return True if there is a change to undo."""
    return _before(connection, task) is not None


def keep_time(connection: Connection, task: Task, seconds: float) -> None:
    """Save the total time spent; it grows by at most the time since the last call."""
    now = time.time()
    touched = connection.scalar(select(TASKS.c.touched).where(TASKS.c.id == task.id)) or now
    kept = min(max(seconds, task.seconds), task.seconds + max(0.0, now - touched))
    connection.execute(update(TASKS).where(TASKS.c.id == task.id).values(seconds=kept, touched=now))


def _check_base(connection: Connection, task: Task, base: int) -> None:
    if is_closed(connection, task):
        raise ConflictError("This sample is closed: its answers can no longer be changed.")
    if base != task.version:
        raise ConflictError("This sample was changed in another window or on another machine.")


def _before(connection: Connection, task: Task) -> int | None:
    """Return the number of the version that undo restores; None if there is none."""
    query = select(VERSIONS.c.before).where(
        VERSIONS.c.task_id == task.id, VERSIONS.c.number == task.version
    )
    return connection.scalar(query)


def _add_version(
    connection: Connection, task: Task, answer: str, *, before: int | None, done: bool
) -> None:
    number = task.version + 1
    row = {"task_id": task.id, "number": number, "answer": answer, "before": before}
    connection.execute(insert(VERSIONS).values(**row, saved=time.time()))
    connection.execute(
        update(TASKS).where(TASKS.c.id == task.id).values(version=number, answer=answer, done=done)
    )


def is_closed(connection: Connection, task: Task) -> bool:
    """Return True if an answer counts already and can no longer be changed."""
    if task.imported:
        return True
    if task.part is Part.ADJUDICATOR:
        # Stage 2 asks about the decision on stage 1.
        begun = select(SAMPLES.c.asked.is_not(None)).where(SAMPLES.c.id == task.sample_id)
        return task.stage == 1 and bool(connection.scalar(begun))
    if connection.scalar(select(SAMPLES.c.qualifies).where(SAMPLES.c.id == task.sample_id)):
        return task.done
    query = select(func.count()).where(
        OUTCOMES.c.sample_id == task.sample_id, OUTCOMES.c.stage == task.stage
    )
    return bool(connection.scalar(query))


def restart_qualification(database: Database, project: Project, account_id: int) -> None:
    """Delete the answers of an annotator in the qualification round, which starts again."""
    own = select(SAMPLES.c.id).where(
        SAMPLES.c.project_id == project.id, SAMPLES.c.qualifies.is_(True)
    )
    database.write(
        delete(TASKS).where(TASKS.c.account_id == account_id, TASKS.c.sample_id.in_(own))
    )
