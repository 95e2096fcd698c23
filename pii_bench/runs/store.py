"""Where responses are kept: one append-only file per model, prompt and dataset.

Next to it is the list of the batches that are not collected yet.
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
    read_object,
    remove_leftovers,
    replacing,
    write_whole,
    writing,
)
from pii_bench.runs.records import Failure, RunRecord, decode_record, encode_record, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

LOCK_NAME: Final = ".lock"

MANIFEST_REMEDY: Final = "run again: it is written anew, and the answers next to it are used again"
"""What mends a manifest that cannot be read."""

LINE_REMEDY: Final = "run again: the line is moved away, and only its sample is asked again"
"""What mends a line that cannot be read: `RunStore` moves it to the superseded file."""

_BATCHES_REMEDY: Final = (
    "move the file away and run again: what its batches ask is asked, and paid, again"
)

# Where a line is: its file, and in it the first byte and the length, in bytes.
_Place: TypeAlias = "tuple[Path, int, int]"

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@+-]+")
_PORT: Final = re.compile(r"(@[^@]*)--(\d+)$")
# File systems take 255 bytes; endings and temporary files need the rest.
_LONGEST_NAME: Final = 150


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Keep others out of a folder, which is made where needed, until the block ends.

    The lock is the operating system's: it ends with the process, however that ends, and the
    file that stays behind locks nothing. Temporary files that a killed process left in the
    folder, or in the folders in it, are removed.

    Args:
        folder: one model's, or that of the leaderboard.
        wait: seconds to wait for who holds it; 0 to give up at once.

    Raises:
        ResultsError: another run holds it, or the folder cannot be written.
    """
    lock = FileLock(folder / LOCK_NAME, timeout=wait)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            what = "another run is writing there: let it end, or give another --results"
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
        manifest: `<dataset>.run.json`, what was run.
        superseded: lines that today's requests have no use for: responses to other requests,
            which a later run that makes them again reads, and lines that cannot be read.
        batches: `<dataset>.batch.json`, the batches that are not collected yet.
    """

    responses: Path
    manifest: Path
    superseded: Path
    batches: Path

    @classmethod
    def at(cls, root: Path, model: str, prompt: str, dataset: str) -> RunFiles:
        """`<root>/<model>/<prompt>/<dataset>.*`, with names that any file system takes.

        A name that another one could be taken for ends in a few digits of its hash. Earlier
        versions gave none: a run of theirs is found under its name without them.
        """
        names = model, prompt, dataset
        plain, distinct = (_manifest(root, *map(each, names)) for each in (_plain, _distinct))
        old = plain != distinct and _is_of(plain, names)
        return cls.of_manifest(plain if old else distinct)

    @property
    def model_folder(self) -> Path:
        """`<root>/<model>`: what one run at a time may write to."""
        return self.responses.parent.parent

    @classmethod
    def of_manifest(cls, manifest: Path) -> RunFiles:
        """The files next to a manifest."""
        stem = manifest.name.removesuffix(".run.json")
        return cls(
            responses=manifest.with_name(f"{stem}.jsonl"),
            manifest=manifest,
            superseded=manifest.with_name(f"{stem}.superseded.jsonl"),
            batches=manifest.with_name(f"{stem}.batch.json"),
        )


class RunStore:
    """The responses of one run, open for appending.

    A line is complete once it ends in a newline; the process may die at any moment. On
    opening, a torn last line and failed calls are dropped (both are asked again); a response
    whose request differs from today's, and a line that cannot be read, move to the superseded
    file; and a response in there whose request is today's again is used again.

    What is appended outlives the process, not a power cut: the system writes it to the disk
    when it sees fit, because waiting for that after every line would cost more than asking
    for the few last lines again. A file that takes the place of another is on the disk first.

    No other process may write to the files meanwhile, see `pii_bench.runs.store`.

    Attributes:
        requests: sample id to request hash, for every sample of the dataset.
        done: the samples that have a response.
        superseded: how many responses moved to the superseded file on opening.
        reused: how many came from there.
        unreadable: what was wrong with the lines that could not be read on opening.
    """

    def __init__(self, files: RunFiles, requests: Mapping[str, str]) -> None:
        """Open the files.

        Args:
            files: where.
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
            self._settle()
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
        """Write one line; on return it outlives the process.

        Raises:
            ResultsError: it cannot be written; the lines before are as they were.
        """
        line = encode_record(record)
        written = 0
        with writing(self._files.responses):
            try:
                while written < len(line):
                    written += os.write(self._descriptor, line[written:])
            except OSError:
                # The start of a line would spoil the next one, of a call that ends now too.
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
                raise
        if not isinstance(record.response, Failure):
            self.done.add(record.id)

    def sort(self) -> None:
        """Bring the lines into the dataset's order, so that equal runs give equal files.

        Raises:
            ResultsError: they cannot be written; the file is as it was.
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
            _keep(path, order)
            new = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.close(self._descriptor)
        self._descriptor = new

    def _settle(self) -> None:
        """Sort the lines of earlier runs into kept, superseded, reused and dropped."""
        path = self._files.responses
        kept: list[_Place] = []
        aside: list[_Place] = []
        for line in _scan(path):
            if isinstance(line.record, InputFileError):
                self.unreadable.append(str(line.record))
                aside.append(line.place)
            elif isinstance(line.record.response, Failure):
                continue
            elif self.requests.get(line.record.id) != line.record.request:
                self.superseded += 1
                aside.append(line.place)
            elif line.record.id not in self.done:
                self.done.add(line.record.id)
                kept.append(line.place)
        for place, record in self._usable():
            self.done.add(record.id)
            self.reused += 1
            kept.append(place)
        if aside:
            set_aside(self._files, _lines_at(aside))
        size = path.stat().st_size if path.exists() else 0
        if self.reused or sum(length for _, _, length in kept) != size:
            _keep(path, kept)

    def _usable(self) -> Iterator[tuple[_Place, RunRecord]]:
        """The superseded responses to today's requests, of samples that have none."""
        for line in _scan(self._files.superseded):
            record = line.record
            if not isinstance(record, RunRecord) or isinstance(record.response, Failure):
                continue
            if record.id not in self.done and self.requests.get(record.id) == record.request:
                yield line.place, record


def set_aside(files: RunFiles, lines: Iterable[bytes]) -> None:
    """Add lines to the superseded file of a run, each once; on return they are on the disk.

    Raises:
        ResultsError: they cannot be written.
    """
    path = files.superseded
    held = {hashlib.sha256(raw).digest() for raw in _raw_lines(path)}
    new = [raw for raw in lines if hashlib.sha256(raw).digest() not in held]
    with writing(path), path.open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                # The end of a line that a killed process began.
                file.write(b"\n")
        file.writelines(new)
        file.flush()
        os.fsync(file.fileno())


def _keep(path: Path, places: Iterable[_Place]) -> None:
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
    """Yield the complete lines of a run with their records; a torn last line is left out.

    Args:
        path: of the responses; a file that is not there has none.
        unreadable: is told of lines that cannot be read, by file, line and reason; None to
            raise at the first.

    Raises:
        InputFileError: a complete line is broken.
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
    """A complete line of a run; `record` is the error where it cannot be read."""

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
        with path.open("rb") as file:
            yield from file


def _object(raw: bytes) -> dict[str, Any]:
    record = json.loads(raw)
    if not isinstance(record, dict):
        raise TypeError("a line must be a JSON object")
    return record


def _manifest(root: Path, model: str, prompt: str, dataset: str) -> Path:
    return root / model / prompt / f"{dataset}.run.json"


def _is_of(path: Path, names: tuple[str, str, str]) -> bool:
    """Whether a run of these names lies under a manifest."""
    try:
        manifest = read_manifest(path)
    except InputFileError:
        return False
    return names == (manifest.system.model, manifest.system.prompt, manifest.dataset.name)


def _plain(name: str) -> str:
    return _UNSAFE.sub("--", name)


def _distinct(name: str) -> str:
    """A name for a file that no other name has; without a hash where it can be read back."""
    plain = _plain(name)
    # Slashes, and the colon before the port of an endpoint.
    restored = _PORT.sub(r"\1:\2", plain).replace("--", "/")
    told_apart = name == restored and name not in {".", ".."}
    if told_apart and len(plain) <= _LONGEST_NAME:
        return plain
    digits = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain[:_LONGEST_NAME]}-{digits}"


@dataclass(frozen=True, slots=True)
class Batch:
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


class BatchesFile:
    """`<dataset>.batch.json`: the batches of a run that are not collected yet.

    A batch is written before it is submitted, so that a crash at any moment leaves its trace.
    Every change is on the disk when a method returns.

    Args:
        files: of the run.

    Raises:
        InputFileError: the file is not of its format.
    """

    def __init__(self, files: RunFiles) -> None:
        self.path = files.batches
        self._jobs = {job.tag: job for job in _read_batches(self.path)}

    def __iter__(self) -> Iterator[Batch]:
        """The jobs, oldest first; the file may change meanwhile."""
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Batch) -> None:
        """Add a job, or replace the one of its tag.

        Raises:
            ResultsError: it cannot be written.
        """
        self._jobs[job.tag] = job
        self._write()

    def drop(self, job: Batch) -> None:
        """Take a job out; the file goes with the last one.

        Raises:
            ResultsError: it cannot be written.
        """
        del self._jobs[job.tag]
        self._write()

    def identify(self, job: Batch, job_id: str) -> None:
        """Store the provider's id of a job.

        Raises:
            ResultsError: it cannot be written.
        """
        self.put(replace(job, id=job_id))

    def _write(self) -> None:
        if self._jobs:
            jobs = {"jobs": [asdict(job) for job in self]}
            write_whole(self.path, json.dumps(jobs, indent=2, ensure_ascii=False) + "\n")
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
