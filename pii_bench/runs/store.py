"""Storage of responses: one append-only file per model, prompt and dataset.

The list of batches whose results are not collected yet is stored next to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from filelock import FileLock, Timeout

from pii_bench.errors import InputFileError
from pii_bench.files import (
    RecordError,
    ResultsError,
    get,
    get_objects,
    open_binary,
    read_object,
    remove_leftovers,
    replacing,
    write_whole,
    writing,
)
from pii_bench.runs.records import Failure, RunRecord, decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST_REMEDY: Final = "run again: it is written again, and the answers next to it are used again"
"""How to repair an unreadable manifest."""

LINE_REMEDY: Final = "run again: the line is moved away, and only its sample is asked again"
"""How to repair an unreadable line: `RunStore` moves it to the superseded file."""

_BATCHES_REMEDY: Final = (
    "move the file away and run again: what its batches ask is asked, and paid, again"
)

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@+-]+")
_PORT: Final = re.compile(r"(@[^@]*)--(\d+)$")
# File systems allow 255 bytes; suffixes and temporary names need the rest.
_LONGEST_NAME: Final = 150


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on a folder, creating the folder if needed.

    The operating system releases the lock when the process ends, even if it is killed; the lock
    file may stay behind. Temporary files of killed processes are removed from the folder and its
    direct subfolders.

    Raises:
        ResultsError: another run holds the lock, even after `wait` seconds, or the folder cannot
            be written.
    """
    lock = FileLock(folder / ".lock", timeout=wait)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            what = "another run is writing there: wait for it, or give another --results"
            raise ResultsError(f"{folder}: {what}") from None
    try:
        remove_leftovers(folder)
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run.

    Attributes:
        responses: `<dataset>.jsonl`, one line per sample.
        manifest: `<dataset>.run.json`, the system, dataset and version.
        superseded: responses to requests that have changed since, and unreadable lines. A run that
            makes one of those requests again uses its response.
        batches: `<dataset>.batch.json`, the batches whose results are not collected yet.
    """

    responses: Path
    manifest: Path
    superseded: Path
    batches: Path

    @classmethod
    def at(cls, root: Path, model: str, prompt: str, dataset: str) -> RunFiles:
        """Return `<root>/<model>/<prompt>/<dataset>.*`, with portable file names.

        Names that would collide end in a few digits of their hash.
        """
        folder = root / file_name(model) / file_name(prompt)
        return cls.of_manifest(folder / f"{file_name(dataset)}.run.json")

    @property
    def model_folder(self) -> Path:
        """`<root>/<model>`, the folder that a run locks."""
        return self.responses.parent.parent

    @classmethod
    def of_manifest(cls, manifest: Path) -> RunFiles:
        """Return the files next to a manifest."""
        stem = manifest.name.removesuffix(".run.json")
        return cls(
            responses=manifest.with_name(f"{stem}.jsonl"),
            manifest=manifest,
            superseded=manifest.with_name(f"{stem}.superseded.jsonl"),
            batches=manifest.with_name(f"{stem}.batch.json"),
        )


class RunStore:
    """The responses of one run, open for appending.

    The process may be killed at any moment: a line is complete once it ends in a newline. Opening
    the store drops an incomplete last line and failed calls, so that both are tried again; moves
    responses whose request has changed, and unreadable lines, to the superseded file; and takes
    back superseded responses whose request is current again.

    Appended lines survive the process but not a power failure: syncing after every line would cost
    more than repeating the last few requests. A file that replaces another is synced first.

    The caller must hold the lock of the folder, see `locked`.

    Attributes:
        requests: sample id to request hash, for every sample of the dataset.
        done: ids of the samples that have a response.
        superseded: number of responses moved to the superseded file on opening.
        reused: number of responses taken back from it.
        unreadable: error messages of the unreadable lines found on opening.

    Raises:
        ResultsError: the folder cannot be written.
    """

    def __init__(self, files: RunFiles, requests: Mapping[str, str]) -> None:
        self.files = files
        self.requests = requests
        self.done: set[str] = set()
        self.superseded = self.reused = 0
        self.unreadable: list[str] = []
        with writing(files.responses):
            files.responses.parent.mkdir(parents=True, exist_ok=True)
            self._load_existing()
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def append(self, record: RunRecord) -> None:
        """Write one line; after the call it survives a kill of the process.

        Raises:
            ResultsError: the line cannot be written; earlier lines are unchanged.
        """
        line = encode_record(record)
        written = 0
        with writing(self.files.responses):
            try:
                while written < len(line):
                    written += os.write(self._descriptor, line[written:])
            except OSError:
                # A partial line would corrupt the next one, which another worker may write.
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
                raise
        if not isinstance(record.response, Failure):
            self.done.add(record.id)

    def sort(self) -> None:
        """Keep the last line of each sample, in the order of the dataset.

        Equal runs then give equal files.

        Raises:
            ResultsError: the file cannot be written; it is unchanged.
        """
        with writing(self.files.responses):
            with self.files.responses.open("rb") as file:
                lines = {json.loads(raw)["id"]: raw for raw in file}
            in_order = [lines[name] for name in self.requests if name in lines]
            if _rewrite(self.files.responses, in_order):
                before = self._descriptor
                self._open()
                os.close(before)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = os.open(self.files.responses, flags, mode=0o666)

    def _load_existing(self) -> None:
        """Keep, supersede, reuse or drop the lines of earlier runs."""
        kept: list[bytes] = []
        superseded: list[bytes] = []
        for raw, record in _scan(self.files.responses):
            if isinstance(record, InputFileError):
                self.unreadable.append(str(record))
                superseded.append(raw)
            elif isinstance(record.response, Failure):
                continue
            elif self.requests.get(record.id) != record.request:
                self.superseded += 1
                superseded.append(raw)
            elif record.id not in self.done:
                self.done.add(record.id)
                kept.append(raw)
        for raw, record in _scan(self.files.superseded):
            if isinstance(record, InputFileError) or isinstance(record.response, Failure):
                continue
            if record.id not in self.done and self.requests.get(record.id) == record.request:
                self.done.add(record.id)
                self.reused += 1
                kept.append(raw)
        if superseded:
            supersede(self.files, superseded)
        _rewrite(self.files.responses, kept)


def supersede(files: RunFiles, lines: Iterable[bytes]) -> None:
    """Append lines to the superseded file of a run, without duplicates, and sync it.

    Raises:
        ResultsError: the file cannot be written.
    """
    path = files.superseded
    existing = list(_raw_lines(path))
    known = set(existing)
    with writing(path), path.open("ab") as file:
        if existing and not existing[-1].endswith(b"\n"):
            # Complete the line that a killed process left.
            file.write(b"\n")
        file.writelines(raw for raw in lines if raw not in known)
        file.flush()
        os.fsync(file.fileno())


def _rewrite(path: Path, lines: list[bytes]) -> bool:
    """Replace the lines of a file; False if it has exactly these already."""
    if lines == list(_raw_lines(path)):
        return False
    with replacing(path) as new:
        new.writelines(lines)
    return True


def read_responses(path: Path, unreadable: list[str] | None = None) -> Iterator[RunRecord]:
    """Yield the records of a run; skip an incomplete last line.

    Args:
        path: the file of responses; it need not exist.
        unreadable: collects the error messages of unreadable lines; None to raise at the first.

    Raises:
        InputFileError: a complete line cannot be read.
    """
    for _, record in _scan(path):
        if isinstance(record, RunRecord):
            yield record
        elif unreadable is None:
            raise record
        else:
            unreadable.append(str(record))


def _scan(path: Path) -> Iterator[tuple[bytes, RunRecord | InputFileError]]:
    """Yield the complete lines, each with its record or the reason why it cannot be read."""
    for number, raw in enumerate(_raw_lines(path), start=1):
        if not raw.endswith(b"\n"):
            return
        record: RunRecord | InputFileError
        try:
            content = json.loads(raw)
            if not isinstance(content, dict):
                raise TypeError("a line must be a JSON object")
            record = decode_record(content)
        except (ValueError, TypeError, RecursionError) as error:
            what = str(error) if isinstance(error, RecordError) else "no line of a run"
            record = InputFileError(path, what, line=number)
        yield raw, record


def _raw_lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with open_binary(path) as file:
            yield from file


def file_name(name: str) -> str:
    """Return a file name that no other name gets; with a hash if the plain one is ambiguous."""
    plain = _UNSAFE.sub("--", name)
    # Slashes, and the colon before the port of an endpoint.
    restored = _PORT.sub(r"\1:\2", plain).replace("--", "/")
    unambiguous = name == restored and name not in {".", ".."}
    if unambiguous and len(plain) <= _LONGEST_NAME:
        return plain
    digits = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain[:_LONGEST_NAME]}-{digits}"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of requests at a provider.

    Attributes:
        tag: a random token, stored in the provider's metadata or in the custom ids.
        submitted: Unix time just before the submission.
        requests: sample id to request hash, in the order of the custom ids.
        id: the provider's id; None until the submission is confirmed.
    """

    tag: str
    submitted: float
    requests: Mapping[str, str]
    id: str | None = None


class BatchesFile:
    """`<dataset>.batch.json`: the batches of a run whose results are not collected yet.

    A batch is added before it is submitted, so that no crash can lose it. Every change is synced
    to disk before the method returns, or raises a `ResultsError`.

    Raises:
        InputFileError: the file is in a wrong format.
    """

    def __init__(self, files: RunFiles) -> None:
        self.path = files.batches
        self._batches = {batch.tag: batch for batch in _read_batches(self.path)}

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over a copy of the list, oldest first."""
        return iter(list(self._batches.values()))

    def __len__(self) -> int:
        return len(self._batches)

    def put(self, batch: Batch) -> None:
        """Add a batch, or replace the one with the same tag."""
        self._batches[batch.tag] = batch
        self._write()

    def drop(self, batch: Batch) -> None:
        """Remove a batch; remove the file with the last one."""
        del self._batches[batch.tag]
        self._write()

    def set_id(self, batch: Batch, batch_id: str) -> None:
        """Store the provider's id of a batch."""
        self.put(replace(batch, id=batch_id))

    def _write(self) -> None:
        if self._batches:
            content = {"jobs": [asdict(batch) for batch in self]}
            write_whole(self.path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        else:
            with writing(self.path):
                self.path.unlink(missing_ok=True)


def _read_batches(path: Path) -> list[Batch]:
    if not path.exists():
        return []
    try:
        return read_object(
            path,
            "list of batches",
            lambda content: [_decode_batch(record) for record in get_objects(content, "jobs")],
        )
    except InputFileError as error:
        raise InputFileError(path, f"{error.what}; {_BATCHES_REMEDY}") from None


def _decode_batch(record: dict[str, Any]) -> Batch:
    requests = get(record, "requests", dict, "job")
    return Batch(
        tag=get(record, "tag", str, "job"),
        submitted=get(record, "submitted", float, "job"),
        requests={name: get(requests, name, str, "requests") for name in requests},
        id=None if record.get("id") is None else get(record, "id", str, "job"),
    )
