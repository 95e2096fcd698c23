"""The jobs of a run: each system on each dataset, asked one by one or in batches."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import GuardedModel
from pii_bench.models.catalog import build_batch_service
from pii_bench.runs.records import (
    DatasetRef,
    Failure,
    Manifest,
    RequestHashes,
    total,
    write_manifest,
)
from pii_bench.runs.run import run_mapped, run_system
from pii_bench.runs.store import BatchesFile, RunFiles, RunStore, locked, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Literal

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.batch import BatchService
    from pii_bench.models.budget import Ledger
    from pii_bench.runs.records import RunRecord
    from pii_bench.runs.run import Progress
    from pii_bench.systems.base import Response, System
    from pii_bench.tasks import Task

    MapSamples = Callable[[Task, Sequence[Sample]], Iterator[Response | Failure]]


@dataclass(frozen=True, slots=True)
class Job:
    """One system on one dataset.

    Attributes:
        samples: those that were asked for.
        requests: sample id to request hash, for every sample that the task applies to.
    """

    system: System
    dataset: Dataset
    samples: tuple[Sample, ...]
    requests: RequestHashes
    files: RunFiles

    @classmethod
    def of(cls, system: System, dataset: Dataset, limit: int | None, root: Path) -> Job:
        """The job of a system on the first samples of a dataset."""
        card = system.card
        everything = applicable(card.task, dataset.samples)
        return cls(
            system=system,
            dataset=dataset,
            samples=tuple(applicable(card.task, dataset.samples[:limit])),
            requests=RequestHashes(system, everything),
            files=RunFiles.at(root, card.model, card.prompt, dataset.name),
        )

    @property
    def label(self) -> str:
        """How it is named to the user."""
        return f"{self.system.card.prompt} on {self.dataset.name}"

    def without_answer(self) -> list[Sample]:
        """The samples of which no response to what would be asked today is stored here."""
        # What was answered to the same request before other settings superseded it counts too,
        # and the run that asks what is missing says which lines it could not read.
        stored = (
            record
            for path in (self.files.responses, self.files.superseded)
            for _, record in read_lines(path, unreadable=[])
        )
        answered = {
            record.id
            for record in stored
            if not isinstance(record.response, Failure)
            and record.request == self.requests.get(record.id)
        }
        return [sample for sample in self.samples if sample.id not in answered]

    def unanswered(self) -> tuple[Sample, ...]:
        """The samples that must be asked about: no dataset has a response to the same request."""
        left = self.without_answer()
        elsewhere = self.answered_elsewhere({sample.id for sample in left})
        return tuple(sample for sample in left if sample.id not in elsewhere)

    def answered_elsewhere(self, names: Collection[str]) -> dict[str, RunRecord]:
        """Of samples, the answers that are stored of other datasets to the same requests.

        None for a replay, whose answers depend on a sample's id, which no request tells.
        """
        manifests = sorted(self.files.manifest.parent.glob("*.run.json"))
        others = [RunFiles.of_manifest(path) for path in manifests if path != self.files.manifest]
        replayed = self.system.card.model.startswith("replay/")
        if replayed or not names or not others:
            return {}
        wanted: dict[str, list[str]] = {}
        for name in names:
            wanted.setdefault(self.requests[name], []).append(name)
        return {
            name: replace(record, id=name)
            for files in others
            for _, record in read_lines(files.responses, unreadable=[])
            if not isinstance(record.response, Failure)
            for name in wanted.get(record.request, ())
        }

    def in_batches(self) -> set[str]:
        """The samples about which a batch asks what would be asked today."""
        return {
            name
            for batch in BatchesFile(self.files)
            for name, request in batch.requests.items()
            if request == self.requests.get(name)
        }

    def in_batches_of(self, others: Iterable[Job]) -> set[str]:
        """The samples about which batches of other datasets ask the same."""
        requests = {
            other.requests[name]
            for other in others
            if other.files.manifest.parent == self.files.manifest.parent
            for name in other.in_batches()
        }
        if not requests:
            return set()
        return {each.id for each in self.samples if self.requests[each.id] in requests}


def ledger_of(system: System) -> Ledger | None:
    """What keeps account of a system's calls; None where no one is called."""
    match system:
        case object(model=GuardedModel(ledger=ledger)):
            return ledger
        case _:
            return None


def batch_service(system: System) -> BatchService:
    """The batch API through which a system can be asked.

    Raises:
        PiiBenchError: it cannot be run in batches, or its provider has none.
    """
    from pii_bench.runs.batch import require_prompted

    model = require_prompted(system).model
    return build_batch_service(model.model if isinstance(model, GuardedModel) else model)


@contextmanager
def reserved(jobs: Sequence[Job]) -> Iterator[None]:
    """Keep other runs out of the folders of some jobs.

    Raises:
        ResultsError: another run writes there, or they cannot be written.
    """
    with ExitStack() as stack:
        for folder in sorted({job.files.model_folder for job in jobs}):
            stack.enter_context(locked(folder))
        yield


async def run_jobs(
    jobs: Sequence[Job],
    concurrency: int,
    batch: Literal["submit", "wait"] | None,
    progress: Progress,
    map_samples: MapSamples | None = None,
) -> bool:
    """Ask what is missing, job by job.

    Args:
        jobs: what to do, in reserved folders; systems are closed at the end.
        concurrency: samples asked about at a time.
        batch: None to ask one by one; to submit batches and leave, or to wait for them.
        progress: is told of each job and sample.
        map_samples: asks about samples elsewhere (`respond_on_ray`); None to ask here.

    Returns:
        Whether it is known that nothing is missing any more; of batches it is not.

    Raises:
        ProviderRefusedError: no call can succeed; what arrived before is saved.
        ResultsError: results cannot be written.
        PiiBenchError: what is asked one by one is in a batch, or a system cannot be run
            in batches, or the batches do not end.
    """
    try:
        if batch is None:
            return all([await _ask(job, concurrency, progress, map_samples) for job in jobs])
        # All are submitted before any is waited for: the provider works on them together.
        running = [
            job
            for place, job in enumerate(jobs)
            if await _collect(job, jobs[:place], progress, wait=False)
        ]
        if batch == "wait":
            for job in running:
                await _collect(job, (), progress, wait=True)
        return False
    finally:
        await close_systems(jobs)


async def close_systems(jobs: Iterable[Job]) -> None:
    """Release what the systems of some jobs hold."""
    for job in jobs:
        await job.system.close()


def refuse_uncollected(jobs: Sequence[Job]) -> None:
    """Refuse to ask one by one what was submitted, and is paid for, in a batch.

    Raises:
        PiiBenchError: naming the job and the file that lists its batches.
    """
    for job in jobs:
        if count := len(job.in_batches()):
            raise PiiBenchError(
                f"{job.label}: {count} samples are in batches that were submitted before: run "
                f"with --batch to collect them; without {job.files.batches} they are asked "
                "again"
            )


async def _ask(
    job: Job, concurrency: int, progress: Progress, map_samples: MapSamples | None
) -> bool:
    """Ask one by one; whether every sample has an answer."""
    with _opened(job, progress, ledger_of(job.system)) as store:
        if map_samples is None:
            await run_system(
                job.system, job.samples, store, concurrency=concurrency, observer=progress
            )
        else:
            mapped = partial(map_samples, job.system.card.task)
            run_mapped(mapped, job.samples, store, progress)
    return all(sample.id in store.done for sample in job.samples)


async def _collect(job: Job, earlier: Sequence[Job], progress: Progress, *, wait: bool) -> bool:
    """Submit and read batches, but for what batches of earlier jobs ask; whether some still run."""
    from pii_bench.runs.batch import Polling, afford, require_prompted, run_batch

    system = require_prompted(job.system)
    with _opened(job, progress, None) as store:
        shared = job.in_batches_of(earlier) - store.done - job.in_batches()
        if shared:
            progress.note(f"{len(shared)} requests are in batches of other datasets: asked once")
        samples = [sample for sample in job.samples if sample.id not in shared]
        samples = afford(system, samples, store, job.files, ledger_of(system))
        running = await run_batch(
            system,
            samples,
            store,
            files=job.files,
            requests=job.requests,
            service=batch_service(system),
            observer=progress,
            polling=Polling(wait=wait),
        )
    return running > 0 or bool(shared)


@contextmanager
def _opened(job: Job, progress: Progress, ledger: Ledger | None) -> Iterator[RunStore]:
    """The responses of a job, with what other datasets have of them; at the end they are summed."""
    progress.label(job.label, ledger)
    manifest = Manifest(job.system.card, DatasetRef.of(job.dataset))
    with RunStore(job.files, job.requests) as store:
        _announce(store, job, progress)
        write_manifest(job.files.manifest, manifest)
        _reuse(store, job, progress)
        yield store
    own = ledger_of(job.system)
    records = (record for _, record in read_lines(job.files.responses, unreadable=[]))
    totals = total(records, own.price if own else None)
    write_manifest(job.files.manifest, replace(manifest, totals=totals))


def _announce(store: RunStore, job: Job, progress: Progress) -> None:
    """Say what opening the store did to answers that are paid for."""
    aside = job.files.superseded
    if store.reused:
        progress.note(f"{store.reused} answers to the same requests are used again, from {aside}")
    if store.superseded:
        what = "answers to other requests (another model, prompt or setting) are superseded"
        progress.note(f"{store.superseded} {what}: they are kept in {aside}")
    if store.unreadable:
        count, first = len(store.unreadable), store.unreadable[0]
        progress.note(f"{count} lines cannot be read, first {first}: they are kept in {aside}")


def _reuse(store: RunStore, job: Job, progress: Progress) -> None:
    """Take over the answers to the same requests that other datasets have: `hard` is of two."""
    found = job.answered_elsewhere({sample.id for sample in job.samples} - store.done)
    for record in found.values():
        store.append(record)
    if found:
        what = "answers to the same requests are used again, from other datasets"
        progress.note(f"{len(found)} {what}")


def missing(jobs: Sequence[Job]) -> list[str]:
    """What has no answer yet, a sentence for each job; empty where nothing is missing."""
    lines = []
    for job in jobs:
        unanswered = {sample.id for sample in job.without_answer()}
        if unanswered:
            submitted = unanswered & (job.in_batches() | job.in_batches_of(jobs))
            reasons = [*sorted(_reasons(job, unanswered).items()), ("in batches", len(submitted))]
            why = "".join(f", {reason} {count}" for reason, count in reasons if count)
            then = "collect them" if submitted == unanswered else "ask only these"
            share = f"{len(unanswered)} of {len(job.samples)} samples have no answer"
            lines.append(f"{job.label}: {share}{why}; run again to {then}")
    return lines


def _reasons(job: Job, unanswered: set[str]) -> Counter[str]:
    return Counter(
        record.response.kind
        for _, record in read_lines(job.files.responses, unreadable=[])
        if record.id in unanswered and isinstance(record.response, Failure)
    )
