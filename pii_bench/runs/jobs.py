"""The jobs of a command: one system on one dataset each, run by single calls or in batches."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_json
from pii_bench.models.budget import Estimate, Range, estimate
from pii_bench.models.calls import GuardedModel, asked_wait
from pii_bench.models.catalog import build_batch_service, is_replay
from pii_bench.runs.records import (
    DatasetRef,
    Failure,
    Manifest,
    RequestHashes,
    read_totals,
    total,
)
from pii_bench.runs.run import run_mapped, run_system
from pii_bench.runs.store import BatchesFile, RunFiles, RunStore, locked, read_responses
from pii_bench.systems.base import close_all, fault_of
from pii_bench.systems.plug_ins import PlugIn
from pii_bench.systems.prompted import DrawnSystem, PromptedSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Literal

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.batch import BatchService
    from pii_bench.models.budget import Ledger
    from pii_bench.runs.progress import Progress
    from pii_bench.runs.records import RunRecord, Totals
    from pii_bench.systems.base import Response, System
    from pii_bench.tasks import Task

    MapTaskSamples = Callable[[Task, Sequence[Sample]], Iterator[Response | Failure]]

_LISTED_FAULTS: Final = 5
_NOTHING: Final = Estimate(0, Range(0, 0, 0), Range(0, 0, 0), Range(0.0, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Job:
    """One system on one dataset.

    Attributes:
        samples: the selected samples.
        requests: sample id to request hash, for every sample that the task applies to.
    """

    system: System
    dataset: Dataset
    samples: tuple[Sample, ...]
    requests: RequestHashes
    files: RunFiles

    @classmethod
    def of(cls, system: System, dataset: Dataset, limit: int | None, root: Path) -> Job:
        """Return the job of a system on the first `limit` samples of a dataset."""
        card = system.card
        return cls(
            system=system,
            dataset=dataset,
            samples=tuple(applicable(card.task, dataset.samples[:limit])),
            requests=RequestHashes(system, applicable(card.task, dataset.samples)),
            files=RunFiles.at(root, card.model, card.prompt, dataset.name),
        )

    @property
    def label(self) -> str:
        """The name shown to the user."""
        return f"{self.system.card.prompt} on {self.dataset.name}"

    def responses(self) -> Iterator[RunRecord]:
        """Yield the stored records; unreadable lines are reported when the store is opened."""
        return read_responses(self.files.responses, unreadable=[])

    def without_answer(self) -> list[Sample]:
        """Return the samples without a stored response to their current request."""
        # Superseded responses count if their request is current again.
        answered = {
            record.id
            for path in (self.files.responses, self.files.superseded)
            for record in read_responses(path, unreadable=[])
            if not isinstance(record.response, Failure)
            and record.request == self.requests.get(record.id)
        }
        return [sample for sample in self.samples if sample.id not in answered]

    def answered_elsewhere(self, names: Collection[str]) -> dict[str, RunRecord]:
        """Return the responses of runs on other datasets to the requests of these samples.

        A replayed model has none: its answers depend on the sample id, which is not part of the
        request.
        """
        if is_replay(self.system.card.model):
            return {}
        wanted: dict[str, list[str]] = {}
        for name in names:
            wanted.setdefault(self.requests[name], []).append(name)
        found = {}
        others = set(self.files.manifest.parent.glob("*.run.json")) - {self.files.manifest}
        for manifest in sorted(others) if wanted else ():
            for record in read_responses(RunFiles.of_manifest(manifest).responses, unreadable=[]):
                if not isinstance(record.response, Failure):
                    for name in wanted.get(record.request, ()):
                        found[name] = replace(record, id=name)
        return found

    def in_batches(self) -> set[str]:
        """Return the ids of samples whose current request is in a batch."""
        return {
            name
            for batch in BatchesFile(self.files)
            for name, request in batch.requests.items()
            if request == self.requests.get(name)
        }

    @property
    def unconfirmed(self) -> bool:
        """True if it is unknown whether a batch was submitted."""
        return any(batch.id is None for batch in BatchesFile(self.files))

    def in_batches_of(self, others: Iterable[Job]) -> set[str]:
        """Return the ids of samples whose request is in a batch of another dataset."""
        requests = {
            other.requests[name]
            for other in others
            if other.files.manifest.parent == self.files.manifest.parent
            for name in other.in_batches()
        }
        if not requests:
            return set()
        return {sample.id for sample in self.samples if self.requests[sample.id] in requests}


def ledger_of(system: System) -> Ledger | None:
    """Return the ledger of a system's calls; None if it makes no calls."""
    if isinstance(system, PlugIn):
        return ledger_of(system.system)
    model = getattr(system, "model", None)
    return model.ledger if isinstance(model, GuardedModel) else None


def batch_service(system: System) -> BatchService:
    """Return the batch API for a system.

    Raises:
        PiiBenchError: the system cannot be run in batches, or its provider has no batch API.
    """
    # Slow to import, as below.
    from pii_bench.runs.batch import require_prompted

    model = require_prompted(system).model
    return build_batch_service(model.model if isinstance(model, GuardedModel) else model)


@contextmanager
def reserved(jobs: Sequence[Job]) -> Iterator[None]:
    """Lock the folders of jobs.

    Raises:
        ResultsError: another run writes there, or a folder cannot be written.
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
    map_samples: MapTaskSamples | None = None,
) -> bool:
    """Get the missing responses, job by job.

    Args:
        jobs: their folders must be locked (`reserved`). Their systems are closed at the end.
        concurrency: samples in flight at a time.
        batch: None for single calls; `submit` to submit batches and return; `wait` to collect them.
        progress: receives progress events.
        map_samples: gets the responses in other processes (`respond_on_ray`); None for this one.

    Returns:
        True if every sample has an answer; always False for batches.

    Raises:
        ProviderRefusedError: no call can succeed; earlier responses are saved.
        ResultsError: results cannot be written.
        PiiBenchError: a system cannot be run in batches, or a batch does not end.
    """
    try:
        if batch is None:
            return all([await _ask(job, concurrency, progress, map_samples) for job in jobs])
        # Submit all before waiting for any: the provider works on them at the same time.
        running = [
            job
            for index, job in enumerate(jobs)
            if await _collect(job, jobs[:index], progress, wait=False)
        ]
        if batch == "wait":
            for job in running:
                await _collect(job, (), progress, wait=True)
        return False
    finally:
        await close_all(job.system for job in jobs)


def refuse_uncollected(jobs: Sequence[Job]) -> None:
    """Refuse single calls for requests that were submitted, and are paid for, in a batch.

    Raises:
        PiiBenchError: a batch is not collected; the message names the job and its list of batches.
    """
    for job in jobs:
        if count := len(job.in_batches()):
            are = "may be" if job.unconfirmed else "are"
            raise PiiBenchError(
                f"{job.label}: {count} samples {are} in batches that were submitted before: run "
                f"with --batch to collect them; without {job.files.batches} they are asked "
                "again"
            )


async def _ask(
    job: Job, concurrency: int, progress: Progress, map_samples: MapTaskSamples | None
) -> bool:
    """Run a job by single calls; True if every sample has an answer."""
    for sample in job.samples:
        # A plug-in's code may fail here: better before the first call than after it.
        job.requests[sample.id]
    with _opened(job, progress, ledger_of(job.system)) as store:
        if map_samples is None:
            await run_system(
                job.system, job.samples, store, concurrency=concurrency, progress=progress
            )
        else:
            mapped = partial(map_samples, job.system.card.task)
            run_mapped(mapped, job.samples, store, progress)
    _report_faults(job, progress)
    return all(sample.id in store.done for sample in job.samples)


def _report_faults(job: Job, progress: Progress) -> None:
    """Report the samples on which a plug-in's code failed; they count as wrong answers."""
    if not isinstance(job.system, PlugIn):
        return
    sample_ids = {sample.id for sample in job.samples}
    faults = [
        f"sample {record.id!r}: {fault}"
        for record in job.responses()
        if record.id in sample_ids and (fault := fault_of(record.response))
    ]
    for fault in faults[:_LISTED_FAULTS]:
        progress.note(fault)
    if len(faults) > _LISTED_FAULTS:
        progress.note(f"and {len(faults) - _LISTED_FAULTS} more")


async def _collect(job: Job, earlier: Sequence[Job], progress: Progress, *, wait: bool) -> bool:
    """Submit and read batches; True if some still run.

    Requests that are in batches of `earlier` jobs are not submitted again.
    """
    from pii_bench.runs.batch import Polling, afford, require_prompted, run_batch

    system = require_prompted(job.system)
    with _opened(job, progress, None) as store:
        shared = job.in_batches_of(earlier) - store.done - job.in_batches()
        if shared:
            progress.note(f"{len(shared)} requests are in batches of other datasets: asked once")
        samples = [sample for sample in job.samples if sample.id not in shared]
        samples = afford(system, samples, store, ledger_of(system))
        running = await run_batch(
            system,
            samples,
            store,
            service=batch_service(system),
            progress=progress,
            polling=Polling(wait=wait),
        )
    return running > 0 or bool(shared)


@contextmanager
def _opened(job: Job, progress: Progress, ledger: Ledger | None) -> Iterator[RunStore]:
    """Open the store of a job, reuse responses of other datasets, and write totals at the end."""
    progress.label(job.label, ledger)
    manifest = Manifest(job.system.card, DatasetRef.of(job.dataset))
    before = read_totals(job.files.manifest)
    with RunStore(job.files, job.requests) as store:
        _announce(store, progress)
        write_json(job.files.manifest, manifest)
        try:
            _reuse(store, job, progress)
            yield store
        finally:
            # What was answered before a refusal or an interruption is paid for, too.
            write_json(job.files.manifest, replace(manifest, totals=_totals(job, before)))


def _totals(job: Job, before: Totals | None) -> Totals:
    """Sum a job's responses; a cost that was known `before` is kept if nothing was added."""
    own = ledger_of(job.system)
    totals = total(job.responses(), own.price if own else None)
    if before is None or totals.price is not None:
        return totals
    with_cost = replace(totals, usd=before.usd, price=before.price)
    return with_cost if with_cost == before else totals


def _announce(store: RunStore, progress: Progress) -> None:
    """Report what opening the store did to responses that are paid for."""
    path = store.files.superseded
    if store.reused:
        progress.note(f"{store.reused} answers to the same requests are used again, from {path}")
    if store.superseded:
        progress.note(
            f"{store.superseded} answers to other requests (another model, endpoint, prompt or "
            f"setting) are superseded: they are kept in {path}"
        )
    if store.unreadable:
        count, first = len(store.unreadable), store.unreadable[0]
        progress.note(f"{count} lines cannot be read, first {first}: they are kept in {path}")


def _reuse(store: RunStore, job: Job, progress: Progress) -> None:
    """Copy responses to the same requests from runs on other datasets (`hard` is a subset)."""
    found = job.answered_elsewhere({sample.id for sample in job.samples} - store.done)
    for record in found.values():
        store.append(record)
    if found:
        progress.note(
            f"{len(found)} answers to the same requests are used again, from other datasets"
        )


def missing(jobs: Sequence[Job]) -> list[str]:
    """Return a sentence for each job with samples that have no answer."""
    lines = []
    for job in jobs:
        unanswered = {sample.id for sample in job.without_answer()}
        if unanswered:
            submitted = unanswered & (job.in_batches() | job.in_batches_of(jobs))
            where = "perhaps in batches" if job.unconfirmed else "in batches"
            failures = [
                record.response
                for record in job.responses()
                if record.id in unanswered and isinstance(record.response, Failure)
            ]
            kinds = Counter(failure.kind for failure in failures)
            reasons = [*sorted(kinds.items()), (where, len(submitted))]
            why = "".join(f", {reason} {count}" for reason, count in reasons if count)
            then = "collect them" if submitted == unanswered else "ask only these"
            if wait := max((asked_wait(failure.detail) for failure in failures), default=0):
                then += f", after the {wait} s that the server asks to wait"
            share = f"{len(unanswered)} of {len(job.samples)} samples have no answer"
            lines.append(f"{job.label}: {share}{why}; run again to {then}")
    return lines


def estimate_jobs(
    jobs: Sequence[Job], *, reasons: bool, batched: bool
) -> list[tuple[Job, Estimate]]:
    """Estimate the calls, tokens and cost of the missing responses of each job."""
    # Two datasets may share requests; each is made once.
    asked: set[str] = set()
    return [(job, _estimate(job, asked, reasons=reasons, batched=batched)) for job in jobs]


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """Add estimates; the cost is unknown if that of any is."""
    estimates = list(estimates)
    costs = [item.usd for item in estimates]
    known = [usd for usd in costs if usd is not None]
    return Estimate(
        calls=sum(item.calls for item in estimates),
        input_tokens=sum((item.input_tokens for item in estimates), start=Range(0, 0, 0)),
        output_tokens=sum((item.output_tokens for item in estimates), start=Range(0, 0, 0)),
        usd=sum(known, start=Range(0.0, 0.0, 0.0)) if len(known) == len(costs) else None,
    )


def _estimate(job: Job, asked: set[str], *, reasons: bool, batched: bool) -> Estimate:
    system, ledger = job.system, ledger_of(job.system)
    if not isinstance(system, PromptedSystem | DrawnSystem) or ledger is None:
        return _NOTHING
    submitted = job.in_batches() if batched else set()
    asked.update(job.requests[name] for name in submitted)
    samples = job.without_answer()
    elsewhere = job.answered_elsewhere({sample.id for sample in samples})
    samples = [
        sample
        for sample in samples
        if sample.id not in elsewhere and job.requests[sample.id] not in asked
    ]
    asked.update(job.requests[sample.id] for sample in samples)
    requests = (request for sample in samples for request in system.requests(sample))
    estimated = estimate(requests, ledger.price, reasons=reasons, batched=batched)
    # Without a call the cost is known, even if the price is not.
    return estimated if estimated.calls else _NOTHING
