"""Which samples of a batch the cap on cost still pays for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.models.base import CallError
from pii_bench.runs.batch_jobs import JobsFile
from pii_bench.runs.records import Failure, RunRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.calls.budget import Ledger
    from pii_bench.runs.store import RunFiles, RunStore
    from pii_bench.systems.prompted import PromptedSystem


def afford(
    system: PromptedSystem,
    samples: Sequence[Sample],
    store: RunStore,
    files: RunFiles,
    ledger: Ledger | None,
) -> list[Sample]:
    """The samples that may be submitted; the others are recorded as skipped.

    A job cannot be stopped at a sum: each request that is not submitted yet is counted at the
    most that it may cost, and stays so for this run.

    Args:
        system: who would be asked.
        samples: about what.
        store: of the run, where those skipped are recorded.
        files: of the same run.
        ledger: that of the system; None where there is no cap to keep.

    Raises:
        ResultsError: a record cannot be saved.
        InputFileError: the list of jobs is broken.
    """
    if ledger is None:
        return list(samples)
    # A job without an id may turn out never to have reached the provider.
    submitted = {pair for job in JobsFile(files) if job.id for pair in job.requests.items()}
    kept = []
    for sample in samples:
        request = system.request_hash(sample)
        if sample.id not in store.done and (sample.id, request) not in submitted:
            try:
                ledger.reserve(system.request(sample), batched=True)
            except CallError as error:
                store.append(RunRecord(sample.id, request, Failure.of(error)))
                continue
        kept.append(sample)
    return kept
