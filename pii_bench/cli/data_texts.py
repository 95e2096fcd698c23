"""`pii-bench data commission`, `accept`, `sheet`, `read` and `agreement`: texts and readings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tabulate import tabulate

from pii_bench.cli.terminal import say
from pii_bench.construction.accept import accept
from pii_bench.construction.commissions import ORDERS, PORTION
from pii_bench.construction.commissions import sheet as commission_sheet
from pii_bench.construction.derived import (
    CONVERSATIONS,
    TWINS_PER_SOURCE,
    conversation_sheets,
    twin_sheet,
)
from pii_bench.construction.marked import read_marked
from pii_bench.construction.readings import agreement, faults, parse_answers, record_readings
from pii_bench.construction.readings import sheet as reading_sheet
from pii_bench.construction.recorded import Recorded, portion_of
from pii_bench.datasets.readings import Reading, load_readings, version_of
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


def write_commissions(name: str, portions: Sequence[int], out: Path) -> bool:
    """Write the commissions of portions of a set, a file each: `<out>/<set>-<portion>.txt`.

    Returns:
        True: every file was written.

    Raises:
        PiiBenchError: the set has no such portion, or a file cannot be written.
    """
    size, told = _told(name)
    last = -(-size // PORTION)
    for portion in portions:
        if not 1 <= portion <= last:
            raise PiiBenchError(f"{name} has portions 1 to {last}, not {portion}")
        path = out / f"{name}-{portion:03d}.txt"
        write_whole(path, told(portion))
        say(str(path))
    return True


def _told(name: str) -> tuple[int, Callable[[int], str]]:
    """How many texts a set has, and what tells a writer about a portion of it."""
    if name in ORDERS:
        return ORDERS[name].size, partial(commission_sheet, ORDERS[name])
    recorded = Recorded.load()
    if name == "twins":
        return 2 * TWINS_PER_SOURCE, partial(twin_sheet, recorded)
    return CONVERSATIONS, partial(conversation_sheets, recorded)


def accept_texts(paths: Sequence[Path]) -> bool:
    """Record what was written where it is sound; print what is wrong with the rest.

    Returns:
        Whether every sample was recorded.

    Raises:
        PiiBenchError: a file cannot be read, or a text cannot be recorded.
    """
    verdicts = accept([marked for path in paths for marked in read_marked(path)])
    for verdict in verdicts:
        for problem in verdict.problems:
            say(f"{verdict.id}: {problem.rule}: {problem.reason}")
        if not verdict.problems:
            say(f"{verdict.id}: recorded ({verdict.chars} characters, {verdict.wanted} wanted)")
    kept = sum(not verdict.problems for verdict in verdicts)
    say(f"recorded {kept} of {len(verdicts)}")
    return kept == len(verdicts)


def write_sheet(name: str, portions: Sequence[int], reader: str, out: Path) -> bool:
    """Write what a reader is to read of some portions: versions that they have not read.

    Returns:
        True: the sheet was written.

    Raises:
        PiiBenchError: nothing is left to read, or a file cannot be read or written.
    """
    read = {(r.id, r.version) for r in load_readings(name) if r.reader == reader}
    recorded = Recorded.load()
    wanted = [
        sample
        for marked_id, marked in sorted(recorded.sets[name].items())
        if portion_of(marked_id) in portions
        for sample in recorded.samples_of(marked)
        if (sample.id, version_of(sample)) not in read
    ]
    if not wanted:
        raise PiiBenchError(f"{name}: nothing is left to read there for reader {reader}")
    write_whole(out, reading_sheet(wanted, reader))
    say(f"{out}: {len(wanted)} samples")
    return True


def record_answers(name: str, reader: str, answers: Path) -> bool:
    """Record what a reader answered.

    Returns:
        True: every answer was recorded.

    Raises:
        PiiBenchError: a line is no answer, or the readings cannot be written.
    """
    samples = {sample.id: sample for sample in Recorded.load().samples(name)}
    found = parse_answers(answers, samples, load_readings(name), reader)
    say(f"recorded {record_readings(name, found)} of {len(found)} readings")
    return True


def print_agreement(names: Sequence[str], *, disputed: bool) -> bool:
    """Print agreement on first readings by set, register and way of reference.

    Args:
        names: of sets.
        disputed: print instead what keeps the versions that are recorded from passing.

    Returns:
        True.

    Raises:
        PiiBenchError: no set has readings, or a file is broken.
    """
    recorded = Recorded.load()
    rows: list[list[object]] = []
    for name in names:
        samples = {sample.id: sample for sample in recorded.samples(name)}
        readings = load_readings(name)
        if disputed:
            _print_disputed(samples, readings, 1 if name.startswith(("train-", "dev-")) else 2)
            continue
        firsts = [r for r in readings if r.round == 1 and r.id in samples]
        rows += _rows(name, firsts, samples)
    if not disputed:
        say(tabulate(rows, headers=_HEADERS, floatfmt=".3f"))
    return True


_HEADERS = (
    *("set", "group", "readings", "F1", "exact", "kappa gold", "kappa readers"),
    *("ambiguous", "unlisted/100", "text", "query"),
)


def _rows(
    name: str, firsts: Sequence[Reading], samples: Mapping[str, Sample]
) -> list[list[object]]:
    """A row for all readings of a set, one for each kind of text and way of reference."""
    groups: dict[str, list[Reading]] = {"all": list(firsts)} if firsts else {}
    for key in ("reference", "register"):
        for reading in sorted(firsts, key=lambda r: str(samples[r.id].meta[key])):
            groups.setdefault(str(samples[reading.id].meta[key]), []).append(reading)
    return [[name, group, *_row(own)] for group, own in groups.items()]


def _row(readings: Sequence[Reading]) -> list[object]:
    found = agreement(readings)
    return [
        found.readings,
        found.f1,
        found.exact,
        found.kappa_gold,
        found.kappa_readers,
        found.ambiguous,
        found.unlisted,
        found.text,
        found.query,
    ]


def _print_disputed(samples: dict[str, Sample], readings: Sequence[Reading], wanted: int) -> None:
    own: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.id in samples and version_of(samples[reading.id]) == reading.version:
            own.setdefault(reading.id, []).append(reading)
    passed = 0
    for key in sorted(own):
        found = [fault for reading in own[key] for fault in faults(reading)]
        for fault in found:
            say(f"{key}: {fault}")
        for reading in own[key] if found else ():
            if reading.remark:
                say(f"{key}: reader {reading.reader} remarks: {reading.remark}")
        passed += not found and len(own[key]) >= wanted
    unread = sum(len(own.get(key, ())) < wanted for key in samples)
    say(f"{len(samples)} recorded, {passed} passed, {unread} lack readings")
