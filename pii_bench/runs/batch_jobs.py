"""`<dataset>.batch.json`: the batches of a run that are not collected yet, next to its responses.

A job is written before it is submitted, so that a crash at any moment leaves its trace.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import get, get_objects, read_object, write_json, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pii_bench.runs.store import RunFiles

_REMEDY: Final = "move the file away and run again: what its batches ask is asked, and paid, again"


@dataclass(frozen=True, slots=True)
class Job:
    """One batch.

    Attributes:
        tag: random; the provider's metadata or the custom ids hold it.
        submitted: Unix time just before it was submitted.
        requests: sample id to request hash, in the order of the custom ids.
        id: the provider's; None while its answer is not stored.
    """

    tag: str
    submitted: float
    requests: Mapping[str, str]
    id: str | None = None

    @classmethod
    def new(cls, requests: Mapping[str, str], submitted: float) -> Job:
        """A job that is about to be submitted."""
        return cls(secrets.token_hex(8), submitted, requests)

    @property
    def custom_ids(self) -> dict[str, str]:
        """Custom id to sample id."""
        from pii_bench.models.batch import custom_id

        return {custom_id(self.tag, number): name for number, name in enumerate(self.requests)}


@dataclass(frozen=True, slots=True)
class _Content:
    jobs: tuple[Job, ...]


class JobsFile:
    """The jobs of one run; every change is on the disk when a method returns.

    Args:
        files: of the run.

    Raises:
        InputFileError: the file is not of its format.
    """

    def __init__(self, files: RunFiles) -> None:
        self.path = jobs_path(files)
        self._jobs = {job.tag: job for job in _read(self.path)}

    def __iter__(self) -> Iterator[Job]:
        """The jobs, oldest first; the file may change meanwhile."""
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job, or replace the one of its tag.

        Raises:
            ResultsError: it cannot be written.
        """
        self._jobs[job.tag] = job
        self._write()

    def drop(self, job: Job) -> None:
        """Take a job out; the file goes with the last one.

        Raises:
            ResultsError: it cannot be written.
        """
        del self._jobs[job.tag]
        self._write()

    def identify(self, job: Job, job_id: str) -> Job:
        """Store the provider's id of a job.

        Raises:
            ResultsError: it cannot be written.
        """
        known = replace(job, id=job_id)
        self.put(known)
        return known

    def _write(self) -> None:
        if self._jobs:
            write_json(self.path, _Content(tuple(self._jobs.values())))
        else:
            with writing(self.path):
                self.path.unlink(missing_ok=True)


def jobs_path(files: RunFiles) -> Path:
    """Where the jobs of a run are."""
    stem = files.manifest.name.removesuffix(".run.json")
    return files.manifest.with_name(f"{stem}.batch.json")


def _read(path: Path) -> list[Job]:
    if not path.exists():
        return []
    try:
        return read_object(
            path,
            "list of batches",
            lambda content: [_decode(record) for record in get_objects(content, "jobs")],
        )
    except InputFileError as error:
        raise InputFileError(path, f"{error.what}; {_REMEDY}") from None


def _decode(record: dict[str, Any]) -> Job:
    requests = get(record, "requests", dict, "job")
    return Job(
        tag=get(record, "tag", str, "job"),
        submitted=get(record, "submitted", float, "job"),
        requests={name: get(requests, name, str, "requests") for name in requests},
        id=None if record.get("id") is None else get(record, "id", str, "job"),
    )
