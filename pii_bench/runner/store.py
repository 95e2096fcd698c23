"""Where responses are kept: one append-only file per model, prompt and dataset."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from pii_bench.errors import InputFileError
from pii_bench.files import replacing, writing
from pii_bench.jsonl import RecordError
from pii_bench.runner.records import Failure, RunRecord, decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

# Where a line is in its file: first byte and length, in bytes.
_Place: TypeAlias = tuple[int, int]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@+-]+")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run.

    Attributes:
        responses: `<dataset>.jsonl`, one line per sample.
        manifest: `<dataset>.run.json`, what was run.
        superseded: responses to requests that differ from today's; kept, never read.
    """

    responses: Path
    manifest: Path
    superseded: Path

    @classmethod
    def at(cls, root: Path, model: str, prompt: str, dataset: str) -> RunFiles:
        """`<root>/<model>/<prompt>/<dataset>.*`, with names that any file system takes."""
        folder = root / _UNSAFE.sub("--", model) / _UNSAFE.sub("--", prompt)
        name = _UNSAFE.sub("--", dataset)
        return cls(
            responses=folder / f"{name}.jsonl",
            manifest=folder / f"{name}.run.json",
            superseded=folder / f"{name}.superseded.jsonl",
        )

    @property
    def model_folder(self) -> Path:
        """`<root>/<model>`: what one run at a time may write to."""
        return self.responses.parent.parent

    @classmethod
    def of_manifest(cls, manifest: Path) -> RunFiles:
        """The files beside a manifest."""
        stem = manifest.name.removesuffix(".run.json")
        return cls(
            responses=manifest.with_name(f"{stem}.jsonl"),
            manifest=manifest,
            superseded=manifest.with_name(f"{stem}.superseded.jsonl"),
        )


class RunStore:
    """The responses of one run, open for appending.

    A line is complete once it ends in a newline; the process may die at any moment. On
    opening, a torn last line and failed calls are dropped (both are asked again), and a
    response whose request differs from today's moves to the superseded file.

    What is appended outlives the process, not a power cut: the system writes it to the disk
    when it sees fit, because waiting for that after every line would cost more than asking
    for the few last lines again. A file that takes the place of another is on the disk first.

    No other process may write to the files meanwhile, see `pii_bench.runner.lock`.

    Attributes:
        requests: sample id to request hash, for every sample of the dataset.
        done: the samples that have a response.
    """

    def __init__(self, files: RunFiles, requests: Mapping[str, str]) -> None:
        """Open the files.

        Args:
            files: where.
            requests: sample id to request hash, for every sample of the dataset.

        Raises:
            ResultsError: the folder cannot be written.
            InputFileError: a line before the last is broken.
        """
        self._files = files
        self.requests = requests
        self.done: set[str] = set()
        with writing(files.responses):
            files.responses.parent.mkdir(parents=True, exist_ok=True)
            self._settle()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = os.open(files.responses, flags, mode=0o644)

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
                places[json.loads(raw)["id"]] = offset, len(raw)
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
        """Sort the lines of an earlier run into kept, superseded and dropped."""
        path = self._files.responses
        if not path.exists():
            return
        kept: list[_Place] = []
        superseded: list[_Place] = []
        offset = 0
        for raw, record in read_lines(path):
            place = offset, len(raw)
            offset += len(raw)
            if isinstance(record.response, Failure):
                continue
            if self.requests.get(record.id) != record.request:
                superseded.append(place)
            elif record.id not in self.done:
                self.done.add(record.id)
                kept.append(place)
        if sum(length for _, length in kept) == path.stat().st_size:
            return
        if superseded:
            with self._files.superseded.open("ab") as file:
                file.writelines(_lines_at(path, superseded))
                file.flush()
                os.fsync(file.fileno())
        _keep(path, kept)


def _keep(path: Path, places: Iterable[_Place]) -> None:
    with replacing(path) as new:
        new.writelines(_lines_at(path, places))


def _lines_at(path: Path, places: Iterable[_Place]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            yield file.read(length)


def read_lines(path: Path) -> Iterator[tuple[bytes, RunRecord]]:
    """Yield the complete lines of a run with their records; a torn last line is left out.

    Raises:
        InputFileError: a complete line is broken.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            try:
                yield raw, decode_record(_object(raw))
            except (ValueError, TypeError, RecursionError) as error:
                what = str(error) if isinstance(error, RecordError) else "no line of a run"
                raise InputFileError(path, what, line=number) from None


def _object(raw: bytes) -> dict[str, Any]:
    record = json.loads(raw)
    if not isinstance(record, dict):
        raise TypeError("a line must be a JSON object")
    return record
