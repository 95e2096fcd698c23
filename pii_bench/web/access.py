"""Who may see which project and task. What somebody may not see is not there (404)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Path

from pii_bench.web.accounts import Role
from pii_bench.web.projects import find_project, members_of
from pii_bench.web.tasks import find_task

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pii_bench.web.accounts import User
    from pii_bench.web.projects import Project
    from pii_bench.web.tasks import Task

# What a database counts up to.
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]

_NOT_THERE: Final = "There is nothing here."


def visible_project(connection: Connection, user: User, project_id: int) -> Project:
    """A project that somebody owns or takes part in.

    Raises:
        HTTPException: 404, there is none.
    """
    try:
        project = find_project(connection, project_id)
    except LookupError:
        raise not_there() from None
    if not user.role.allows(Role.OWNER) and user.id not in members_of(connection, project):
        raise not_there()
    return project


def own_task(connection: Connection, user: User, task_id: int) -> Task:
    """A task of one's own; an owner cannot open another person's either.

    Raises:
        HTTPException: 404, there is none.
    """
    try:
        task = find_task(connection, task_id)
    except LookupError:
        raise not_there() from None
    if task.account_id != user.id:
        raise not_there()
    return task


def not_there() -> HTTPException:
    """What is answered where something is not there, or not for this person."""
    return HTTPException(404, _NOT_THERE)
