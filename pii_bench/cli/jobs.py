"""The jobs of a run: each system on each dataset, asked one by one or in batches."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from pii_bench.calls.guarded import GuardedModel
from pii_bench.cli.progress import RunProgress
from pii_bench.evaluation import applicable
from pii_bench.models.batch import build_batch_service
from pii_bench.runner.afford import afford
from pii_bench.runner.batch import Polling, require_prompted, run_batch
from pii_bench.runner.lock import locked
from pii_bench.runner.manifest import DatasetRef, Manifest, write_manifest
from pii_bench.runner.records import Failure
from pii_bench.runner.run import run_system
from pii_bench.runner.store import RunFiles, RunStore, read_lines
from pii_bench.runner.totals import total
from pii_bench.systems.prompted import PromptedSystem
from pii_bench.systems.voted import VotedSystem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Literal

    from pii_bench.calls.budget import Ledger
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System


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
    requests: dict[str, str]
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
            requests={sample.id: system.request_hash(sample) for sample in everything},
            files=RunFiles.at(root, card.model, card.prompt, dataset.name),
        )

    @property
    def label(self) -> str:
        """How it is named to the user."""
        return f"{self.system.card.prompt} on {self.dataset.name}"

    def unanswered(self) -> tuple[Sample, ...]:
        """The samples that have no response yet to what would be asked today."""
        path = self.files.responses
        answered = {
            record.id
            for _, record in (read_lines(path) if path.exists() else ())
            if not isinstance(record.response, Failure)
            and record.request == self.requests.get(record.id)
        }
        return tuple(sample for sample in self.samples if sample.id not in answered)


def ledger_of(system: System) -> Ledger | None:
    """What keeps account of a system's calls; None where nobody is called."""
    if isinstance(system, PromptedSystem | VotedSystem) and isinstance(system.model, GuardedModel):
        return system.model.ledger
    return None


async def run_jobs(
    jobs: Sequence[Job], concurrency: int, batch: Literal["submit", "wait"] | None
) -> None:
    """Ask what is missing, job by job.

    Args:
        jobs: what to do; systems are closed at the end.
        concurrency: samples asked about at a time.
        batch: None to ask one by one; to submit batches and leave, or to wait for them.

    Raises:
        ResultsError: another run writes to the same results, or they cannot be written.
        ProviderRefusedError: no call can succeed; what arrived before is saved.
        PiiBenchError: a system cannot be run in batches.
    """
    if batch is not None:
        for job in jobs:
            require_prompted(job.system)
    try:
        with ExitStack() as stack:
            for folder in sorted({job.files.model_folder for job in jobs}):
                stack.enter_context(locked(folder))
            progress = stack.enter_context(RunProgress(Console(stderr=True)))
            if batch is None:
                for job in jobs:
                    await _ask(job, concurrency, progress)
                return
            # All are submitted before any is waited for: the provider works on them together.
            for job in jobs:
                await _collect(job, progress, wait=False)
            if batch == "wait":
                for job in jobs:
                    await _collect(job, progress, wait=True)
    finally:
        for job in jobs:
            await job.system.close()


async def _ask(job: Job, concurrency: int, progress: RunProgress) -> None:
    manifest = _begin(job, progress)
    with RunStore(job.files, job.requests) as store:
        write_manifest(job.files.manifest, manifest)
        await run_system(job.system, job.samples, store, concurrency=concurrency, observer=progress)
    _end(job, manifest)


async def _collect(job: Job, progress: RunProgress, *, wait: bool) -> None:
    system = require_prompted(job.system)
    model = system.model.model if isinstance(system.model, GuardedModel) else system.model
    manifest = _begin(job, progress)
    with RunStore(job.files, job.requests) as store:
        write_manifest(job.files.manifest, manifest)
        samples = afford(system, job.samples, store, job.files, ledger_of(system))
        await run_batch(
            system,
            samples,
            store,
            files=job.files,
            requests=job.requests,
            service=build_batch_service(model),
            observer=progress,
            polling=Polling(wait=wait),
        )
    _end(job, manifest)


def _begin(job: Job, progress: RunProgress) -> Manifest:
    progress.label(job.label, ledger_of(job.system))
    return Manifest(job.system.card, DatasetRef.of(job.dataset))


def _end(job: Job, manifest: Manifest) -> None:
    ledger = ledger_of(job.system)
    records = (record for _, record in read_lines(job.files.responses))
    totals = total(records, ledger.price if ledger else None)
    write_manifest(job.files.manifest, replace(manifest, totals=totals))


def report_missing(jobs: Sequence[Job]) -> bool:
    """Say what has no answer yet; whether nothing is missing."""
    complete = True
    for job in jobs:
        missing = {sample.id for sample in job.unanswered()}
        if missing:
            complete = False
            why = "".join(f", {kind} {count}" for kind, count in sorted(_reasons(job, missing)))
            print(
                f"{job.label}: {len(missing)} of {len(job.samples)} samples have no answer{why}; "
                "run again to ask only these",
                file=sys.stderr,
            )
    return complete


def _reasons(job: Job, missing: set[str]) -> list[tuple[str, int]]:
    path = job.files.responses
    failures = Counter(
        record.response.kind
        for _, record in (read_lines(path) if path.exists() else ())
        if record.id in missing and isinstance(record.response, Failure)
    )
    return list(failures.items())
