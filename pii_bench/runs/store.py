"""Storage of responses: one append-only file per model, prompt and dataset.

The list of batches whose results are not collected yet is stored next to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeAlias

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
    from types import TracebackType

LOCK_NAME: Final = ".lock"

MANIFEST_REMEDY: Final = "run again: it is written again, and the answers next to it are used again"
"""How to repair an unreadable manifest."""

LINE_REMEDY: Final = "run again: the line is moved away, and only its sample is asked again"
"""How to repair an unreadable line: `RunStore` moves it to the superseded file."""

_BATCHES_REMEDY: Final = (
    "move the file away and run again: what its batches ask is asked, and paid, again"
)

# The location of a line: file, byte offset and length in bytes.
_Place: TypeAlias = "tuple[Path, int, int]"

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

    Args:
        folder: the folder of a model or of the leaderboard.
        wait: seconds to wait for the lock; 0 to fail at once.

    Raises:
        ResultsError: another run holds the lock, or the folder cannot be written.
    """
    lock = FileLock(folder / LOCK_NAME, timeout=wait)
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
        folder = root / _file_name(model) / _file_name(prompt)
        return cls.of_manifest(folder / f"{_file_name(dataset)}.run.json")

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
    """

    def __init__(self, files: RunFiles, requests: Mapping[str, str]) -> None:
        """Open the files.

        Args:
            files: the files of the run.
            requests: sample id to request hash, for every sample of the dataset.

        Raises:
            ResultsError: the folder cannot be written.
        """
        self._files = files
        self.requests = requests
        self.done: set[str] = set()
        self.superseded = self.reused = 0
        self.unreadable: list[str] = []
        with writing(files.responses):
            files.responses.parent.mkdir(parents=True, exist_ok=True)
            self._load_existing()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = os.open(files.responses, flags, mode=0o666)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def append(self, record: RunRecord) -> None:
        """Write one line; after the call it survives a kill of the process.

        Raises:
            ResultsError: the line cannot be written; earlier lines are unchanged.
        """
        line = encode_record(record)
        written = 0
        with writing(self._files.responses):
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
        path = self._files.responses
        places: dict[str, _Place] = {}
        offset = 0
        with path.open("rb") as file:
            for raw in file:
                places[json.loads(raw)["id"]] = path, offset, len(raw)
                offset += len(raw)
        order = [places[name] for name in self.requests if name in places]
        if order == sorted(order) and len(order) == len(places):
            return
        with writing(path):
            _rewrite(path, order)
            new = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.close(self._descriptor)
        self._descriptor = new

    def _load_existing(self) -> None:
        """Keep, supersede, reuse or drop the lines of earlier runs."""
        path = self._files.responses
        kept: list[_Place] = []
        superseded: list[_Place] = []
        for line in _scan(path):
            if isinstance(line.record, InputFileError):
                self.unreadable.append(str(line.record))
                superseded.append(line.place)
            elif isinstance(line.record.response, Failure):
                continue
            elif self.requests.get(line.record.id) != line.record.request:
                self.superseded += 1
                superseded.append(line.place)
            elif line.record.id not in self.done:
                self.done.add(line.record.id)
                kept.append(line.place)
        for place, record in self._reusable():
            self.done.add(record.id)
            self.reused += 1
            kept.append(place)
        if superseded:
            supersede(self._files, _lines_at(superseded))
        size = path.stat().st_size if path.exists() else 0
        if self.reused or sum(length for _, _, length in kept) != size:
            _rewrite(path, kept)

    def _reusable(self) -> Iterator[tuple[_Place, RunRecord]]:
        """Yield superseded responses to current requests, for samples without a response."""
        for line in _scan(self._files.superseded):
            record = line.record
            if not isinstance(record, RunRecord) or isinstance(record.response, Failure):
                continue
            if record.id not in self.done and self.requests.get(record.id) == record.request:
                yield line.place, record


def supersede(files: RunFiles, lines: Iterable[bytes]) -> None:
    """Append lines to the superseded file of a run, without duplicates, and sync it.

    Raises:
        ResultsError: the file cannot be written.
    """
    path = files.superseded
    existing = {hashlib.sha256(raw).digest() for raw in _raw_lines(path)}
    new = [raw for raw in lines if hashlib.sha256(raw).digest() not in existing]
    with writing(path), path.open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                # Complete the line that a killed process left.
                file.write(b"\n")
        file.writelines(new)
        file.flush()
        os.fsync(file.fileno())


def _rewrite(path: Path, places: Iterable[_Place]) -> None:
    with replacing(path) as new:
        new.writelines(_lines_at(places))


def _lines_at(places: Iterable[_Place]) -> Iterator[bytes]:
    with ExitStack() as stack:
        files: dict[Path, IO[bytes]] = {}
        for path, offset, length in places:
            if path not in files:
                files[path] = stack.enter_context(path.open("rb"))
            files[path].seek(offset)
            yield files[path].read(length)


def read_lines(
    path: Path, unreadable: list[str] | None = None
) -> Iterator[tuple[bytes, RunRecord]]:
    """Yield the complete lines of a run with their records; skip an incomplete last line.

    Args:
        path: the file of responses; it need not exist.
        unreadable: collects the error messages of unreadable lines; None to raise at the first.

    Raises:
        InputFileError: a complete line cannot be read.
    """
    for line in _scan(path):
        if isinstance(line.record, RunRecord):
            yield line.raw, line.record
        elif unreadable is None:
            raise line.record
        else:
            unreadable.append(str(line.record))


@dataclass(frozen=True, slots=True)
class _Line:
    """A complete line; `record` is an error if the line cannot be read."""

    place: _Place
    raw: bytes
    record: RunRecord | InputFileError


def _scan(path: Path) -> Iterator[_Line]:
    offset = 0
    for number, raw in enumerate(_raw_lines(path), start=1):
        if not raw.endswith(b"\n"):
            return
        record: RunRecord | InputFileError
        try:
            record = decode_record(_object(raw))
        except (ValueError, TypeError, RecursionError) as error:
            what = str(error) if isinstance(error, RecordError) else "no line of a run"
            record = InputFileError(path, what, line=number)
        yield _Line((path, offset, len(raw)), raw, record)
        offset += len(raw)


def _raw_lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with open_binary(path) as file:
            yield from file


def _object(raw: bytes) -> dict[str, Any]:
    record = json.loads(raw)
    if not isinstance(record, dict):
        raise TypeError("a line must be a JSON object")
    return record


def _file_name(name: str) -> str:
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
    to disk before the method returns.

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
        """Add a batch, or replace the one with the same tag.

        Raises:
            ResultsError: the file cannot be written.
        """
        self._batches[batch.tag] = batch
        self._write()

    def drop(self, batch: Batch) -> None:
        """Remove a batch; remove the file with the last one.

        Raises:
            ResultsError: the file cannot be written.
        """
        del self._batches[batch.tag]
        self._write()

    def set_id(self, batch: Batch, batch_id: str) -> None:
        """Store the provider's id of a batch.

        Raises:
            ResultsError: the file cannot be written.
        """
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
