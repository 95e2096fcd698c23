"""The pages of a study lead: create a project, and manage its suggestions, people and files."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, BackgroundTasks, Form, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from sqlalchemy import update

from pii_bench.datasets.catalog import DATASETS, load_dataset
from pii_bench.datasets.readings import load_readings
from pii_bench.datasets.span_files import SPAN_FORMATS
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole
from pii_bench.ranking.external import HUMAN, to_lines
from pii_bench.systems.catalog import check_name
from pii_bench.web import state
from pii_bench.web.accounts import list_accounts
from pii_bench.web.database import NotThereError
from pii_bench.web.marks import marks_of_subjects
from pii_bench.web.masker import Failure
from pii_bench.web.outcomes import (
    disputes,
    export,
    human_answers,
    import_readings,
    may_annotate,
    outcomes_of,
    qualification,
    reconsider,
    stage_reports,
)
from pii_bench.web.pages import download, page, uploaded
from pii_bench.web.projects import (
    DEFAULT_GUIDELINES,
    SHARED_PROJECTS,
    Plan,
    Project,
    Stages,
    admit_member,
    change_project,
    create_project,
    keep_suggestion,
    remove_member,
    samples_of,
)
from pii_bench.web.security import Owner, VisibleProject
from pii_bench.web.settings import MOST_CHARACTERS
from pii_bench.web.tables import PROJECTS
from pii_bench.web.tasks import Part, restart_qualification, tasks_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.web.accounts import Account
    from pii_bench.web.database import Database
    from pii_bench.web.masker import Masker
    from pii_bench.web.projects import StoredSample

router: Final = APIRouter(include_in_schema=False)

MOST_SAMPLES: Final = 5000

OURS: Final = "ours"
FORMATS: Final = (OURS, "capid", "tab", *SPAN_FORMATS)
_ENDINGS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".txt", ".bio", ".conll", ".iob2")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@router.get("/projects/new")
def new_project(request: Request, _: Owner) -> Response:
    """Show the form for a new project."""
    return page(
        request,
        "project_new.html",
        datasets=list(DATASETS),
        formats=FORMATS,
        readings=[name for name in DATASETS if load_readings(name)],
        guidelines=DEFAULT_GUIDELINES,
        system=state.of(request).settings.system,
    )


@router.post("/projects/new")
def make_project(  # noqa: PLR0913, PLR0917 -- the fields of the form
    request: Request,
    user: Owner,
    background: BackgroundTasks,
    name: Annotated[str, Form(max_length=200)],
    source: Annotated[str, Form(max_length=100)] = "demo",
    file: UploadFile | None = None,
    format: Annotated[str, Form(max_length=40)] = OURS,  # noqa: A002 -- its name in the form
    stages: Annotated[Stages, Form()] = Stages.BOTH,
    annotators: Annotated[int, Form()] = 5,
    limit: Annotated[int, Form(ge=1, le=MOST_SAMPLES)] = MOST_SAMPLES,
    threshold: Annotated[float, Form(allow_inf_nan=False)] = 0.6,
    qualification: Annotated[int, Form()] = 0,
    pass_mark: Annotated[float, Form(allow_inf_nan=False)] = 0.8,
    system: Annotated[str, Form(max_length=200)] = "",
    guidelines: Annotated[str, Form(max_length=50_000)] = "",
) -> Response:
    """Create a project, and start to prepare suggestions if a system is named."""
    web = state.of(request)
    plan = Plan(
        name=name,
        stages=stages,
        annotators=annotators,
        threshold=threshold,
        qualification=qualification,
        pass_mark=pass_mark,
        system=system.strip(),
        suggests=bool(system.strip()),
        guidelines=_own_guidelines(guidelines),
    )
    if plan.system:
        check_system(plan.system)
    dataset = _dataset(source, file, format)
    dataset = replace(dataset, samples=dataset.samples[:limit])
    project = create_project(web.database, plan, dataset)
    SHARED_PROJECTS.add_member(web.database, project.id, user.id)
    if plan.system:
        background.add_task(prepare, web.database, web.masker, project)
    return RedirectResponse(f"/projects/{project.id}", 303)


@router.post("/projects/readings")
def make_project_of_readings(
    request: Request,
    user: Owner,
    source: Annotated[str, Form(max_length=100)],
) -> Response:
    """Create a project from the repository's readings of a dataset."""
    if source not in DATASETS:
        raise PiiBenchError("there is no such dataset")
    web = state.of(request)
    project = import_readings(web.database, load_dataset(source))
    SHARED_PROJECTS.add_member(web.database, project.id, user.id)
    return RedirectResponse(f"/projects/{project.id}", 303)


def _own_guidelines(guidelines: str) -> str:
    """Normalise guidelines from a form; the default ones become empty."""
    text = guidelines.replace("\r\n", "\n").strip()
    return "" if text == DEFAULT_GUIDELINES else text


def check_system(name: str) -> None:
    """Check that a browser may name a system, which must not be a path or module of the server.

    Raises:
        PiiBenchError: the name has a colon.
        UnknownNameError: there is no such system.
    """
    if ":" in name:
        raise PiiBenchError(f"{name!r} names a file or module: give a system by its plain name")
    check_name(name)


async def prepare(database: Database, masker: Masker, project: Project) -> None:
    """Run a project's system on all samples without suggestions.

    Errors are stored with the project (`Project.trouble`), without quoting a text.
    """

    def missing_samples() -> list[StoredSample]:
        with database.reading() as connection:
            samples = samples_of(connection, project)
        return [stored for stored in samples if stored.suggestion is None]

    waiting = await asyncio.to_thread(missing_samples)
    name, failed = project.plan.system, 0
    try:
        for stored in waiting:
            text = stored.sample.description
            subjects = await masker.subjects(name, text)
            if isinstance(subjects, Failure):
                failed += 1
                continue
            marks = marks_of_subjects(text, subjects, name)
            await asyncio.to_thread(keep_suggestion, database, stored.id, marks)
        trouble = f"{failed} of {len(waiting)} calls failed; prepare again" if failed else ""
    except PiiBenchError as error:
        trouble = str(error)
    statement = update(PROJECTS).where(PROJECTS.c.id == project.id).values(trouble=trouble[:500])
    await asyncio.to_thread(database.write, statement)


def _dataset(source: str, file: UploadFile | None, kind: str) -> Dataset:
    """Load a dataset by its name or from an uploaded file."""
    if file is None or not file.filename:
        if source not in DATASETS:
            raise PiiBenchError("choose a dataset or a file")
        return load_dataset(source)
    if kind not in FORMATS:
        raise PiiBenchError(f"the format of a file must be one of {', '.join(FORMATS)}")
    name = Path(file.filename)
    if name.suffix.lower() not in _ENDINGS:
        raise PiiBenchError(f"the name of a file must end in one of {', '.join(_ENDINGS)}")
    stem = _UNSAFE.sub("-", name.stem)[:80].strip(".-") or "file"
    with uploaded(file, f"{stem}{name.suffix.lower()}") as path:
        dataset = load_dataset(str(path) if kind == OURS else f"{kind}:{path}")
    if any(len(sample.description) > MOST_CHARACTERS for sample in dataset.samples):
        raise PiiBenchError(f"a text must have at most {MOST_CHARACTERS:,} characters")
    return dataset


@router.get("/projects/{project_id}")
def project_page(request: Request, user: Owner, project: VisibleProject) -> Response:
    """Show the progress, people, agreement and settings of a project."""
    database = state.of(request).database
    accounts = list_accounts(database)
    with database.reading() as connection:
        samples = samples_of(connection, project)
        outcomes = outcomes_of(connection, project)
        tasks = tasks_of(connection, project)
        members = SHARED_PROJECTS.members_of(connection, project.id)
        rated = [sample for sample in samples if not sample.qualifies]
        own = {sample.id for sample in rated}
        done = Counter(
            t.stage for t in tasks if t.done and t.part is Part.ANNOTATOR and t.sample_id in own
        )
        values: dict[str, Any] = {
            "project": project,
            "samples": len(rated),
            "stages": [
                {
                    "number": stage,
                    "done": done[stage],
                    "most": len(rated) * project.plan.annotators,
                    "settled": sum(o.settled for (_, s), o in outcomes.items() if s == stage),
                }
                for stage in project.plan.stages.numbers
            ],
            "people": _people(connection, project, [*accounts, user]),
            "others": [account for account in accounts if account.id not in members],
            "reports": stage_reports(connection, project),
            "disputes": len(disputes(connection, project)),
            "suggested": sum(sample.suggestion is not None for sample in samples),
            "all_samples": len(samples),
            "results": state.of(request).settings.results / HUMAN,
        }
    return page(request, "project.html", **values)


def _people(
    connection: Connection, project: Project, accounts: Iterable[Account]
) -> list[dict[str, object]]:
    by_id = {account.id: account for account in accounts}
    tasks = [t for t in tasks_of(connection, project) if t.part is Part.ANNOTATOR]
    rows: list[dict[str, object]] = []
    for account_id in sorted(SHARED_PROJECTS.members_of(connection, project.id)):
        own = [task for task in tasks if task.account_id == account_id]
        seconds = [task.seconds for task in own if task.done]
        rows.append(
            {
                "account": by_id.get(account_id),
                "id": account_id,
                "done": sum(task.done for task in own),
                "open": sum(not task.done for task in own),
                "median": median(seconds) if seconds else None,
                "reached": qualification(connection, project, account_id),
                "admitted": may_annotate(connection, project, account_id),
            }
        )
    return rows


@router.post("/projects/{project_id}/people")
def change_people(
    request: Request,
    user: Owner,
    project: VisibleProject,
    account: Annotated[int, Form(ge=1, le=2**31 - 1)],
    action: Annotated[str, Form(max_length=20)] = "add",
) -> Response:
    """Add or remove a member, or decide on their qualification."""
    database = state.of(request).database
    with database.reading() as connection:
        is_member = account in SHARED_PROJECTS.members_of(connection, project.id)
    if action == "add":
        if account not in {user.id, *(other.id for other in list_accounts(database))}:
            raise NotThereError
        SHARED_PROJECTS.add_member(database, project.id, account)
    elif not is_member:
        raise NotThereError
    elif action == "remove":
        remove_member(database, project, account)
    elif action == "admit":
        admit_member(database, project, account)
    elif action == "again":
        restart_qualification(database, project, account)
    else:
        raise PiiBenchError("allowed: add, remove, admit, again")
    return RedirectResponse(f"/projects/{project.id}#people", 303)


@router.post("/projects/{project_id}/settings")
def change_settings(
    request: Request,
    _: Owner,
    project: VisibleProject,
    threshold: Annotated[float, Form(allow_inf_nan=False)],
    guidelines: Annotated[str, Form(max_length=50_000)] = "",
    suggests: Annotated[bool, Form()] = False,
) -> Response:
    """Change the threshold and the guidelines, and show or hide suggestions."""
    database = state.of(request).database
    project = change_project(
        database,
        project,
        threshold=threshold,
        guidelines=_own_guidelines(guidelines),
        suggests=suggests and bool(project.plan.system),
    )
    reconsider(database, project)
    return RedirectResponse(f"/projects/{project.id}", 303)


@router.post("/projects/{project_id}/prepare")
def prepare_suggestions(
    request: Request, _: Owner, project: VisibleProject, background: BackgroundTasks
) -> Response:
    """Start to prepare the missing suggestions."""
    web = state.of(request)
    if not project.plan.system:
        raise PiiBenchError("this project has no system")
    background.add_task(prepare, web.database, web.masker, project)
    return RedirectResponse(f"/projects/{project.id}", 303)


@router.get("/projects/{project_id}/export.jsonl")
def export_file(request: Request, _: Owner, project: VisibleProject) -> Response:
    """Return the settled samples as a dataset file with all votes."""
    with state.of(request).database.reading() as connection:
        records = export(connection, project)
    return download(records, f"{_file_name(project)}.jsonl")


@router.get("/projects/{project_id}/human.jsonl")
def human_file(request: Request, _: Owner, project: VisibleProject) -> Response:
    """Return people's answers as a file for the leaderboard."""
    with state.of(request).database.reading() as connection:
        answers = human_answers(connection, project)
    return download(map(asdict, answers), f"{_file_name(project)}-people.jsonl")


@router.post("/projects/{project_id}/human")
def keep_human(request: Request, _: Owner, project: VisibleProject) -> Response:
    """Write people's answers to the results folder, where `pii-bench leaderboard` reads them."""
    web = state.of(request)
    with web.database.reading() as connection:
        answers = human_answers(connection, project)
    if not answers:
        raise PiiBenchError("no sample is finished yet")
    folder = web.settings.results / HUMAN
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{_file_name(project)}.jsonl", to_lines(answers))
    return RedirectResponse(f"/projects/{project.id}?kept=1#files", 303)


@router.post("/projects/{project_id}/delete")
def remove_project(request: Request, _: Owner, project: VisibleProject) -> Response:
    """Delete a project and all its texts and answers."""
    SHARED_PROJECTS.delete(state.of(request).database, project.id)
    return RedirectResponse("/projects", 303)


def _file_name(project: Project) -> str:
    return f"{project.id}-{_UNSAFE.sub('-', project.plan.name)[:60].strip('.-') or 'project'}"
