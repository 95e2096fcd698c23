"""Read stored runs with their datasets, score them, and write the leaderboard."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import sha256_of
from pii_bench.models.base import SKIPPED_BUDGET
from pii_bench.models.catalog import is_replay
from pii_bench.ranking.external import (
    SUBMITTED,
    answers_of,
    human_rows,
    published_rows,
    read_submission,
    reading_rows,
)
from pii_bench.ranking.render import write_leaderboard
from pii_bench.ranking.rows import Row, Source, rank, row_of, with_intervals
from pii_bench.ranking.scores import clusters_of
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.kept_scores import KeptScores, RunScores
from pii_bench.runs.records import Failure, Manifest, Signature, read_manifest
from pii_bench.runs.responses import compose, read_response
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY, RunFiles, locked, read_responses
from pii_bench.systems.base import UNKNOWN_RECIPIENT
from pii_bench.systems.predictions import Prediction, names_types
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset


# What to do about a file that cannot be used.
_RESTORE: Final = "restore the file from where the results came"
_SCORE_AGAIN: Final = "score the predictions again"


@dataclass(frozen=True, slots=True)
class ParsedRun:
    """The parsed responses of a run.

    Attributes:
        predictions: sample id to prediction; samples without a readable response are absent.
        returned: model ids that the provider returned.
        unreadable: lines that cannot be read: file, line number and reason.
    """

    predictions: Mapping[str, Prediction]
    returned: frozenset[str] = frozenset()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Run:
    """A stored run and its dataset. Its responses are read on first use.

    Attributes:
        source: a run, a reference run or a submission.
        detection: for a query-related run, the detection run of the same model on the same
            dataset, with the same settings (except those of a vote) and output, if there is one.
        files: None for a submission.
    """

    source: Source
    dataset: Dataset
    manifest: Manifest
    read: Callable[[], ParsedRun] = field(repr=False)
    detection: Run | None = None
    files: RunFiles | None = None

    @property
    def task(self) -> Task:
        """The task of the run; masking is composed of two runs and never the task of one."""
        return self.manifest.system.task

    @property
    def names_subjects(self) -> bool:
        """True if both the system and the dataset assign entities to subjects."""
        return self.manifest.system.names_subjects and self.dataset.names_subjects

    @property
    def names_types(self) -> bool:
        """True if the predicted entities have types. Only submissions can lack them."""
        return self.source is not Source.SUBMITTED or names_types(self.predictions)

    @property
    def unmasked_text_to(self) -> str:
        """The recipient of unmasked text; unknown for recorded answers (`replay:`)."""
        system = self.manifest.system
        # Where they were made is not recorded.
        return UNKNOWN_RECIPIENT if is_replay(system.model) else system.unmasked_text_to

    @cached_property
    def answers(self) -> ParsedRun:
        """The parsed responses."""
        return self.read()

    @property
    def predictions(self) -> Mapping[str, Prediction]:
        """Sample id to the prediction for the run's task."""
        return self.answers.predictions

    @cached_property
    def masking(self) -> Mapping[str, Prediction] | None:
        """Sample id to the masking prediction; None without a detection run."""
        if self.detection is None:
            return None
        detected = self.detection.predictions
        return {
            sample_id: compose(detected[sample_id], prediction)
            for sample_id, prediction in self.predictions.items()
            if sample_id in detected
        }

    @property
    def by_task(self) -> dict[Task, Mapping[str, Prediction]]:
        """The predictions for the run's task, and for masking if there is a detection run."""
        by_task = {self.task: self.predictions}
        if self.masking is not None:
            by_task[Task.MASKING] = self.masking
        return by_task

    @property
    def with_subjects(self) -> Mapping[str, Prediction]:
        """Sample id to the query-related prediction, with the detected subjects if known."""
        detected = {} if self.detection is None else self.detection.predictions
        return {
            sample_id: replace(answer, subjects=detected[sample_id].subjects)
            if answer.status.answered and sample_id in detected
            else answer
            for sample_id, answer in self.predictions.items()
        }

    @cached_property
    def scores(self) -> RunScores:
        """The evaluations by task, without tasks that no sample of the dataset has.

        They are cached next to the responses, and computed again if the responses, the dataset
        or the code that parses and scores changes.
        """
        if self._cached_scores is not None:
            return self._cached_scores
        evaluations = [
            evaluate(task, self.dataset.samples, predictions)
            for task, predictions in self.by_task.items()
        ]
        by_task = {evaluation.task: evaluation for evaluation in evaluations if evaluation.gold}
        scores = RunScores(by_task, self.answers.returned, self.answers.unreadable)
        if self._cache is not None:
            self._cache.save(scores)
        return scores

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Lines that cannot be read, from the cache if possible; this computes no scores."""
        return (self.answers if self._cached_scores is None else self._cached_scores).unreadable

    @cached_property
    def _cache(self) -> KeptScores | None:
        if self.files is None:
            return None
        hashes = [self.dataset.sha256]
        for run in (self, self.detection):
            if run is not None and run.files is not None:
                paths = (run.files.manifest, run.files.responses)
                hashes += [sha256_of(path) if path.exists() else "" for path in paths]
        return KeptScores.of_run(self.files, hashes)

    @cached_property
    def _cached_scores(self) -> RunScores | None:
        return None if self._cache is None else self._cache.load()


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a results folder.

    Attributes:
        broken: runs that cannot be scored, or not for masking, each with the reason.
    """

    runs: tuple[Run, ...]
    broken: tuple[str, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Runs and lines that cannot be scored, each with the reason."""
        lines = []
        for run in self.runs:
            remedy = LINE_REMEDY if run.source is Source.RUN else _RESTORE
            lines += [f"{line}; {remedy}" for line in run.unreadable]
        return (*self.broken, *dict.fromkeys(lines))


def read_runs(results: Path, loaded: Iterable[Dataset] = ()) -> Runs:
    """Find the runs in `<results>/runs`, `<results>/reference` and `<results>/submitted`.

    The datasets in `loaded` are not loaded again.
    """
    runs: list[Run] = []
    broken: list[str] = []
    datasets: dict[str, Dataset | None] = {dataset.source: dataset for dataset in loaded}

    def load(source: str) -> Dataset | None:
        if source not in datasets:
            try:
                datasets[source] = load_dataset(source)
            except PiiBenchError as error:
                datasets[source] = None
                broken.append(f"runs on {source}: {error}")
        return datasets[source]

    for folder, source in (("runs", Source.RUN), ("reference", Source.REFERENCE)):
        found = with_detection(_stored_runs(results / folder, source, load, broken))
        runs += found
        broken += _without_masking(found)
    for path in sorted((results / SUBMITTED).glob("*/*.json")):
        try:
            runs += _submitted_runs(path, load, broken)
        except InputFileError as error:
            broken.append(f"{error}; {_SCORE_AGAIN}")
    return Runs(tuple(runs), tuple(broken))


def _stored_runs(
    folder: Path, source: Source, load: Callable[[str], Dataset | None], broken: list[str]
) -> Iterator[Run]:
    """Yield the runs whose dataset has not changed; add the others to `broken`."""
    remedy = MANIFEST_REMEDY if source is Source.RUN else _RESTORE
    for path in sorted(folder.glob("*/*/*.run.json")):
        try:
            manifest = read_manifest(path)
        except InputFileError as error:
            broken.append(f"{error}; {remedy}")
            continue
        dataset = load(manifest.dataset.source)
        if dataset is not None and dataset.sha256 != manifest.dataset.sha256:
            broken.append(
                f"{manifest.system.model}, {manifest.system.prompt} on {manifest.dataset.source}: "
                "its file has changed since; run again, only what changed is asked"
            )
        elif dataset is not None:
            yield _run(source, dataset, manifest, RunFiles.of_manifest(path))


def _submitted_runs(
    path: Path, load: Callable[[str], Dataset | None], broken: list[str]
) -> list[Run]:
    """Return a submission as one run for each task that it answers."""
    submission = read_submission(path)
    dataset = load(submission.dataset.source)
    if dataset is None:
        return []
    if dataset.sha256 != submission.dataset.sha256:
        broken.append(
            f"{submission.name} on {submission.dataset.source}: its file has changed since; "
            f"{_SCORE_AGAIN}"
        )
        return []
    return with_detection(
        Run(Source.SUBMITTED, dataset, manifest, partial(ParsedRun, predictions))
        for manifest, predictions in answers_of(path, submission, dataset)
    )


def read_run(path: Path, dataset: Dataset, limit: int | None = None) -> Run:
    """Read the run that a manifest describes, without its detection run.

    With a limit, only that many first samples are scored.

    Raises:
        InputFileError: the manifest is broken.
    """
    run = _run(Source.RUN, dataset, read_manifest(path), RunFiles.of_manifest(path))
    if limit is None:
        return run
    # Without files no scores are cached: the cache is of all samples.
    return replace(run, dataset=replace(dataset, samples=dataset.samples[:limit]), files=None)


def with_detection(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, with `detection` set in the query-related ones."""
    runs = list(runs)
    return [
        replace(run, detection=_detection_of(run, runs)) if run.task is Task.QUERY_RELATED else run
        for run in runs
    ]


def score_runs(manifests: Iterable[tuple[Path, Dataset]], limit: int | None) -> list[Row]:
    """Return the rows of the runs with these manifests, with intervals, unranked.

    With a limit, only that many first samples are scored.

    Raises:
        InputFileError: a manifest is broken.
    """
    runs = with_detection(read_run(path, dataset, limit) for path, dataset in manifests)
    return with_intervals(row for run in runs for row in rows_of(run))


def _run(source: Source, dataset: Dataset, manifest: Manifest, files: RunFiles) -> Run:
    read = partial(_read_answers, manifest, dataset, files.responses)
    return Run(source, dataset, manifest, read, files=files)


def _read_answers(manifest: Manifest, dataset: Dataset, responses: Path) -> ParsedRun:
    """Read and parse the responses of a run."""
    unreadable: list[str] = []
    system = manifest.system
    texts = {sample.id: sample.description for sample in dataset.samples}
    predictions: dict[str, Prediction] = {}
    returned: set[str] = set()
    for record in read_responses(responses, unreadable):
        returned.update(completion.model for completion in record.completions if completion.model)
        if not isinstance(record.response, Failure):
            predictions[record.id] = read_response(
                system.task, record.response, system.output, system.taxonomy, texts.get(record.id)
            )
        elif record.id not in predictions or not predictions[record.id].status.scored:
            skipped = record.response.kind == SKIPPED_BUDGET
            status = Status.SKIPPED_BUDGET if skipped else Status.INFRA_ERROR
            predictions[record.id] = Prediction(status)
    return ParsedRun(predictions, frozenset(returned), tuple(unreadable))


def _detection_of(run: Run, runs: Iterable[Run]) -> Run | None:
    same_model = (other for other in runs if _is_of_same_model(other, run))
    return next((other for other in same_model if not _differing_settings(other, run)), None)


def _without_masking(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a line for each query-related run whose detection was run with other settings."""
    for run in runs:
        if run.task is not Task.QUERY_RELATED or run.detection is not None:
            continue
        other = next((other for other in runs if _is_of_same_model(other, run)), None)
        if other is not None:
            system = run.manifest.system
            differing = ", ".join(_differing_settings(other, run))
            yield (
                f"masking of {system.model}, {system.prompt} on {run.manifest.dataset.source}: "
                f"the detection was run with other settings ({differing}); run both again"
            )


def _is_of_same_model(detection: Run, run: Run) -> bool:
    """True if a run is of detection, by the model of another and on the same dataset."""
    one, other = detection.manifest, run.manifest
    return (
        detection.task is Task.DETECTION
        and (one.system.model, one.system.output, one.system.taxonomy)
        == (other.system.model, other.system.output, other.system.taxonomy)
        and (one.dataset.name, one.dataset.sha256) == (other.dataset.name, other.dataset.sha256)
    )


def _differing_settings(detection: Run, run: Run) -> list[str]:
    """Return the settings that differ, each as `name VALUE, not VALUE OF THE RUN`."""
    ours, theirs = run.manifest.system.settings, detection.manifest.system.settings
    # A vote has its own temperature, and there is no detection by vote.
    ignored = {"votes", "temperature"} if "votes" in ours else set[str]()
    return [
        f"{name} {theirs.get(name, 'absent')}, not {ours.get(name, 'absent')}"
        for name in sorted((ours.keys() | theirs.keys()) - ignored)
        if ours.get(name, "absent") != theirs.get(name, "absent")
    ]


@dataclass(frozen=True, slots=True)
class Board:
    """A row for each stored run and task; of a leaderboard that was written, all rows, ranked.

    Attributes:
        left_out: runs and lines that could not be scored, each with the reason.
        files: what was written, `leaderboard.csv` first.
    """

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    files: tuple[Path, ...] = ()


def collect(results: Path, loaded: Iterable[Dataset] = ()) -> Board:
    """Score the runs that `read_runs` finds."""
    stored = read_runs(results, loaded)
    return Board(tuple(row for run in stored.runs for row in rows_of(run)), stored.left_out)


def rows_of(run: Run) -> list[Row]:
    """Return a row for the run's task, and one for masking if there is a detection run."""
    clusters = clusters_of(run.dataset.samples)
    rows = []
    for task, evaluation in run.scores.evaluations.items():
        parts = [run.detection, run] if task is Task.MASKING and run.detection else [run]
        recipients = dict.fromkeys(part.unmasked_text_to for part in parts)
        rows.append(
            row_of(
                evaluation,
                _signature(parts, task),
                clusters,
                source=run.source,
                oracle=run.manifest.system.oracle,
                names_subjects=run.names_subjects,
                names_types=run.names_types,
                unmasked_text_to=", ".join(recipients),
            )
        )
    return rows


def _signature(parts: Sequence[Run], task: Task) -> Signature:
    """Return the signature of a row: `parts` are the run, and before it its detection run."""
    systems = [part.manifest.system for part in parts]
    dataset, last = parts[-1].manifest.dataset, systems[-1]
    # Settings of the detection run that differ from those of the run.
    others = {
        f"{system.prompt}.{key}": value
        for system in systems[:-1]
        for key, value in system.settings.items()
        if last.settings.get(key) != value
    }
    return Signature(
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        task=task,
        strategy=last.prompt,
        prompts={system.prompt: system.prompt_sha256 for system in systems if system.prompt},
        model=last.model,
        returned=sorted({name for part in parts for name in part.scores.returned}),
        settings={**last.settings, **others},
    )


def update(results: Path, loaded: Iterable[Dataset] = ()) -> Board:
    """Score the stored runs, as `read_runs` finds them, and write the leaderboard.

    Raises:
        ResultsError: it cannot be written, or another process writes it for minutes.
    """
    # Scored under the lock: an older view written last would hide the rows of another run.
    with locked(results, wait=300):
        stored = collect(results, loaded)
        readers = reading_rows({row.dataset for row in stored.rows})
        people, broken = human_rows(results)
        rows = rank([*stored.rows, *readers, *people, *published_rows()])
        files = write_leaderboard(rows, results)
    return Board(tuple(rows), (*stored.left_out, *broken), files)
