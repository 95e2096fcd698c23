"""The pages of annotators and adjudicators: a project, and a sample to work on."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Body, HTTPException, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from pii_bench.errors import PiiBenchError
from pii_bench.files import is_encodable
from pii_bench.scorer.text import tokenize
from pii_bench.taxonomy import CATEGORIES
from pii_bench.web import state
from pii_bench.web.accounts import Role, User
from pii_bench.web.database import NotThereError
from pii_bench.web.marks import (
    occurrences,
    parse_choice,
    parse_marks,
    parse_remark,
    snap,
)
from pii_bench.web.outcomes import (
    after_change,
    disputes,
    marks_of,
    may_annotate,
    outcomes_of,
    qualification,
    settled_choice,
    settled_marks,
)
from pii_bench.web.pages import page
from pii_bench.web.projects import SHARED_PROJECTS, count_samples, find_sample
from pii_bench.web.security import Adjudicator, CurrentUser, Number, VisibleProject
from pii_bench.web.tasks import (
    Part,
    Task,
    begin_task,
    can_undo,
    count_done,
    is_closed,
    keep_time,
    next_task,
    own_task,
    save,
    tasks_of,
    tasks_on,
    undo,
)
from pii_bench.web.votes import align_persons

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pii_bench.web.projects import Project, StoredSample

router: Final = APIRouter(include_in_schema=False)

_STAGE_TITLES: Final = {1: "Mark what is personal", 2: "Choose what the question needs"}


TotalSeconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Position = Annotated[int, Body(ge=0)]
"""A code point of a text."""


class Saved(BaseModel):
    """A change from a browser: `base` is the version that was changed, `seconds` the total time."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    base: int
    answer: dict[str, Any]
    seconds: TotalSeconds
    done: bool = False


@router.get("/projects")
def project_list(request: Request, user: CurrentUser) -> Response:
    """Show the projects that the user may see, with their progress."""
    with state.of(request).database.reading() as connection:
        projects = [
            (project, _own_progress(connection, project, user), _progress(connection, project))
            for project in SHARED_PROJECTS.all_visible(connection, user)
        ]
    return page(request, "projects.html", projects=projects)


@router.get("/projects/{project_id}/work")
def project_work(request: Request, user: CurrentUser, project: VisibleProject) -> Response:
    """Show an annotator's tasks and progress."""
    with state.of(request).database.reading() as connection:
        own = [
            task
            for task in tasks_of(connection, project, account_id=user.id)
            if task.part is Part.ANNOTATOR
        ]
        values: dict[str, Any] = {
            "project": project,
            "categories": CATEGORIES,
            "qualified": may_annotate(connection, project, user.id),
            "reached": qualification(connection, project, user.id),
            "tasks": [(task, find_sample(connection, task.sample_id)) for task in reversed(own)],
            "mine": _own_progress(connection, project, user),
            "disputes": len(disputes(connection, project)),
            "adjudicates": user.role.allows(Role.ADJUDICATOR),
            "stages": _STAGE_TITLES,
        }
    return page(request, "work.html", **values)


@router.post("/projects/{project_id}/next")
def project_next(request: Request, user: CurrentUser, project: VisibleProject) -> Response:
    """Open the annotator's next task."""
    database = state.of(request).database
    with database.reading() as connection:
        qualified = may_annotate(connection, project, user.id)
        failed = not qualified and qualification(connection, project, user.id) is not None
    with database.writing() as connection:
        task = None if failed else next_task(connection, project, user, qualified=qualified)
    if task is None:
        return RedirectResponse(f"/projects/{project.id}/work", 303)
    return RedirectResponse(f"/tasks/{task.id}", 303)


@router.get("/projects/{project_id}/disputes")
def dispute_list(request: Request, _: Adjudicator, project: VisibleProject) -> Response:
    """Show the samples that need an adjudicator."""
    with state.of(request).database.reading() as connection:
        rows = [
            (
                outcome,
                find_sample(connection, outcome.sample_id),
                _adjudication(connection, outcome.sample_id, outcome.stage),
            )
            for outcome in disputes(connection, project)
        ]
    return page(request, "disputes.html", project=project, rows=rows, stages=_STAGE_TITLES)


@router.post("/projects/{project_id}/disputes/{sample_id}/{stage}")
def adjudicate(
    request: Request, user: Adjudicator, project: VisibleProject, sample_id: Number, stage: Number
) -> Response:
    """Open an adjudicator's task, which starts from the majority of the annotators."""
    with state.of(request).database.writing() as connection:
        if (sample_id, stage) not in outcomes_of(connection, project):
            raise NotThereError
        task = _adjudication(connection, sample_id, stage)
        if task is None:
            answer = _settled_answer(connection, sample_id, stage)
            task = begin_task(
                connection, project, user, sample_id, stage, part=Part.ADJUDICATOR, answer=answer
            )
    if task.account_id != user.id:
        raise HTTPException(403, f"{task.annotator} adjudicates this sample.")
    return RedirectResponse(f"/tasks/{task.id}", 303)


@router.get("/tasks/{task_id}")
def task_page(request: Request, user: CurrentUser, task_id: Number) -> Response:
    """Show the page of a task; it loads the text from `task_state`."""
    with state.of(request).database.reading() as connection:
        task, project, stored = _opened(connection, user, task_id)
        progress = _own_progress(connection, project, user)
    return page(
        request,
        "task.html",
        project=project,
        task=task,
        name=stored.name,
        title=_STAGE_TITLES[task.stage],
        adjudicates=task.part is Part.ADJUDICATOR,
        categories=CATEGORIES,
        progress=progress,
        qualifies=stored.qualifies,
    )


@router.get("/tasks/{task_id}/state")
def task_state(request: Request, user: CurrentUser, task_id: Number) -> Response:
    """Return the text, answer and version of a task."""
    with state.of(request).database.reading() as connection:
        task, project, stored = _opened(connection, user, task_id)
        return JSONResponse(_state(connection, project, stored, task))


@router.post("/tasks/{task_id}/save")
def save_task(request: Request, user: CurrentUser, task_id: Number, body: Saved) -> Response:
    """Save a change; it is on the disk before the response is sent."""
    with state.of(request).database.writing() as connection:
        task, project, stored = _opened(connection, user, task_id)
        answer = _clean_answer(project, stored, task, body.answer, done=body.done)
        version = save(
            connection, task, answer, base=body.base, seconds=body.seconds, done=body.done
        )
        if body.done or task.done:
            after_change(connection, project, task)
    return JSONResponse({"version": version})


def _clean_answer(
    project: Project, stored: StoredSample, task: Task, answer: dict[str, Any], *, done: bool
) -> dict[str, Any]:
    """Validate an answer from a browser and return its known fields.

    An answer keeps the name of the system whose suggestions were seen, even if its marks are
    removed.
    """
    cleaned: dict[str, Any]
    if task.stage == 2:
        choice = parse_choice(stored.items or (), answer)
        if done and not (choice.necessary and choice.sufficient):
            raise PiiBenchError(
                "Confirm that each chosen piece is necessary and that together they are enough."
            )
        cleaned = asdict(choice)
    else:
        marks = parse_marks(stored.sample.description, answer)
        uncategorised = sum(mark.category is None for mark in marks)
        if done and uncategorised:
            raise PiiBenchError(f"{uncategorised} marked without a category yet.")
        seen = project.plan.system if answer.get("suggested") and project.plan.suggests else None
        cleaned = {
            "marks": [asdict(mark) for mark in marks],
            "suggested": task.answer.get("suggested") or seen,
            "remark": parse_remark(answer),
        }
    if not is_encodable(cleaned):
        raise PiiBenchError("an answer must not have half of a surrogate pair")
    return cleaned


@router.post("/tasks/{task_id}/undo")
def undo_task(
    request: Request, user: CurrentUser, task_id: Number, base: Annotated[int, Body(embed=True)]
) -> Response:
    """Undo the last change."""
    with state.of(request).database.writing() as connection:
        task, project, stored = _opened(connection, user, task_id)
        was_done = task.done
        task = undo(connection, task, base=base)
        if was_done:
            after_change(connection, project, task)
        return JSONResponse(_state(connection, project, stored, task))


@router.post("/tasks/{task_id}/time")
def time_task(
    request: Request,
    user: CurrentUser,
    task_id: Number,
    seconds: Annotated[TotalSeconds, Body(embed=True)],
) -> Response:
    """Save time that was spent without a change."""
    with state.of(request).database.writing() as connection:
        task, _, _ = _opened(connection, user, task_id)
        keep_time(connection, task, seconds)
    return JSONResponse({})


@router.post("/tasks/{task_id}/occurrences")
def task_occurrences(
    request: Request, user: CurrentUser, task_id: Number, start: Position, end: Position
) -> Response:
    """Return a selection extended to whole tokens, and all occurrences of its text."""
    with state.of(request).database.reading() as connection:
        _, _, stored = _opened(connection, user, task_id)
    text = stored.sample.description
    span = snap(text, start, end)
    if span is None:
        raise PiiBenchError("nothing is selected")
    return JSONResponse({"span": span, "spans": occurrences(text, span)})


def _opened(connection: Connection, user: User, task_id: int) -> tuple[Task, Project, StoredSample]:
    """Return a task of the user, in a project that the user may still see."""
    task = own_task(connection, user, task_id)
    stored = find_sample(connection, task.sample_id)
    project = SHARED_PROJECTS.get_visible(connection, user, stored.project_id)
    return task, project, stored


def _state(
    connection: Connection, project: Project, stored: StoredSample, task: Task
) -> dict[str, Any]:
    text = stored.sample.description
    suggests = project.plan.suggests and not stored.qualifies and task.part is Part.ANNOTATOR
    return {
        "id": task.id,
        "stage": task.stage,
        "text": text,
        "tokens": [(token.start, token.end) for token in tokenize(text)],
        "query": stored.sample.query if task.stage == 2 else None,
        "items": [asdict(item) for item in stored.items or ()] if task.stage == 2 else [],
        "answer": task.answer,
        "version": task.version,
        "canUndo": can_undo(connection, task),
        "seconds": task.seconds,
        "done": task.done,
        "closed": is_closed(connection, task),
        "system": project.plan.system if suggests else "",
        "suggestion": stored.suggestion if suggests and task.stage == 1 else None,
        "versions": _versions(connection, stored, task) if task.part is Part.ADJUDICATOR else [],
    }


def _versions(connection: Connection, stored: StoredSample, task: Task) -> list[dict[str, Any]]:
    """Return the annotators' answers without names, with aligned letters of persons."""
    others = [other for other in tasks_on(connection, stored.id, task.stage) if other.done]
    answers = [other.answer for other in others]
    if task.stage == 1:
        versions = [marks_of(stored, other) for other in others]
        aligned = align_persons(stored.sample.description, versions)
        answers = [
            {**answer, "marks": [asdict(mark) for mark in marks]}
            for answer, marks in zip(answers, aligned, strict=True)
        ]
    return [
        {"label": f"Annotator {n}", "answer": answer} for n, answer in enumerate(answers, start=1)
    ]


def _adjudication(connection: Connection, sample_id: int, stage: int) -> Task | None:
    return next(iter(tasks_on(connection, sample_id, stage, Part.ADJUDICATOR)), None)


def _settled_answer(connection: Connection, sample_id: int, stage: int) -> dict[str, Any]:
    """Return the answer that settles a sample so far, for an adjudicator to confirm."""
    stored = find_sample(connection, sample_id)
    if stage == 1:
        return {"marks": [asdict(mark) for mark in settled_marks(connection, stored)]}
    choice = settled_choice(connection, stored)
    return asdict(replace(choice, necessary=False, sufficient=False))


def _own_progress(connection: Connection, project: Project, user: User) -> dict[str, int]:
    """Return the number of tasks that the user has finished, and the most possible."""
    return {
        "done": count_done(connection, project, user.id),
        "most": count_samples(connection, project) * len(project.plan.stages.numbers),
    }


def _progress(connection: Connection, project: Project) -> dict[str, int]:
    """Return the number of settled outcomes of a project, and the most possible."""
    samples = count_samples(connection, project) - project.plan.qualification
    settled = sum(outcome.settled for outcome in outcomes_of(connection, project).values())
    return {"settled": settled, "most": samples * len(project.plan.stages.numbers)}
