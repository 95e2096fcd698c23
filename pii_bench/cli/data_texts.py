"""`pii-bench data commission`, `accept`, `sheet`, `read`, `agreement`: texts, and their readers."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.options import WRITTEN_SETS, Command, add_json, add_reader, positive
from pii_bench.cli.terminal import say, say_json
from pii_bench.construction.accept import accept
from pii_bench.construction.commissions import ORDERS, PORTION
from pii_bench.construction.commissions import sheet as commission_sheet
from pii_bench.construction.derived import (
    CONVERSATIONS,
    TWIN_SETS,
    conversation_sheets,
    twin_sheet,
    twin_sources,
)
from pii_bench.construction.frontier import FRONTIER, FRONTIER_SIZE, frontier_sheet
from pii_bench.construction.marked import read_marked
from pii_bench.construction.other import OTHER, OTHER_SIZE, other_sheet
from pii_bench.construction.readings import agreement, faults, parse_answers, record_readings, sheet
from pii_bench.construction.recorded import Recorded, portion_of
from pii_bench.datasets.publish import README, replace_block
from pii_bench.datasets.readings import (
    FINISHED,
    READINGS,
    Reading,
    folder_of,
    load_readings,
    version_of,
)
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.construction.readings import Agreement
    from pii_bench.datasets.sample import Sample

_COMMISSION: Final = (
    "Write commissions, a file for each portion of twelve: people, facts and values, voice, "
    "length, and what is to be asked."
)


def _add_commission(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    parser.add_argument(
        "--out", type=Path, default=Path("build/commissions"), metavar="DIR", help="(%(default)s)"
    )


def _commission(arguments: argparse.Namespace) -> bool:
    """Write the commissions of portions of a set, a file each: `<out>/<set>-<portion>.txt`.

    Raises:
        PiiBenchError: the set has no such portion, or a file cannot be written.
    """
    name: str = arguments.set
    size, told = _told(name)
    last = -(-size // PORTION)
    for portion in arguments.portions:
        if not 1 <= portion <= last:
            raise PiiBenchError(f"{name} has portions 1 to {last}, not {portion}")
        path = arguments.out / f"{name}-{portion:03d}.txt"
        write_whole(path, told(portion))
        say(str(path))
    return True


def _told(name: str) -> tuple[int, Callable[[int], str]]:
    """How many texts a set has, and what tells a writer about a portion of it."""
    if name in ORDERS:
        return ORDERS[name].size, partial(commission_sheet, ORDERS[name])
    if name == FRONTIER:
        return FRONTIER_SIZE, frontier_sheet
    if name == OTHER:
        return OTHER_SIZE, other_sheet
    recorded = Recorded.load()
    if name in TWIN_SETS:
        return len(twin_sources(recorded, name)), partial(twin_sheet, recorded, name=name)
    return CONVERSATIONS, partial(conversation_sheets, recorded)


_ACCEPT: Final = (
    "Judge written texts against their commissions, by the checker, and against what is "
    "recorded; record those without a problem in data/texts. Exit code 1 when any is refused."
)


def _add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")


def _accept(arguments: argparse.Namespace) -> bool:
    """Record what was written where it is sound; print what is wrong with the rest.

    Returns:
        Whether every sample was recorded.

    Raises:
        PiiBenchError: a file cannot be read, or a text cannot be recorded.
    """
    verdicts = accept([marked for path in arguments.files for marked in read_marked(path)])
    for verdict in verdicts:
        for problem in verdict.problems:
            say(f"{verdict.id}: {problem.rule}: {problem.reason}")
        if not verdict.problems:
            say(f"{verdict.id}: recorded ({verdict.chars} characters, {verdict.wanted} wanted)")
    kept = sum(not verdict.problems for verdict in verdicts)
    say(f"recorded {kept} of {len(verdicts)}")
    return kept == len(verdicts)


_SHEET: Final = (
    "Write a reader's sheet: texts, queries and entities in random order, without types and "
    "gold, of samples whose recorded version this reader has not read."
)


def _add_sheet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    add_reader(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def _sheet(arguments: argparse.Namespace) -> bool:
    """Write what a reader is to read of some portions: versions that they have not read.

    Raises:
        PiiBenchError: nothing is left to read, or a file cannot be read or written.
    """
    name, reader = arguments.set, arguments.reader
    read = {(r.id, r.version) for r in load_readings(name, folder_of(reader)) if r.reader == reader}
    recorded = Recorded.load()
    wanted = [
        sample
        for marked_id, marked in sorted(recorded.sets[name].items())
        if portion_of(marked_id) in arguments.portions
        for sample in recorded.samples_of(marked)
        if (sample.id, version_of(sample)) not in read
    ]
    if not wanted:
        raise PiiBenchError(f"{name}: nothing is left to read there for reader {reader}")
    write_whole(arguments.out, sheet(wanted, reader))
    say(f"{arguments.out}: {len(wanted)} samples")
    return True


_READ: Final = (
    "Record a reader's answers in data/readings: a line for each sample, `ID.VERSION | 2, 5 | what "
    "is unlisted | yes or no: ambiguous | text 1-5 | query 1-5 | remark`."
)


def _add_read(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("answers", type=Path, metavar="FILE")
    add_reader(parser)


def _read(arguments: argparse.Namespace) -> bool:
    """Record what a reader answered.

    Raises:
        PiiBenchError: a line is no answer, or the readings cannot be written.
    """
    name: str = arguments.set
    samples = {sample.id: sample for sample in Recorded.load().samples(name)}
    folder = folder_of(arguments.reader)
    known = load_readings(name, folder)
    found = parse_answers(arguments.answers, samples, known, arguments.reader)
    say(f"recorded {record_readings(name, found, folder)} of {len(found)} readings")
    return True


_AGREEMENT: Final = (
    "Show, from the first readings, F1 and kappa of readers against gold and each other, what "
    "they found ambiguous or unlisted, and how natural: by set, kind of text and way of "
    "reference."
)


def _add_agreement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", choices=WRITTEN_SETS, nargs="+", metavar="SET")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--disputed", action="store_true", help="list what keeps recorded samples from passing"
    )
    output.add_argument(
        "--write", action="store_true", help="put the table into data/README.md too"
    )
    add_json(output)
    parser.add_argument(
        "--finished",
        action="store_true",
        help="of readings by a third reader, who saw samples drawn from the finished sets",
    )


def _agreement(arguments: argparse.Namespace) -> bool:
    """Print agreement on first readings by set, register and way of reference, or disputes.

    Raises:
        PiiBenchError: no set has readings, or a file is broken.
    """
    recorded = Recorded.load()
    found: list[tuple[str, str, Agreement]] = []
    for name in arguments.sets:
        samples = {sample.id: sample for sample in recorded.samples(name)}
        readings = load_readings(name, FINISHED if arguments.finished else READINGS)
        if arguments.disputed:
            _print_disputed(samples, readings, 1 if name.startswith(("train-", "dev-")) else 2)
            continue
        firsts = [r for r in readings if r.round == 1 and r.id in samples]
        found += [(name, group, agreement(own)) for group, own in _groups(firsts, samples)]
    if arguments.json:
        say_json([{"set": name, "group": group, **asdict(own)} for name, group, own in found])
    elif not arguments.disputed:
        rows = [[name, group, *_row(own)] for name, group, own in found]
        table = tabulate(rows, headers=_HEADERS, tablefmt="pipe", disable_numparse=True)
        say(table)
        if arguments.write:
            replace_block("finished" if arguments.finished else "agreement", table, README)
            say(f"\nwritten: {README}")
    return True


_HEADERS = (
    *("set", "group", "readings", "F1", "exact", "kappa, gold", "kappa, readers"),
    *("ambiguous", "unlisted per 100", "text, 1 to 5", "query, 1 to 5"),
)


def _groups(
    firsts: Sequence[Reading], samples: Mapping[str, Sample]
) -> Iterable[tuple[str, Sequence[Reading]]]:
    """All readings of a set, then those of each way of reference and kind of text."""
    groups: dict[str, list[Reading]] = {"all": list(firsts)} if firsts else {}
    for key in ("reference", "register", "template"):
        own = [reading for reading in firsts if key in samples[reading.id].meta]
        for reading in sorted(own, key=lambda r: str(samples[r.id].meta[key])):
            groups.setdefault(str(samples[reading.id].meta[key]), []).append(reading)
    return groups.items()


def _row(found: Agreement) -> list[str]:
    return [
        f"{found.readings:,}",
        f"{found.f1:.3f}",
        f"{found.exact:.1%}",
        *("" if k is None else f"{k:.3f}" for k in (found.kappa_gold, found.kappa_readers)),
        f"{found.ambiguous:.1%}",
        f"{found.unlisted:.1f}",
        f"{found.text:.2f}",
        f"{found.query:.2f}",
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


COMMANDS: Final = {
    "data commission": Command(_COMMISSION, _add_commission, _commission),
    "data accept": Command(_ACCEPT, _add_accept, _accept),
    "data sheet": Command(_SHEET, _add_sheet, _sheet),
    "data read": Command(_READ, _add_read, _read),
    "data agreement": Command(_AGREEMENT, _add_agreement, _agreement),
}
