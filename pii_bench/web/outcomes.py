"""What comes of a project: agreement, disputes, one answer for each sample, files to take away."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, insert, select, update

from pii_bench.datasets.readings import load_readings, version_of
from pii_bench.datasets.sample import Entity, Related, Sample, Subject, sample_to_record
from pii_bench.ranking.external import HumanAnswer
from pii_bench.ranking.scores import clusters_of
from pii_bench.scorer import score_detection, score_query_related
from pii_bench.tasks import Task as BenchmarkTask
from pii_bench.web.marks import (
    LONGEST_REMARK,
    AnswerError,
    Choice,
    Item,
    items_of_marks,
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
    find_sample,
    items_to_json,
    samples_of,
)
from pii_bench.web.tables import MEMBERS, OUTCOMES, SAMPLES
from pii_bench.web.tasks import Part, Task, import_task, tasks_of, tasks_on
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

    from sqlalchemy import ColumnElement, Connection

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


def clean_answer(
    project: Project, stored: StoredSample, task: Task, answer: Any, *, done: bool
) -> dict[str, Any]:
    """An answer from a browser with what belongs to it and nothing else.

    That somebody saw suggestions stays in an answer, also where they are removed.

    Raises:
        AnswerError: it is not of its form, or is to be done and lacks something.
    """
    if task.stage == 2:
        choice = parse_choice(stored.items or (), answer)
        if done and not (choice.necessary and choice.sufficient):
            raise AnswerError(
                "Confirm that each chosen piece is necessary and that together they are enough."
            )
        return asdict(choice)
    marks = parse_marks(stored.sample.description, answer)
    lacking = sum(mark.category is None for mark in marks)
    if done and lacking:
        raise AnswerError(f"{lacking} marked without a category yet.")
    seen = project.plan.system if answer.get("suggested") and project.plan.suggests else None
    return {
        "marks": [asdict(mark) for mark in marks],
        "suggested": task.answer.get("suggested") or seen,
        "remark": parse_remark(answer),
    }


def marks_of(stored: StoredSample, task: Task) -> tuple[Mark, ...]:
    """What an answer to stage 1 marks."""
    return parse_marks(stored.sample.description, task.answer)


def choice_of(stored: StoredSample, task: Task) -> Choice:
    """What an answer to stage 2 chooses."""
    return parse_choice(stored.items or (), task.answer)


def after_done(connection: Connection, project: Project, task: Task) -> None:
    """Settle a sample once all its annotators are done, or the adjudicator has decided."""
    stored = find_sample(connection, task.sample_id)
    if stored.qualifies:
        return
    if task.part is Part.ADJUDICATOR:
        _settle(connection, task.sample_id, task.stage, settled=True)
    else:
        finished = [t for t in tasks_on(connection, stored.id, task.stage) if t.done]
        if len(finished) < project.plan.annotators:
            return
        _keep_outcome(connection, project, stored, task.stage, finished)
    _open_stage_2(connection, project, stored.id)


def _is_of(sample_id: int, stage: int) -> ColumnElement[bool]:
    return (OUTCOMES.c.sample_id == sample_id) & (OUTCOMES.c.stage == stage)


def _settle(connection: Connection, sample_id: int, stage: int, *, settled: bool) -> None:
    connection.execute(update(OUTCOMES).where(_is_of(sample_id, stage)).values(settled=settled))


def _keep_outcome(
    connection: Connection,
    project: Project,
    stored: StoredSample,
    stage: int,
    finished: Sequence[Task],
) -> None:
    found = agreement(_ballot(stored, task) for task in finished)
    kappa = 1.0 if found.fleiss is None else found.fleiss
    f1 = 1.0 if found.f1 is None else found.f1
    settled = len(finished) == 1 or kappa >= project.plan.threshold
    outcome = Outcome(stored.id, stage, kappa, f1, settled)
    connection.execute(delete(OUTCOMES).where(_is_of(stored.id, stage)))
    connection.execute(insert(OUTCOMES).values(**asdict(outcome)))


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
        for (sample_id, stage), outcome in outcomes_of(connection, project).items():
            decided = _done(connection, sample_id, stage, Part.ADJUDICATOR)
            alone = len(_done(connection, sample_id, stage)) == 1
            settled = bool(decided) or alone or outcome.kappa >= project.plan.threshold
            begun = stage == 1 and find_sample(connection, sample_id).items is not None
            if settled != outcome.settled and not begun:
                _settle(connection, sample_id, stage, settled=settled)
                _open_stage_2(connection, project, sample_id)


def outcomes_of(connection: Connection, project: Project) -> dict[tuple[int, int], Outcome]:
    """By sample and stage, those that all annotators have finished."""
    query = (
        select(OUTCOMES)
        .join(SAMPLES, SAMPLES.c.id == OUTCOMES.c.sample_id)
        .where(SAMPLES.c.project_id == project.id)
    )
    found = [Outcome(**row) for row in connection.execute(query).mappings()]
    return {(each.sample_id, each.stage): each for each in found}


def disputes(connection: Connection, project: Project) -> list[Outcome]:
    """What awaits an adjudicator, the least agreed first."""
    found = [each for each in outcomes_of(connection, project).values() if not each.settled]
    return sorted(found, key=lambda each: (each.kappa, each.sample_id))


def settled_marks(connection: Connection, stored: StoredSample) -> tuple[Mark, ...]:
    """The one answer to stage 1: the adjudicator's, else what more than half marked."""
    versions = [marks_of(stored, task) for task in _deciding(connection, stored, 1)]
    if len(versions) == 1:
        return versions[0]
    return merge_marks(stored.sample.description, versions)


def settled_choice(connection: Connection, stored: StoredSample) -> Choice:
    """The one answer to stage 2, likewise."""
    choices = [choice_of(stored, task) for task in _deciding(connection, stored, 2)]
    return merge_choices(stored.items or (), choices)


def _deciding(connection: Connection, stored: StoredSample, stage: int) -> list[Task]:
    decided = _done(connection, stored.id, stage, Part.ADJUDICATOR)
    return decided or _done(connection, stored.id, stage)


def _done(
    connection: Connection, sample_id: int, stage: int, part: Part = Part.ANNOTATOR
) -> list[Task]:
    return [task for task in tasks_on(connection, sample_id, stage, part) if task.done]


def _answers(
    connection: Connection, project: Project, *, practice: bool, account_id: int | None = None
) -> list[tuple[StoredSample, Task]]:
    """What annotators have finished, of all or of one of them, without adjudication."""
    stored = {each.id: each for each in samples_of(connection, project, practice=practice)}
    return [
        (stored[task.sample_id], task)
        for task in tasks_of(connection, project, account_id=account_id)
        if task.done and task.part is Part.ANNOTATOR and task.sample_id in stored
    ]


def qualification(connection: Connection, project: Project, account_id: int) -> float | None:
    """Mean F1 of somebody on the qualification round; None as long as it is not finished.

    Stage 1 has Strict-F1 against the dataset's entities, stage 2 the F1 of what is needed.
    """
    done = _answers(connection, project, practice=True, account_id=account_id)
    if not done or len(done) < project.plan.qualification * len(project.plan.stages.numbers):
        return None
    return sum(_against_gold(stored, task) for stored, task in done) / len(done)


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
    answers = sorted(_answers(connection, project, practice=False), key=lambda answer: answer[0].id)
    reports = []
    for stage in project.plan.stages.numbers:
        by_sample: dict[int, tuple[StoredSample, list[Task]]] = {}
        for stored, task in answers:
            if task.stage == stage:
                by_sample.setdefault(stored.id, (stored, []))[1].append(task)
        own = list(by_sample.values())
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


def export(connection: Connection, project: Project) -> list[dict[str, Any]]:
    """The settled samples in the dataset format, with all votes in `meta.annotation`."""
    outcomes = outcomes_of(connection, project)
    tasks: defaultdict[int, list[Task]] = defaultdict(list)
    every = tasks_of(connection, project)
    for task in every:
        tasks[task.sample_id].append(task)
    numbers = _numbers(every)
    records = []
    for stored in samples_of(connection, project, practice=False):
        own = [
            outcome
            for stage in project.plan.stages.numbers
            if (outcome := outcomes.get((stored.id, stage))) is not None and outcome.settled
        ]
        if len(own) < len(project.plan.stages.numbers):
            continue
        sample = _settled_sample(connection, project, stored)
        meta = {
            "annotators": project.plan.annotators,
            "threshold": project.plan.threshold,
            "system": project.plan.system or None,
            "agreement": [
                {"stage": STAGE_NAMES[each.stage], "kappa": each.kappa, "f1": each.f1}
                for each in own
            ],
            "votes": [_vote(stored, task, numbers) for task in tasks[stored.id] if task.done],
        }
        sample = replace(sample, meta={**sample.meta, "annotation": meta})
        records.append(sample_to_record(sample))
    return records


def _settled_sample(connection: Connection, project: Project, stored: StoredSample) -> Sample:
    sample = stored.sample
    if project.plan.stages is Stages.MARK:
        items = items_of_marks(sample.description, settled_marks(connection, stored))
        return replace(sample, query=None, subjects=_subjects(items), related=())
    choice = settled_choice(connection, stored)
    items = stored.items or ()
    moved = [
        replace(item, person=choice.persons.get(n, item.person)) for n, item in enumerate(items)
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
    samples = samples_of(connection, project, practice=False)
    clusters = clusters_of([each.sample for each in samples])
    numbers = _numbers(tasks_of(connection, project))
    return [
        HumanAnswer(
            dataset=project.dataset,
            task=BenchmarkTask.DETECTION if task.stage == 1 else BenchmarkTask.QUERY_RELATED,
            id=stored.name,
            cluster=clusters[stored.name],
            annotator=numbers[task.annotator],
            answer=_said(stored, task),
            gold=_gold(stored.sample, task.stage),
            suggestions=task.answer.get("suggested"),
        )
        for stored, task in _answers(connection, project, practice=False)
        if not task.imported
    ]


def import_readings(database: Database, dataset: Dataset) -> Project:
    """Make a project of the readings that the repository holds of one of its sets.

    Only readings of the text as it is today: earlier versions are not in the dataset.

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
    return project
