"""Check samples and files by all rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pii_bench.datasets.check.annotations import (
    format_problems,
    leak_problems,
    query_problems,
    span_problems,
)
from pii_bench.datasets.check.consistency import consistency_problems
from pii_bench.datasets.check.sets import (
    SOURCES,
    duplicate_problems,
    origins,
    set_problems,
    source_problems,
)
from pii_bench.datasets.check.text import Problem
from pii_bench.datasets.sample import sample_from_record
from pii_bench.errors import InputFileError
from pii_bench.files import RecordError, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class Report:
    """Number of samples checked, and the problems of each file, none for a sound one."""

    samples: int
    problems: Mapping[Path, tuple[Problem, ...]]


def sample_problems(sample: Sample) -> list[Problem]:
    """Check one sample by the rules for single samples."""
    return [
        *span_problems(sample),
        *format_problems(sample),
        *leak_problems(sample),
        *query_problems(sample),
        *consistency_problems(sample),
    ]


def check_files(
    paths: Sequence[Path], watch: Callable[[Sequence[Sample]], Iterable[Sample]] | None = None
) -> Report:
    """Check dataset files, each by itself and all against each other.

    A line that is no sample is a problem (`record`), and the rest is checked. Samples that name
    source samples in `meta` are compared with them. Sources are searched in these files, then in
    single, multi and their train sets in the same folder. `watch` passes the samples of a file on,
    and may report progress.

    Raises:
        InputFileError: a file cannot be read, is no JSON Lines, or is empty.
    """
    problems: dict[Path, list[Problem]] = {path: [] for path in paths}
    files = {path: _read(path, problems[path]) for path in problems}
    sources = _sources(files)
    for path, samples in files.items():
        for sample in watch(samples) if watch else samples:
            problems[path] += sample_problems(sample)
        if samples:
            problems[path] += set_problems(path.stem, samples)
        for sample in samples:
            problems[path] += source_problems(sample, sources)
    for number, problem in duplicate_problems(list(files.values())):
        problems[list(files)[number]].append(problem)
    return Report(
        samples=sum(map(len, files.values())),
        problems={path: tuple(problems[path]) for path in problems},
    )


def _read(path: Path, problems: list[Problem]) -> list[Sample]:
    samples: list[Sample] = []
    seen: dict[str, int] = {}
    line = 0
    for line, record in read_records(path):
        try:
            sample = sample_from_record(record)
        except RecordError as error:
            sample_id = record.get("id")
            owner = sample_id if isinstance(sample_id, str) else f"line {line}"
            problems.append(Problem(owner, "record", str(error)))
            continue
        if sample.id in seen:
            reason = f"the id is already used on line {seen[sample.id]}"
            problems.append(Problem(sample.id, "record", reason))
            continue
        seen[sample.id] = line
        samples.append(sample)
    if not line:
        raise InputFileError(path, "no samples in it")
    return samples


def _sources(files: Mapping[Path, Sequence[Sample]]) -> dict[str, Sample]:
    """Return samples by id, from the files and from the source sets that they refer to."""
    by_id = {sample.id: sample for samples in files.values() for sample in samples}
    for path, samples in files.items():
        if all(origins(sample) <= by_id.keys() for sample in samples):
            continue
        for name in SOURCES:
            source = path.with_name(f"{name}.jsonl")
            if source.exists() and source not in files:
                # Its own problems are not reported here.
                by_id |= {sample.id: sample for sample in _read(source, [])}
    return by_id
