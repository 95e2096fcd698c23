"""Results of a project: agreement, disputes, settled answers, and files to download."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select, update

from pii_bench.datasets.readings import load_readings, version_of
from pii_bench.datasets.sample import Entity, Related, Sample, Subject, sample_to_record
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.external import HumanAnswer
from pii_bench.ranking.scores import clusters_of
from pii_bench.scorer import score_detection, score_query_related
from pii_bench.tasks import Task as BenchmarkTask
from pii_bench.web.marks import (
    LONGEST_REMARK,
    Choice,
    Item,
    items_of_marks,
    parse_choice,
    parse_marks,
)
from pii_bench.web.projects import (
    Plan,
    Project,
    Stages,
    create_project,
    find_sample,
    items_to_json,
    samples_of,
)
from pii_bench.web.tables import MEMBERS, OUTCOMES, SAMPLES
from pii_bench.web.tasks import Part, Task, add_task, tasks_of, tasks_on
from pii_bench.web.votes import (
    ASPECTS,
    Agreement,
    agreement,
    agreement_by_pair,
    agreement_by_value,
    agreement_with_others,
    align_persons,
    annotators_of,
    ballot_of_choice,
    ballot_of_marks,
    ballot_on_owners,
    ballots_on_owners,
    merge_choices,
    merge_marks,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.readings import Reading
    from pii_bench.web.database import Database
    from pii_bench.web.marks import Mark
    from pii_bench.web.projects import StoredSample
    from pii_bench.web.votes import Ballot

    _Answer = tuple[StoredSample, Task]

STAGE_NAMES: Final = {1: "mark", 2: "choose"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The agreement on one sample in one stage, once all its annotators have finished.

    Attributes:
        kappa: Fleiss' kappa over its units; 1 with one annotator.
        f1: F1 over pairs of annotators; 1 if none chose anything.
        settled: True if the annotators agree enough or an adjudicator has decided.
    """

    sample_id: int
    stage: int
    kappa: float
    f1: float
    settled: bool


@dataclass(frozen=True, slots=True)
class StageReport:
    """Agreement in one stage on what is marked or chosen, of all and of some annotators.

    Attributes:
        owners: agreement on the persons that each piece belongs to.
        by_aspect: agreement on the pieces with each value of each of `ASPECTS`. Letters of persons
            are those of the annotator with the most marks.
    """

    stage: int
    whole: Agreement
    owners: Agreement
    by_aspect: Mapping[str, Mapping[str, Agreement]]
    by_annotator: Mapping[str, Agreement]
    by_pair: Mapping[tuple[str, str], Agreement]


def marks_of(stored: StoredSample, task: Task) -> tuple[Mark, ...]:
    """Return the marks of a task of stage 1."""
    return parse_marks(stored.sample.description, task.answer)


def choice_of(stored: StoredSample, task: Task) -> Choice:
    """Return the choice of a task of stage 2."""
    return parse_choice(stored.items or (), task.answer)


def after_change(connection: Connection, project: Project, task: Task) -> None:
    """Record the outcome of a sample if all its annotators have finished.

    A sample whose adjudicator changes a decision without finishing it is in dispute again.
    """
    stored = find_sample(connection, task.sample_id)
    finished = _finished(connection, stored.id, task.stage)
    if not stored.qualifies and len(finished) >= project.plan.annotators:
        _save_outcome(connection, project, stored, task.stage, finished)
        _open_stage_2(connection, project, stored)


def _is_of(sample_id: int, stage: int) -> ColumnElement[bool]:
    return (OUTCOMES.c.sample_id == sample_id) & (OUTCOMES.c.stage == stage)


def _is_settled(
    connection: Connection, project: Project, sample_id: int, stage: int, kappa: float
) -> bool:
    """Return True if the annotators agree enough or an adjudicator has decided."""
    return (
        kappa >= project.plan.threshold
        or len(_finished(connection, sample_id, stage)) == 1
        or bool(_finished(connection, sample_id, stage, Part.ADJUDICATOR))
    )


def _save_outcome(
    connection: Connection,
    project: Project,
    stored: StoredSample,
    stage: int,
    finished: Sequence[Task],
) -> None:
    whole = agreement(_ballot(stored, task) for task in finished)
    kappa = 1.0 if whole.fleiss is None else whole.fleiss
    f1 = 1.0 if whole.f1 is None else whole.f1
    settled = _is_settled(connection, project, stored.id, stage, kappa)
    outcome = Outcome(stored.id, stage, kappa, f1, settled)
    connection.execute(delete(OUTCOMES).where(_is_of(stored.id, stage)))
    connection.execute(insert(OUTCOMES).values(**asdict(outcome)))


def _open_stage_2(connection: Connection, project: Project, stored: StoredSample) -> None:
    """Store the items of stage 2 once stage 1 is settled."""
    if project.plan.stages is not Stages.BOTH or stored.items is not None:
        return
    if connection.scalar(select(OUTCOMES.c.settled).where(_is_of(stored.id, 1))):
        items = items_of_marks(stored.sample.description, settled_marks(connection, stored))
        connection.execute(
            update(SAMPLES).where(SAMPLES.c.id == stored.id).values(asked=items_to_json(items))
        )


def reconsider(database: Database, project: Project) -> None:
    """Apply a new threshold to outcomes without a decision whose stage 2 has not begun."""
    with database.writing() as connection:
        for (sample_id, stage), outcome in outcomes_of(connection, project).items():
            settled = _is_settled(connection, project, sample_id, stage, outcome.kappa)
            stored = find_sample(connection, sample_id)
            begun = stage == 1 and stored.items is not None
            if settled != outcome.settled and not begun:
                own = _is_of(sample_id, stage)
                connection.execute(update(OUTCOMES).where(own).values(settled=settled))
                _open_stage_2(connection, project, stored)


def outcomes_of(connection: Connection, project: Project) -> dict[tuple[int, int], Outcome]:
    """Return the outcomes by (sample id, stage)."""
    query = select(OUTCOMES).join(SAMPLES).where(SAMPLES.c.project_id == project.id)
    outcomes = [Outcome(**row) for row in connection.execute(query).mappings()]
    return {(outcome.sample_id, outcome.stage): outcome for outcome in outcomes}


def disputes(connection: Connection, project: Project) -> list[Outcome]:
    """Return the outcomes that need an adjudicator, lowest kappa first."""
    outcomes = outcomes_of(connection, project).values()
    unsettled = [outcome for outcome in outcomes if not outcome.settled]
    return sorted(unsettled, key=lambda outcome: (outcome.kappa, outcome.sample_id))


def settled_marks(connection: Connection, stored: StoredSample) -> tuple[Mark, ...]:
    """Return the adjudicator's marks, else those that more than half of the annotators made."""
    versions = [marks_of(stored, task) for task in _deciding(connection, stored, 1)]
    if len(versions) == 1:
        return versions[0]
    return merge_marks(stored.sample.description, versions)


def settled_choice(connection: Connection, stored: StoredSample) -> Choice:
    """Return the adjudicator's choice, else what more than half of the annotators chose."""
    choices = [choice_of(stored, task) for task in _deciding(connection, stored, 2)]
    return merge_choices(stored.items or (), choices)


def _deciding(connection: Connection, stored: StoredSample, stage: int) -> list[Task]:
    decided = _finished(connection, stored.id, stage, Part.ADJUDICATOR)
    return decided or _finished(connection, stored.id, stage)


def _finished(
    connection: Connection, sample_id: int, stage: int, part: Part = Part.ANNOTATOR
) -> list[Task]:
    return [task for task in tasks_on(connection, sample_id, stage, part) if task.done]


def _answers(
    connection: Connection, project: Project, *, practice: bool, account_id: int | None = None
) -> list[_Answer]:
    """Return the finished tasks of all annotators or of one, without adjudications."""
    stored = {each.id: each for each in samples_of(connection, project, practice=practice)}
    return [
        (stored[task.sample_id], task)
        for task in tasks_of(connection, project, account_id=account_id)
        if task.done and task.part is Part.ANNOTATOR and task.sample_id in stored
    ]


def qualification(connection: Connection, project: Project, account_id: int) -> float | None:
    """Return the mean F1 of an annotator in the qualification round; None until it is finished.

    Stage 1 is scored by Strict-F1 against the dataset's entities, stage 2 by F1 of related texts.
    """
    done = _answers(connection, project, practice=True, account_id=account_id)
    if not done or len(done) < project.plan.qualification * len(project.plan.stages.numbers):
        return None
    return sum(_score(stored, task) for stored, task in done) / len(done)


def may_annotate(connection: Connection, project: Project, account_id: int) -> bool:
    """Return True if the annotator passed the qualification round or does not need to."""
    if not project.plan.qualification:
        return True
    admitted = connection.scalar(
        select(MEMBERS.c.admitted).where(
            MEMBERS.c.project_id == project.id, MEMBERS.c.account_id == account_id
        )
    )
    reached = qualification(connection, project, account_id)
    return bool(admitted) or (reached is not None and reached >= project.plan.pass_mark)


def _score(stored: StoredSample, task: Task) -> float:
    answer, gold = _answer(stored, task), _gold(stored.sample, task.stage)
    if task.stage == 1:
        return score_detection(answer, gold).strict.f1
    return score_query_related(answer, gold).exact.f1


def _answer(stored: StoredSample, task: Task) -> list[Any]:
    """Return an answer in the scorer's form: subjects in stage 1, related texts in stage 2."""
    if task.stage == 2:
        items = stored.items or ()
        return list(dict.fromkeys(items[n].text for n in choice_of(stored, task).needed))
    by_person: dict[str, dict[tuple[str, str], None]] = {}
    for item in items_of_marks(stored.sample.description, marks_of(stored, task)):
        by_person.setdefault(item.person, {})[item.text, item.type] = None
    return [list(pairs) for _, pairs in sorted(by_person.items())]


def _gold(sample: Sample, stage: int) -> list[Any]:
    if stage == 2:
        return list(dict.fromkeys(related.text for related in sample.related))
    return sample.gold_subjects


def _ballot(stored: StoredSample, task: Task) -> Ballot:
    if task.stage == 1:
        marks = marks_of(stored, task)
        return ballot_of_marks(stored.name, task.annotator, stored.sample.description, marks)
    numbers = range(len(stored.items or ()))
    return ballot_of_choice(stored.name, task.annotator, numbers, choice_of(stored, task))


def stage_reports(connection: Connection, project: Project) -> list[StageReport]:
    """Return the current agreement over all finished answers, by stage."""
    answers = sorted(_answers(connection, project, practice=False), key=lambda answer: answer[0].id)
    reports = []
    for stage in project.plan.stages.numbers:
        own = [(stored, task) for stored, task in answers if task.stage == stage]
        ballots = [_ballot(stored, task) for stored, task in own]
        owners, by_aspect = _mark_agreements(own) if stage == 1 else _choice_agreements(own)
        reports.append(
            StageReport(
                stage=stage,
                whole=agreement(ballots),
                owners=owners,
                by_aspect=by_aspect,
                by_annotator={
                    name: agreement_with_others(ballots, name) for name in annotators_of(ballots)
                },
                by_pair=agreement_by_pair(ballots),
            )
        )
    return reports


_ByAspect = dict[str, dict[str, Agreement]]


def _mark_agreements(answers: Iterable[_Answer]) -> tuple[Agreement, _ByAspect]:
    """Return the agreement in stage 1 on owners, and by value of each aspect.

    The answers must be sorted by sample.
    """
    owners: list[Ballot] = []
    ballots: dict[str, list[Ballot]] = {aspect: [] for aspect in ASPECTS}
    for stored, group in groupby(answers, key=lambda answer: answer[0]):
        tasks = [task for _, task in group]
        text = stored.sample.description
        versions = align_persons(text, [marks_of(stored, task) for task in tasks])
        for aspect in ASPECTS:
            own = [
                ballot_of_marks(stored.name, task.annotator, text, marks, aspect)
                for task, marks in zip(tasks, versions, strict=True)
            ]
            ballots[aspect] += own
            if aspect == "person":
                owners += ballots_on_owners(own)
    by_aspect = {aspect: agreement_by_value(own) for aspect, own in ballots.items()}
    return agreement(owners), by_aspect


def _choice_agreements(answers: Iterable[_Answer]) -> tuple[Agreement, _ByAspect]:
    """Return the agreement in stage 2 on owners, and on the entities with each value."""
    owners: list[Ballot] = []
    ballots: dict[str, dict[str, list[Ballot]]] = {aspect: {} for aspect in ASPECTS}
    for stored, task in answers:
        name, annotator, items = stored.name, task.annotator, stored.items or ()
        choice = choice_of(stored, task)
        owners.append(ballot_on_owners(name, annotator, items, choice))
        for aspect in ASPECTS:
            numbers: dict[str, list[int]] = {}
            for number, item in enumerate(items):
                for value in values_of(item, aspect):
                    numbers.setdefault(value, []).append(number)
            for value, own in numbers.items():
                ballot = ballot_of_choice(name, annotator, own, choice)
                ballots[aspect].setdefault(value, []).append(ballot)
    by_aspect: _ByAspect = {}
    for aspect, by_value in ballots.items():
        found = {value: agreement(each) for value, each in sorted(by_value.items())}
        # Agreement on values that no annotator chose means nothing.
        by_aspect[aspect] = {v: each for v, each in found.items() if each.f1 is not None}
    return agreement(owners), by_aspect


def export(connection: Connection, project: Project) -> list[dict[str, Any]]:
    """Return the settled samples as dataset records, with all votes in `meta.annotation`."""
    stages = project.plan.stages.numbers
    outcomes = outcomes_of(connection, project)
    tasks = tasks_of(connection, project)
    by_sample: defaultdict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        by_sample[task.sample_id].append(task)
    numbers = _numbers(tasks)
    records = []
    for stored in samples_of(connection, project, practice=False):
        own = [outcomes[stored.id, stage] for stage in stages if (stored.id, stage) in outcomes]
        if sum(outcome.settled for outcome in own) < len(stages):
            continue
        sample = _settled_sample(connection, project, stored)
        meta = {
            "annotators": project.plan.annotators,
            "threshold": project.plan.threshold,
            "system": project.plan.system or None,
            "agreement": [
                {"stage": STAGE_NAMES[outcome.stage], "kappa": outcome.kappa, "f1": outcome.f1}
                for outcome in own
            ],
            "votes": [_vote(stored, task, numbers) for task in by_sample[stored.id] if task.done],
        }
        sample = replace(sample, meta={**sample.meta, "annotation": meta})
        records.append(sample_to_record(sample))
    return records


def _settled_sample(connection: Connection, project: Project, stored: StoredSample) -> Sample:
    sample = stored.sample
    if project.plan.stages is Stages.MARK:
        marked = items_of_marks(sample.description, settled_marks(connection, stored))
        return replace(sample, query=None, subjects=_subjects(marked), related=())
    choice = settled_choice(connection, stored)
    items = [
        replace(item, person=choice.persons.get(n, item.person))
        for n, item in enumerate(stored.items or ())
    ]
    related = dict.fromkeys((items[n].person, items[n].text) for n in choice.needed)
    return replace(
        sample,
        subjects=_subjects(items),
        related=tuple(Related(person, text) for person, text in related),
    )


def _subjects(items: Iterable[Item]) -> tuple[Subject, ...]:
    by_person: dict[str, list[Entity]] = {}
    for item in items:
        entity = Entity(item.text, item.type, item.category, item.spans)
        by_person.setdefault(item.person, []).append(entity)
    return tuple(Subject(person, tuple(own)) for person, own in sorted(by_person.items()))


def _numbers(tasks: Iterable[Task]) -> dict[str, int]:
    """Number the annotators, because an export must not hold names."""
    names = dict.fromkeys(task.annotator for task in tasks)
    return {name: number for number, name in enumerate(names, start=1)}


def _vote(stored: StoredSample, task: Task, numbers: Mapping[str, int]) -> dict[str, Any]:
    answer = dict(task.answer)
    if task.stage == 2:
        items = stored.items or ()
        answer["needed"] = [
            {"subject": items[n].person, "text": items[n].text} for n in answer["needed"]
        ]
        answer["persons"] = [
            {"subject": items[int(n)].person, "text": items[int(n)].text, "should_be": person}
            for n, person in (answer.get("persons") or {}).items()
        ]
    return {
        "annotator": numbers[task.annotator],
        "part": task.part.value,
        "stage": STAGE_NAMES[task.stage],
        "seconds": round(task.seconds, 1),
        "imported": task.imported,
        **answer,
    }


def human_answers(connection: Connection, project: Project) -> list[HumanAnswer]:
    """Return the annotators' answers with the dataset's gold, for the leaderboard.

    Imported answers, the qualification round and adjudications are left out.

    Raises:
        PiiBenchError: the dataset has no gold.
    """
    if not project.has_gold:
        raise PiiBenchError(f"{project.dataset} has no entities of its own to score people against")
    samples = samples_of(connection, project, practice=False)
    clusters = clusters_of([stored.sample for stored in samples])
    return [
        HumanAnswer(
            dataset=project.dataset,
            task=BenchmarkTask.DETECTION if task.stage == 1 else BenchmarkTask.QUERY_RELATED,
            id=stored.name,
            cluster=clusters[stored.name],
            annotator=task.account_id,
            answer=_answer(stored, task),
            gold=_gold(stored.sample, task.stage),
            suggestions=task.answer.get("suggested"),
        )
        for stored, task in _answers(connection, project, practice=False)
        if task.account_id is not None
    ]


def import_readings(database: Database, dataset: Dataset) -> Project:
    """Create a project from the repository's readings of a dataset.

    Only readings of the current version of a sample are imported.

    Raises:
        PiiBenchError: there are none.
    """
    versions = {sample.id: version_of(sample) for sample in dataset.samples}
    # A version may have been read again: the first reading counts.
    readings: dict[tuple[str, str], Reading] = {}
    for reading in load_readings(dataset.name):
        if versions.get(reading.id) == reading.version:
            readings.setdefault((reading.id, reading.reader), reading)
    if not readings:
        raise PiiBenchError(f"the repository has no readings of the current {dataset.name}")
    plan = Plan(f"Readings of {dataset.name}", Stages.CHOOSE, annotators=2)
    read = {sample_id for sample_id, _ in readings}
    samples = tuple(sample for sample in dataset.samples if sample.id in read)
    project = create_project(database, plan, replace(dataset, samples=samples))
    with database.writing() as connection:
        by_name = {stored.name: stored for stored in samples_of(connection, project)}
        for reading in readings.values():
            if (stored := by_name.get(reading.id)) is None:
                continue
            items = stored.items or ()
            answer = {
                "needed": [n for n, item in enumerate(items) if item.text in reading.needed],
                "necessary": True,
                "sufficient": True,
                "ambiguous": reading.ambiguous,
                "remark": reading.remark[:LONGEST_REMARK],
            }
            reader = f"reader {reading.reader}"
            add_task(connection, stored.id, 2, Part.ANNOTATOR, answer, reader, account_id=None)
        for stored in by_name.values():
            tasks = tasks_on(connection, stored.id, 2)
            if len(tasks) >= plan.annotators:
                _save_outcome(connection, project, stored, 2, tasks)
    return project
