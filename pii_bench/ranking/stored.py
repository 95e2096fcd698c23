"""Stored runs read back, each with its dataset and its detection, and the leaderboard of them.

No model is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import sha256_of
from pii_bench.models.base import SKIPPED_BUDGET
from pii_bench.ranking.external import (
    answers_of,
    human_rows,
    published_rows,
    read_submission,
    reading_rows,
    submissions,
)
from pii_bench.ranking.render import write_leaderboard
from pii_bench.ranking.rows import Row, Source, rank, row_of
from pii_bench.ranking.scores import clusters_of
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.kept_scores import KeptScores, RunScores
from pii_bench.runs.records import Failure, Manifest, Signature, read_manifest
from pii_bench.runs.responses import compose, read_response
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY, RunFiles, locked, read_lines
from pii_bench.systems.predictions import Prediction, names_types
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.external import Submission
    from pii_bench.runs.evaluation import Evaluation


FOLDERS: Final[Mapping[str, Source]] = {"runs": Source.RUN, "reference": Source.REFERENCE}

_RESTORE: Final = "restore the file from where the results came"

_MANIFEST: Final[Mapping[Source, str]] = {
    Source.RUN: MANIFEST_REMEDY,
    Source.REFERENCE: _RESTORE,
    Source.SUBMITTED: "score the predictions again",
}
"""What mends a file that says what was run and cannot be read."""

_LINE: Final[Mapping[Source, str]] = {Source.RUN: LINE_REMEDY, Source.REFERENCE: _RESTORE}
"""What mends a line that cannot be read; of what is submitted none is kept apart."""

_VOTED: Final = frozenset({"votes", "temperature"})


@dataclass(frozen=True, slots=True)
class Answers:
    """What the responses of a run say.

    Attributes:
        predictions: sample id to what its response says; samples without one are absent.
        returned: models that the provider said it used.
        unreadable: lines that cannot be read, by file, line and reason; their samples are absent.
    """

    predictions: Mapping[str, Prediction]
    returned: frozenset[str] = frozenset()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Run:
    """A stored run on its dataset. Its responses are read when they are first asked for.

    Attributes:
        source: where it lies.
        dataset: gold.
        manifest: what was run.
        read: reads its responses.
        detection: of a query-related run, the same model's detection run on the same dataset,
            with the same settings and output (settings of a vote are its own); None where
            there is none.
        files: of a run that we keep; None for what is submitted.
    """

    source: Source
    dataset: Dataset
    manifest: Manifest
    read: Callable[[], Answers] = field(repr=False)
    detection: Run | None = None
    files: RunFiles | None = None

    @property
    def task(self) -> Task:
        """What was asked: detection or query-related."""
        return self.manifest.system.task

    @property
    def names_subjects(self) -> bool:
        """Whether both its detection and its dataset tell whose an entity is."""
        return self.manifest.system.names_subjects and self.dataset.names_subjects

    @property
    def names_types(self) -> bool:
        """Whether its detection tells what kind an entity is, as our own systems always do."""
        return self.source is not Source.SUBMITTED or names_types(self.predictions)

    @cached_property
    def answers(self) -> Answers:
        """What its responses say."""
        return self.read()

    @property
    def predictions(self) -> Mapping[str, Prediction]:
        """Sample id to the prediction of its own task."""
        return self.answers.predictions

    @cached_property
    def masking(self) -> Mapping[str, Prediction] | None:
        """Sample id to the masking prediction; None without detection."""
        if self.detection is None:
            return None
        found = self.detection.predictions
        return {
            sample_id: compose(found[sample_id], prediction)
            for sample_id, prediction in self.predictions.items()
            if sample_id in found
        }

    @property
    def by_task(self) -> dict[Task, Mapping[str, Prediction]]:
        """The predictions of its own task, and of masking where there is a detection."""
        own = {self.task: self.predictions}
        return own if self.masking is None else {**own, Task.MASKING: self.masking}

    @property
    def with_subjects(self) -> Mapping[str, Prediction]:
        """Sample id to the query-related prediction, with the detected subjects where known."""
        found = {} if self.detection is None else self.detection.predictions
        return {
            sample_id: replace(answer, subjects=found[sample_id].subjects)
            if answer.status.answered and sample_id in found
            else answer
            for sample_id, answer in self.predictions.items()
        }

    @cached_property
    def scores(self) -> RunScores:
        """Its evaluations, by task, of those that its dataset has samples for.

        They are kept next to the responses and computed again only when the responses, the
        dataset or the code that reads and scores them changes.
        """
        if self._loaded is not None:
            return self._loaded
        evaluations = [
            evaluate(task, self.dataset.samples, predictions)
            for task, predictions in self.by_task.items()
        ]
        # A dataset without queries has nothing for the tasks that need one.
        by_task = {each.task: each for each in evaluations if each.gold}
        made = RunScores(by_task, self.answers.returned, self.answers.unreadable)
        if self._kept is not None:
            self._kept.save(made)
        return made

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Lines that cannot be read: as kept with the scores, without scoring anything."""
        return (self.answers if self._loaded is None else self._loaded).unreadable

    @cached_property
    def _kept(self) -> KeptScores | None:
        """The file of its scores, by all that they depend on; None for what is submitted."""
        if self.files is None:
            return None
        others = () if self.detection is None else self.detection.hashes
        return KeptScores.of_run(self.files, [self.dataset.sha256, *self.hashes, *others])

    @cached_property
    def _loaded(self) -> RunScores | None:
        """Its kept scores; None where they must be made."""
        return None if self._kept is None else self._kept.load()

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """Of its files, an empty one for a file that is not there."""
        paths = () if self.files is None else (self.files.manifest, self.files.responses)
        return tuple(sha256_of(path) if path.exists() else "" for path in paths)


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a results folder.

    Attributes:
        runs: those that can be scored.
        broken: runs that cannot be, each with the reason.
    """

    runs: tuple[Run, ...]
    broken: tuple[str, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """What cannot be scored, a run or a line, with the reason."""
        lines = [f"{line}; {_LINE[run.source]}" for run in self.runs for line in run.unreadable]
        return (*self.broken, *dict.fromkeys(lines))


def read_runs(results: Path, loaded: Iterable[Dataset] = ()) -> Runs:
    """Find every run under `<results>/runs` and `<results>/reference`, and what is submitted.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.
    """
    runs: list[Run] = []
    broken: list[str] = []
    datasets: dict[str, Dataset | None] = {dataset.source: dataset for dataset in loaded}

    def find(source: str) -> Dataset | None:
        if source not in datasets:
            datasets[source] = _find(source, broken)
        return datasets[source]

    for folder, source in FOLDERS.items():
        paths = sorted((results / folder).glob("*/*/*.run.json"))
        runs += with_detection(_found(source, paths, find, broken))
    for path in submissions(results):
        try:
            submission = read_submission(path)
            dataset = find(submission.dataset.source)
            if dataset is not None:
                runs += _submitted(path, submission, dataset, broken)
        except InputFileError as error:
            broken.append(f"{error}; {_MANIFEST[Source.SUBMITTED]}")
    return Runs(tuple(runs), tuple(broken))


def _found(
    source: Source,
    manifests: Iterable[Path],
    find: Callable[[str], Dataset | None],
    broken: list[str],
) -> Iterator[Run]:
    """The runs of manifests whose dataset is the one that was run on."""
    for path in manifests:
        try:
            manifest = read_manifest(path)
        except InputFileError as error:
            broken.append(f"{error}; {_MANIFEST[source]}")
            continue
        dataset = find(manifest.dataset.source)
        if dataset is not None and dataset.sha256 != manifest.dataset.sha256:
            broken.append(_changed(manifest))
        elif dataset is not None:
            yield _run(source, dataset, manifest, RunFiles.of_manifest(path))


def read_run(path: Path, dataset: Dataset) -> Run:
    """The run of a manifest.

    Raises:
        InputFileError: the manifest is broken.
    """
    return _run(Source.RUN, dataset, read_manifest(path), RunFiles.of_manifest(path))


def with_detection(runs: Iterable[Run]) -> list[Run]:
    """The runs, each query-related one with its detection."""
    found = list(runs)
    return [
        replace(run, detection=_detection_of(run, found)) if run.task is Task.QUERY_RELATED else run
        for run in found
    ]


def _run(source: Source, dataset: Dataset, manifest: Manifest, files: RunFiles) -> Run:
    return Run(
        source, dataset, manifest, partial(_read, manifest, dataset, files.responses), files=files
    )


def _read(manifest: Manifest, dataset: Dataset, responses: Path) -> Answers:
    """Read the responses of a run on a dataset.

    Raises:
        InputFileError: they cannot be opened.
    """
    unreadable: list[str] = []
    system = manifest.system
    texts = {sample.id: sample.description for sample in dataset.samples}
    predictions: dict[str, Prediction] = {}
    returned: set[str] = set()
    for _, record in read_lines(responses, unreadable):
        returned.update(each.model for each in record.completions if each.model)
        if not isinstance(record.response, Failure):
            predictions[record.id] = read_response(
                system.task, record.response, system.output, system.taxonomy, texts.get(record.id)
            )
        elif record.id not in predictions or not predictions[record.id].status.scored:
            predictions[record.id] = Prediction(_status_of(record.response))
    return Answers(predictions, frozenset(returned), tuple(unreadable))


def _submitted(
    path: Path, submission: Submission, dataset: Dataset, broken: list[str]
) -> list[Run]:
    """A submission as runs: masking is composed where it answers both tasks."""
    if dataset.sha256 != submission.dataset.sha256:
        what = "its file has changed since; score the predictions again"
        broken.append(f"{submission.name} on {submission.dataset.source}: {what}")
        return []
    return with_detection(
        Run(Source.SUBMITTED, dataset, manifest, partial(Answers, predictions))
        for manifest, predictions in answers_of(path, submission, dataset)
    )


def _detection_of(run: Run, runs: Iterable[Run]) -> Run | None:
    # A vote draws at a temperature of its own, and detection has no vote.
    own = _VOTED if "votes" in run.manifest.system.settings else frozenset[str]()
    for other in runs:
        if other.task is Task.DETECTION and _asked(other, own) == _asked(run, own):
            return other
    return None


def _asked(run: Run, own: frozenset[str]) -> tuple[object, ...]:
    # The settings too: another endpoint or sampling is another model to the reader.
    system, dataset = run.manifest.system, run.manifest.dataset
    settings = {key: value for key, value in system.settings.items() if key not in own}
    return system.model, system.output, system.taxonomy, settings, dataset.name, dataset.sha256


def _status_of(failure: Failure) -> Status:
    return Status.SKIPPED_BUDGET if failure.kind == SKIPPED_BUDGET else Status.INFRA_ERROR


def _find(source: str, left_out: list[str]) -> Dataset | None:
    try:
        return load_dataset(source)
    except PiiBenchError as error:
        left_out.append(f"runs on {source}: {error}")
        return None


def _changed(manifest: Manifest) -> str:
    reference, system = manifest.dataset, manifest.system
    what = "its file has changed since; run again, only what changed is asked"
    return f"{system.model}, {system.prompt} on {reference.source}: {what}"


_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Collection:
    """Rows of ours, and the runs and lines that could not be scored, each with the reason."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]


def collect(results: Path, loaded: Iterable[Dataset] = ()) -> Collection:
    """Score every run under `<results>/runs` and `<results>/reference`, and what is submitted.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.
    """
    found = read_runs(results, loaded)
    return Collection(tuple(row for run in found.runs for row in rows_of(run)), found.left_out)


def rows_of(run: Run) -> list[Row]:
    """The rows of a run: its own task, and masking where there are detection answers."""
    clusters = clusters_of(run.dataset.samples)
    rows = []
    for task, evaluation in run.scores.evaluations.items():
        before = [run.detection] if task is Task.MASKING and run.detection is not None else []
        rows.append(_row([*before, run], evaluation, clusters))
    return rows


def _row(runs: list[Run], evaluation: Evaluation, clusters: Mapping[str, str]) -> Row:
    """Of the runs that an answer is made of, the last asks for it."""
    system = runs[-1].manifest.system
    recipients = dict.fromkeys(run.manifest.system.unmasked_text_to for run in runs)
    return row_of(
        evaluation,
        _signature(runs, evaluation.task),
        clusters,
        source=runs[-1].source,
        oracle=system.oracle,
        names_subjects=runs[-1].names_subjects,
        names_types=runs[-1].names_types,
        unmasked_text_to=", ".join(recipients),
    )


def _signature(runs: list[Run], task: Task) -> Signature:
    *before, last = (run.manifest for run in runs)
    # Where masking joins runs whose settings differ, those of the first are said too.
    others = {
        f"{manifest.system.prompt}.{key}": value
        for manifest in before
        for key, value in manifest.system.settings.items()
        if last.system.settings.get(key) != value
    }
    return Signature(
        dataset=last.dataset.name,
        dataset_sha256=last.dataset.sha256,
        task=task,
        strategy=last.system.prompt,
        prompts={
            run.manifest.system.prompt: run.manifest.system.prompt_sha256
            for run in runs
            if run.manifest.system.prompt
        },
        model=last.system.model,
        returned=sorted(frozenset[str]().union(*(run.scores.returned for run in runs))),
        settings={**last.system.settings, **others},
    )


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard that was written.

    Attributes:
        rows: ranked; ours, those submitted, the readers', people's, and the published ones.
        files: where it is written, `leaderboard.csv` first.
        left_out: runs and lines that could not be scored, each with the reason.
    """

    rows: tuple[Row, ...]
    files: tuple[Path, ...]
    left_out: tuple[str, ...]


def update(results: Path, loaded: Iterable[Dataset] = ()) -> Board:
    """Score what is stored and write the leaderboard.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.

    Raises:
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    # Who collects last must write last: an older view would hide the rows of another run.
    with locked(results, wait=_LONGEST_WAIT):
        collection = collect(results, loaded)
        read = reading_rows({row.dataset for row in collection.rows})
        people, broken = human_rows(results)
        rows = rank([*collection.rows, *read, *people, *published_rows()])
        files = write_leaderboard(rows, results)
    return Board(tuple(rows), tuple(files), (*collection.left_out, *broken))
