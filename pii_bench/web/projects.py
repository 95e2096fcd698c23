"""Annotation projects: a dataset, its stages and settings, and its members."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, astuple, dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, func, insert, select, update

from pii_bench.datasets.sample import sample_from_record, sample_to_record
from pii_bench.errors import PiiBenchError
from pii_bench.files import is_encodable
from pii_bench.web.database import find_row, insert_row
from pii_bench.web.marks import Item, items_of_sample
from pii_bench.web.membership import Shared
from pii_bench.web.tables import MEMBERS, PROJECTS, SAMPLES, TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.web.database import Database
    from pii_bench.web.marks import Mark

MOST_ANNOTATORS: Final = 50
DEFAULT_GUIDELINES: Final = """\
Stage 1: mark what is personal
Mark every piece of information about a person in the text: names, numbers, places, employers, \
dates, sums, illnesses and the like.
Mark the smallest piece that says it: "41 days", not "for 41 days"; "Halifax", not "in Halifax".
Say whose it is. The first person of the text is A, the next is B, and so on. What two people \
share belongs to both.
Give each piece its type and category. Mark all its occurrences; the box "all occurrences" does so \
at once.
Do not mark what is about no person: a hotline, a public holiday, a famous building where none of \
them lives or works.

Stage 2: choose what the question needs
Read the question. Choose the pieces without which it cannot be answered, and no others.
Check whose each chosen piece is.
Names of persons are hardly ever needed: an answer can say "she".
Confirm that each piece is necessary: without it the answer would be another, or none.
Confirm that together they are enough: everything else could be hidden.
If reasonable people could choose otherwise, say so, and why."""
"""The guidelines of projects without their own."""


class Stages(StrEnum):
    """The stages of a project.

    `MARK`: mark personal information. `CHOOSE`: choose which of the dataset's entities the query
    needs. `BOTH`: mark, then choose from the settled marks.
    """

    BOTH = "both"
    MARK = "mark"
    CHOOSE = "choose"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the stages, in order."""
        return {Stages.BOTH: (1, 2), Stages.MARK: (1,), Stages.CHOOSE: (2,)}[self]


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a project.

    Attributes:
        annotators: number of annotators for each sample.
        threshold: kappa below which a sample goes to an adjudicator; the default is the paper's.
        qualification: number of samples, the first of the file, in the qualification round.
        pass_mark: mean F1 required in the qualification round.
        system: system that makes suggestions, as `--model` takes it; empty for none.
        suggests: True if annotators see the suggestions.
        guidelines: text shown to annotators; empty for `DEFAULT_GUIDELINES`.
    """

    name: str
    stages: Stages = Stages.BOTH
    annotators: int = 5
    threshold: float = 0.6
    qualification: int = 0
    pass_mark: float = 0.8
    system: str = ""
    suggests: bool = False
    guidelines: str = ""

    def __post_init__(self) -> None:
        allowed = {
            "a name of 1 to 200 characters": 0 < len(self.name.strip()) <= 200,
            f"1 to {MOST_ANNOTATORS} annotators": 1 <= self.annotators <= MOST_ANNOTATORS,
            "a threshold from 0 to 1": 0 <= self.threshold <= 1,
            "0 to 100 samples for qualification": 0 <= self.qualification <= 100,
            "a pass mark from 0 to 1": 0 <= self.pass_mark <= 1,
        }
        if violated := [rule for rule, holds in allowed.items() if not holds]:
            raise PiiBenchError(f"a project must have {' and '.join(violated)}")


@dataclass(frozen=True, slots=True)
class Project:
    """A stored project.

    Attributes:
        dataset: name of the dataset, as in the leaderboard.
        has_gold: True if the dataset has entities to score people against.
        trouble: error of the system that makes suggestions; empty if there was none.
    """

    id: int
    plan: Plan
    dataset: str
    has_gold: bool
    trouble: str = ""

    @property
    def guidelines(self) -> str:
        """The project's guidelines, or the default ones."""
        return self.plan.guidelines or DEFAULT_GUIDELINES


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample of a project.

    Attributes:
        name: id in the dataset.
        qualifies: True if it belongs to the qualification round.
        suggestion: suggested marks as dictionaries; None if there are none.
        items: entities of stage 2; None until stage 1 is settled.
    """

    id: int
    project_id: int
    name: str
    sample: Sample
    qualifies: bool
    suggestion: list[dict[str, Any]] | None
    items: tuple[Item, ...] | None


def create_project(database: Database, plan: Plan, dataset: Dataset) -> Project:
    """Create a project of a dataset.

    Raises:
        PiiBenchError: too few samples fit the stages, the qualification round has no gold, or a
            sample has half of a surrogate pair.
    """
    taken = list(dataset.samples)
    if not is_encodable([sample_to_record(sample) for sample in taken]):
        raise PiiBenchError(f"{dataset.name}: a text must not have half of a surrogate pair")
    has_gold = any(sample.subjects for sample in taken)
    if plan.stages is not Stages.MARK:
        taken = [sample for sample in taken if sample.query is not None]
    if plan.stages is Stages.CHOOSE:
        taken = [sample for sample in taken if sample.subjects]
    if len(taken) <= plan.qualification:
        raise PiiBenchError(f"{len(taken)} samples of {dataset.name} fit: too few for this project")
    if plan.qualification and not has_gold:
        raise PiiBenchError(f"{dataset.name} has no entities to score a qualification round by")
    row = {
        **asdict(plan),
        "name": plan.name.strip(),
        "stages": plan.stages.value,
        "dataset": dataset.name,
        "has_gold": has_gold,
        "created": time.time(),
    }
    with database.writing() as connection:
        project_id = insert_row(connection, PROJECTS, **row)
        connection.execute(
            insert(SAMPLES),
            [_sample_row(project_id, plan, n, sample) for n, sample in enumerate(taken)],
        )
        return SHARED_PROJECTS.get(connection, project_id)


def _sample_row(project_id: int, plan: Plan, position: int, sample: Sample) -> dict[str, Any]:
    qualifies = position < plan.qualification
    own = plan.stages is Stages.CHOOSE or qualifies
    return {
        "project_id": project_id,
        "position": position,
        "name": sample.id[:500],
        "record": json.dumps(sample_to_record(sample), ensure_ascii=False),
        "qualifies": qualifies,
        "asked": items_to_json(items_of_sample(sample)) if own else None,
    }


def _project(row: Any) -> Project:
    values = {field.name: getattr(row, field.name) for field in fields(Plan)}
    plan = Plan(**{**values, "stages": Stages(row.stages)})
    return Project(row.id, plan, row.dataset, row.has_gold, row.trouble)


SHARED_PROJECTS: Final = Shared(PROJECTS, MEMBERS, MEMBERS.c.project_id, _project)


def change_project(database: Database, project: Project, **changes: Any) -> Project:
    """Change settings of a project, after `Plan` has checked them."""
    plan = replace(project.plan, **changes)
    database.write(update(PROJECTS).where(PROJECTS.c.id == project.id).values(**changes))
    return replace(project, plan=plan)


def count_samples(connection: Connection, project: Project) -> int:
    """Return the number of samples, with those of the qualification round."""
    query = select(func.count()).where(SAMPLES.c.project_id == project.id)
    return connection.scalar(query) or 0


def samples_of(
    connection: Connection, project: Project, *, practice: bool | None = None
) -> list[StoredSample]:
    """Return the samples of a project in order.

    `practice` is True for the qualification round, False for the others, None for all.
    """
    query = select(SAMPLES).where(SAMPLES.c.project_id == project.id).order_by(SAMPLES.c.position)
    if practice is not None:
        query = query.where(SAMPLES.c.qualifies.is_(practice))
    return [_stored(row) for row in connection.execute(query)]


def find_sample(connection: Connection, sample_id: int) -> StoredSample:
    """Return a sample by its id."""
    return _stored(find_row(connection, SAMPLES, sample_id))


def _stored(row: Any) -> StoredSample:
    return StoredSample(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        sample=sample_from_record(json.loads(row.record)),
        qualifies=row.qualifies,
        suggestion=None if row.suggestion is None else json.loads(row.suggestion),
        items=None if row.asked is None else _items_from_json(row.asked),
    )


def keep_suggestion(database: Database, sample_id: int, marks: Sequence[Mark]) -> None:
    """Save the marks that a system suggests for a sample."""
    text = json.dumps([asdict(mark) for mark in marks])
    database.write(update(SAMPLES).where(SAMPLES.c.id == sample_id).values(suggestion=text))


def admit_member(database: Database, project: Project, account_id: int) -> None:
    """Admit a member without the qualification round."""
    theirs = (MEMBERS.c.project_id == project.id) & (MEMBERS.c.account_id == account_id)
    database.write(update(MEMBERS).where(theirs).values(admitted=True))


def remove_member(database: Database, project: Project, account_id: int) -> None:
    """Remove a member: finished tasks stay, open ones become free for others."""
    own = select(SAMPLES.c.id).where(SAMPLES.c.project_id == project.id)
    is_open = (TASKS.c.account_id == account_id) & TASKS.c.done.is_(False)
    open_tasks = delete(TASKS).where(is_open, TASKS.c.sample_id.in_(own))
    SHARED_PROJECTS.remove_member(database, project.id, account_id, open_tasks)


def items_to_json(items: Sequence[Item]) -> str:
    """Serialise items for the database."""
    return json.dumps([astuple(item) for item in items], ensure_ascii=False)


def _items_from_json(text: str) -> tuple[Item, ...]:
    return tuple(
        Item(person, value, pii_type, category, tuple((start, end) for start, end in spans))
        for person, value, pii_type, category, spans in json.loads(text)
    )
