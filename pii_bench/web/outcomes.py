"""What comes of a project: agreement, disputes, one answer for each sample, files to take away."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select, update

from pii_bench.datasets.readings import load_readings, version_of
from pii_bench.datasets.sample import Entity, Related, Sample, Subject, sample_to_record
from pii_bench.ranking.human import HumanAnswer
from pii_bench.ranking.scores import clusters_of
from pii_bench.scorer import score_detection, score_query_related
from pii_bench.tasks import Task as BenchmarkTask
from pii_bench.web.marks import (
    LONGEST_REMARK,
    Choice,
    Item,
    items_of_marks,
    mark_to_record,
    parse_choice,
    parse_marks,
    parse_remark,
)
from pii_bench.web.projects import (
    Plan,
    Project,
    ProjectError,
    Stages,
    create_project,
    find_project,
    find_sample,
    items_to_json,
    samples_of,
)
from pii_bench.web.tables import MEMBERS, OUTCOMES, SAMPLES, TASKS
from pii_bench.web.tasks import Part, Task, find_task, import_task, tasks_of, tasks_on
from pii_bench.web.votes import (
    ASPECTS,
    Agreement,
    agreement,
    agreement_by_value,
    align_persons,
    annotators_of,
    ballot_of_choice,
    ballot_of_marks,
    ballot_on_owners,
    ballots_on_owners,
    merge_choices,
    merge_marks,
    of_annotator,
    pairwise,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.web.database import Database
    from pii_bench.web.marks import Mark
    from pii_bench.web.projects import StoredSample
    from pii_bench.web.votes import Ballot

STAGE_NAMES: Final = {1: "mark", 2: "choose"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the annotators of one sample and stage came out.

    Attributes:
        kappa: Fleiss' kappa over its units; 1 where one annotator was alone.
        f1: over pairs of annotators; 1 where none chose anything.
        settled: whether it has one answer.
    """

    sample_id: int
    stage: int
    kappa: float
    f1: float
    settled: bool


@dataclass(frozen=True, slots=True)
class StageReport:
    """Agreement in one stage: of all, by what is marked or chosen, by annotator and by pair.

    Attributes:
        owners: agreement on whose each piece is.
        by_aspect: by type, category and person (`ASPECTS`) on the pieces of each value; letters
            of persons are those in the version of most marks.
    """

    stage: int
    whole: Agreement
    owners: Agreement
    by_aspect: Mapping[str, Mapping[str, Agreement]]
    by_annotator: Mapping[str, Agreement]
    by_pair: Mapping[tuple[str, str], Agreement]


def clean_answer(project: Project, stored: StoredSample, task: Task, answer: Any) -> dict[str, Any]:
    """An answer from a browser with what belongs to it and nothing else.

    That somebody saw suggestions stays in an answer, also where they are removed.

    Raises:
        AnswerError: it is not of its form.
    """
    remark = parse_remark(answer)
    if task.stage == 2:
        choice = parse_choice(stored.items or (), answer)
        return {
            "needed": list(choice.needed),
            "persons": {str(number): who for number, who in (choice.persons or {}).items()},
            "necessary": choice.necessary,
            "sufficient": choice.sufficient,
            "ambiguous": choice.ambiguous,
            "remark": remark,
        }
    marks = parse_marks(stored.sample.description, answer)
    seen = project.plan.system if answer.get("suggested") and project.plan.suggests else None
    return {
        "marks": [mark_to_record(mark) for mark in marks],
        "suggested": task.answer.get("suggested") or seen,
        "remark": remark,
    }


def marks_of(stored: StoredSample, task: Task) -> tuple[Mark, ...]:
    """What an answer to stage 1 marks."""
    return parse_marks(stored.sample.description, task.answer)


def choice_of(stored: StoredSample, task: Task) -> Choice:
    """What an answer to stage 2 chooses."""
    return parse_choice(stored.items or (), task.answer)


def missing(stored: StoredSample, stage: int, answer: dict[str, Any]) -> str | None:
    """What keeps an answer from being finished, in words; None where nothing does."""
    if stage == 1:
        open_ones = sum(
            mark.category is None for mark in parse_marks(stored.sample.description, answer)
        )
        return f"{open_ones} marked without a category yet." if open_ones else None
    choice = parse_choice(stored.items or (), answer)
    if not (choice.necessary and choice.sufficient):
        return "Confirm that each chosen piece is necessary and that together they are enough."
    return None


def after_done(connection: Connection, project: Project, task: Task) -> None:
    """Settle a sample once all its annotators are done, or the adjudicator has decided."""
    stored = find_sample(connection, task.sample_id)
    if stored.qualifies:
        return
    if task.part is Part.ADJUDICATOR:
        _set_settled(connection, task)
    else:
        finished = [t for t in tasks_on(connection, stored.id, task.stage) if t.done]
        if len(finished) < project.plan.annotators:
            return
        _keep_outcome(connection, project, stored, task.stage, finished)
    _open_stage_2(connection, project, stored.id)


def _set_settled(connection: Connection, task: Task) -> None:
    connection.execute(
        update(OUTCOMES)
        .where(OUTCOMES.c.sample_id == task.sample_id, OUTCOMES.c.stage == task.stage)
        .values(settled=True)
    )


def _keep_outcome(
    connection: Connection,
    project: Project,
    stored: StoredSample,
    stage: int,
    finished: Sequence[Task],
) -> None:
    found = agreement(_ballot(stored, task) for task in finished)
    kappa = 1.0 if found.fleiss is None else found.fleiss
    connection.execute(
        delete(OUTCOMES).where(OUTCOMES.c.sample_id == stored.id, OUTCOMES.c.stage == stage)
    )
    connection.execute(
        insert(OUTCOMES).values(
            sample_id=stored.id,
            stage=stage,
            kappa=kappa,
            f1=1.0 if found.f1 is None else found.f1,
            settled=len(finished) == 1 or kappa >= project.plan.threshold,
        )
    )


def _open_stage_2(connection: Connection, project: Project, sample_id: int) -> None:
    if project.plan.stages is not Stages.BOTH:
        return
    outcome = outcomes_of(connection, project).get((sample_id, 1))
    stored = find_sample(connection, sample_id)
    if outcome is not None and outcome.settled and stored.items is None:
        items = items_of_marks(stored.sample.description, settled_marks(connection, stored))
        connection.execute(
            update(SAMPLES).where(SAMPLES.c.id == sample_id).values(asked=items_to_json(items))
        )


def reconsider(database: Database, project: Project) -> None:
    """Apply a new threshold to what no adjudicator has decided and stage 2 has not begun."""
    with database.writing() as connection:
        decided = {
            (t.sample_id, t.stage)
            for t in tasks_of(connection, project)
            if t.part is Part.ADJUDICATOR and t.done
        }
        for key, outcome in outcomes_of(connection, project).items():
            alone = len([t for t in tasks_on(connection, *key) if t.done]) == 1
            settled = key in decided or alone or outcome.kappa >= project.plan.threshold
            stored = find_sample(connection, key[0])
            begun = key[1] == 1 and stored.items is not None
            if settled != outcome.settled and not begun:
                connection.execute(
                    update(OUTCOMES)
                    .where(OUTCOMES.c.sample_id == key[0], OUTCOMES.c.stage == key[1])
                    .values(settled=settled)
                )
                _open_stage_2(connection, project, key[0])


def outcomes_of(connection: Connection, project: Project) -> dict[tuple[int, int], Outcome]:
    """By sample and stage, those that all annotators have finished."""
    query = (
        select(OUTCOMES)
        .join(SAMPLES, SAMPLES.c.id == OUTCOMES.c.sample_id)
        .where(SAMPLES.c.project_id == project.id)
    )
    rows = connection.execute(query)
    return {
        (row.sample_id, row.stage): Outcome(
            row.sample_id, row.stage, row.kappa, row.f1, row.settled
        )
        for row in rows
    }


def disputes(connection: Connection, project: Project) -> list[Outcome]:
    """What awaits an adjudicator, the least agreed first."""
    found = [each for each in outcomes_of(connection, project).values() if not each.settled]
    return sorted(found, key=lambda each: (each.kappa, each.sample_id))


def settled_marks(connection: Connection, stored: StoredSample) -> tuple[Mark, ...]:
    """The one answer to stage 1: the adjudicator's, else what more than half marked."""
    decided = _decision(connection, stored.id, 1)
    if decided is not None:
        return marks_of(stored, decided)
    versions = [marks_of(stored, task) for task in tasks_on(connection, stored.id, 1) if task.done]
    return merge_marks(stored.sample.description, versions)


def settled_choice(connection: Connection, stored: StoredSample) -> Choice:
    """The one answer to stage 2, likewise."""
    decided = _decision(connection, stored.id, 2)
    if decided is not None:
        return choice_of(stored, decided)
    tasks = [task for task in tasks_on(connection, stored.id, 2) if task.done]
    return merge_choices(stored.items or (), [choice_of(stored, task) for task in tasks])


def _decision(connection: Connection, sample_id: int, stage: int) -> Task | None:
    row = connection.execute(
        select(TASKS.c.id).where(
            TASKS.c.sample_id == sample_id,
            TASKS.c.stage == stage,
            TASKS.c.part == Part.ADJUDICATOR.value,
            TASKS.c.done.is_(True),
        )
    ).one_or_none()
    return None if row is None else find_task(connection, row.id)


def qualification(connection: Connection, project: Project, account_id: int) -> float | None:
    """Mean F1 of somebody on the qualification round; None as long as it is not finished.

    Stage 1 has Strict-F1 against the dataset's entities, stage 2 the F1 of what is needed.
    """
    stored = {each.id: each for each in samples_of(connection, project, practice=True)}
    done = [
        task
        for task in tasks_of(connection, project, account_id=account_id)
        if task.sample_id in stored and task.part is Part.ANNOTATOR and task.done
    ]
    if len(done) < len(stored) * len(project.plan.stages.numbers):
        return None
    scores = [_against_gold(stored[task.sample_id], task) for task in done]
    return sum(scores) / len(scores) if scores else None


def may_annotate(connection: Connection, project: Project, account_id: int) -> bool:
    """Whether somebody has passed the qualification round, or need not."""
    if not project.plan.qualification:
        return True
    admitted = connection.scalar(
        select(MEMBERS.c.admitted).where(
            MEMBERS.c.project_id == project.id, MEMBERS.c.account_id == account_id
        )
    )
    reached = qualification(connection, project, account_id)
    return bool(admitted) or (reached is not None and reached >= project.plan.pass_mark)


def _against_gold(stored: StoredSample, task: Task) -> float:
    answer, gold = _said(stored, task), _gold(stored.sample, task.stage)
    if task.stage == 1:
        return score_detection(answer, gold).strict.f1
    return score_query_related(answer, gold).exact.f1


def _said(stored: StoredSample, task: Task) -> list[Any]:
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
    return [[(entity.text, entity.type) for entity in each.entities] for each in sample.subjects]


def _ballot(stored: StoredSample, task: Task) -> Ballot:
    if task.stage == 1:
        marks = marks_of(stored, task)
        return ballot_of_marks(stored.name, task.annotator, stored.sample.description, marks)
    items = stored.items or ()
    return ballot_of_choice(stored.name, task.annotator, items, choice_of(stored, task))


def stage_reports(connection: Connection, project: Project) -> list[StageReport]:
    """Agreement as it is now, over all finished answers."""
    stored = {each.id: each for each in samples_of(connection, project) if not each.qualifies}
    done = [
        task
        for task in tasks_of(connection, project)
        if task.done and task.part is Part.ANNOTATOR and task.sample_id in stored
    ]
    reports = []
    for stage in project.plan.stages.numbers:
        by_sample: dict[int, list[Task]] = {}
        for task in sorted((t for t in done if t.stage == stage), key=lambda t: t.sample_id):
            by_sample.setdefault(task.sample_id, []).append(task)
        own = [(stored[sample_id], tasks) for sample_id, tasks in by_sample.items()]
        ballots = [_ballot(sample, task) for sample, tasks in own for task in tasks]
        owners, by_aspect = (_of_marks if stage == 1 else _of_choices)(own)
        reports.append(
            StageReport(
                stage=stage,
                whole=agreement(ballots),
                owners=owners,
                by_aspect=by_aspect,
                by_annotator={name: of_annotator(ballots, name) for name in annotators_of(ballots)},
                by_pair=pairwise(ballots),
            )
        )
    return reports


_ByAspect = dict[str, dict[str, Agreement]]


def _of_marks(
    samples: Iterable[tuple[StoredSample, Sequence[Task]]],
) -> tuple[Agreement, _ByAspect]:
    """Of stage 1 agreement on owners, and by value of each aspect."""
    owners: list[Ballot] = []
    ballots: dict[str, list[Ballot]] = {aspect: [] for aspect in ASPECTS}
    for stored, tasks in samples:
        name, text = stored.name, stored.sample.description
        versions = align_persons(text, [marks_of(stored, task) for task in tasks])
        marks = dict(zip((task.annotator for task in tasks), versions, strict=True))
        owners += ballots_on_owners(name, text, marks)
        for aspect, made in ballots.items():
            made += [ballot_of_marks(name, who, text, each, aspect) for who, each in marks.items()]
    by_aspect = {aspect: agreement_by_value(made) for aspect, made in ballots.items()}
    return agreement(owners), by_aspect


def _of_choices(
    samples: Iterable[tuple[StoredSample, Sequence[Task]]],
) -> tuple[Agreement, _ByAspect]:
    """Of stage 2 likewise; here a value has the entities that have it."""
    owners: list[Ballot] = []
    ballots: dict[str, dict[str, list[Ballot]]] = {aspect: {} for aspect in ASPECTS}
    for stored, tasks in samples:
        items = stored.items or ()
        for task in tasks:
            choice = choice_of(stored, task)
            owners.append(ballot_on_owners(stored.name, task.annotator, items, choice))
            for aspect, values_of in ASPECTS.items():
                for value in {value for item in items for value in values_of(item)}:
                    ballot = ballot_of_choice(
                        stored.name,
                        task.annotator,
                        items,
                        choice,
                        value,
                        aspect,
                    )
                    ballots[aspect].setdefault(value, []).append(ballot)
    found = {
        aspect: {value: agreement(own) for value, own in sorted(by_value.items())}
        for aspect, by_value in ballots.items()
    }
    # Agreement on options that no reader chose says nothing.
    return agreement(owners), {
        aspect: {value: each for value, each in by_value.items() if each.f1 is not None}
        for aspect, by_value in found.items()
    }


def export(connection: Connection, project: Project) -> tuple[list[dict[str, Any]], int]:
    """The settled samples in the dataset format, with all votes in `meta.annotation`.

    Returns:
        The records, and how many samples are not settled yet.
    """
    outcomes = outcomes_of(connection, project)
    tasks: dict[int, list[Task]] = {}
    every = tasks_of(connection, project)
    for task in every:
        tasks.setdefault(task.sample_id, []).append(task)
    numbers = _numbers(every)
    records, unsettled = [], 0
    for stored in samples_of(connection, project):
        if stored.qualifies:
            continue
        stages = project.plan.stages.numbers
        own = [outcomes.get((stored.id, stage)) for stage in stages]
        if not all(outcome is not None and outcome.settled for outcome in own):
            unsettled += 1
            continue
        sample = _settled_sample(connection, project, stored)
        votes = [_vote(stored, task, numbers) for task in tasks.get(stored.id, []) if task.done]
        meta = {
            "annotators": project.plan.annotators,
            "threshold": project.plan.threshold,
            "system": project.plan.system or None,
            "agreement": [
                {"stage": STAGE_NAMES[each.stage], "kappa": each.kappa, "f1": each.f1}
                for each in own
                if each is not None
            ],
            "votes": votes,
        }
        sample = replace(sample, meta={**sample.meta, "annotation": meta})
        records.append(sample_to_record(sample))
    return records, unsettled


def _settled_sample(connection: Connection, project: Project, stored: StoredSample) -> Sample:
    sample = stored.sample
    if project.plan.stages is Stages.MARK:
        items = items_of_marks(sample.description, settled_marks(connection, stored))
        return replace(sample, query=None, subjects=_subjects(items), related=())
    choice = settled_choice(connection, stored)
    items = stored.items or ()
    moved = [
        replace(item, person=(choice.persons or {}).get(n, item.person))
        for n, item in enumerate(items)
    ]
    related = dict.fromkeys((moved[n].person, moved[n].text) for n in choice.needed)
    return replace(
        sample,
        subjects=_subjects(moved),
        related=tuple(Related(person, text) for person, text in related),
    )


def _subjects(items: Iterable[Item]) -> tuple[Subject, ...]:
    by_person: dict[str, list[Entity]] = {}
    for item in items:
        entity = Entity(item.text, item.type, item.category, item.spans)
        by_person.setdefault(item.person, []).append(entity)
    return tuple(Subject(person, tuple(own)) for person, own in sorted(by_person.items()))


def _numbers(tasks: Iterable[Task]) -> dict[str, int]:
    """Numbers for the names of annotators: an export holds no names."""
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
    """What people answered, next to the dataset's gold: a file for the leaderboard.

    Answers that were imported, the qualification round and adjudication are not in it.

    Raises:
        ProjectError: the dataset has no gold.
    """
    if not project.has_gold:
        raise ProjectError(f"{project.dataset} has no entities of its own to score people against")
    stored = {each.id: each for each in samples_of(connection, project) if not each.qualifies}
    clusters = clusters_of([each.sample for each in stored.values()])
    tasks = tasks_of(connection, project)
    numbers = _numbers(tasks)
    return [
        HumanAnswer(
            dataset=project.dataset,
            task=BenchmarkTask.DETECTION if task.stage == 1 else BenchmarkTask.QUERY_RELATED,
            id=stored[task.sample_id].name,
            cluster=clusters[stored[task.sample_id].name],
            annotator=numbers[task.annotator],
            answer=_said(stored[task.sample_id], task),
            gold=_gold(stored[task.sample_id].sample, task.stage),
            suggestions=task.answer.get("suggested"),
        )
        for task in tasks
        if task.done
        and not task.imported
        and task.part is Part.ANNOTATOR
        and task.sample_id in stored
    ]


def import_readings(database: Database, dataset: Dataset) -> tuple[Project, int, int]:
    """Make a project of the readings that the repository holds of one of its sets.

    Only readings of the text as it is today: earlier versions are not in the dataset.

    Returns:
        The project, how many readings it has, and how many are of earlier versions.

    Raises:
        ProjectError: there are none.
    """
    versions = {sample.id: version_of(sample) for sample in dataset.samples}
    readings = load_readings(dataset.name)
    current = [each for each in readings if versions.get(each.id) == each.version]
    if not current:
        raise ProjectError(f"the repository has no readings of {dataset.name} as it is")
    read = {each.id for each in current}
    plan = Plan(f"Readings of {dataset.name}", Stages.CHOOSE, annotators=2)
    taken = [sample for sample in dataset.samples if sample.id in read]
    project = create_project(database, plan, dataset, taken)
    with database.writing() as connection:
        stored = {each.name: each for each in samples_of(connection, project)}
        kept: set[tuple[str, str]] = set()
        for each in current:
            sample = stored.get(each.id)
            # A version may be read again; what counts is the first time.
            if sample is None or (each.id, each.reader) in kept:
                continue
            kept.add((each.id, each.reader))
            wanted = set(each.needed)
            items = sample.items or ()
            answer = {
                "needed": [n for n, item in enumerate(items) if item.text in wanted],
                "necessary": True,
                "sufficient": True,
                "ambiguous": each.ambiguous,
                "remark": each.remark[:LONGEST_REMARK],
            }
            import_task(connection, sample.id, 2, f"reader {each.reader}", answer)
        for sample in stored.values():
            tasks = tasks_on(connection, sample.id, 2)
            if len(tasks) >= plan.annotators:
                _keep_outcome(connection, project, sample, 2, tasks)
        project = find_project(connection, project.id)
    return project, len(kept), len(readings) - len(current)


def to_jsonl(records: Iterable[dict[str, Any]]) -> str:
    """Records as a file."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
