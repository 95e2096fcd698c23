"""`pii-bench data agreement`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.options import WRITTEN_SETS
from pii_bench.cli.terminal import say
from pii_bench.construction.readings import agreement, faults
from pii_bench.construction.recorded import Recorded
from pii_bench.datasets.readings import Reading, load_readings, version_of
from pii_bench.datasets.readme import README, replace_block

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample


DESCRIPTION: Final = (
    "Show, from the first readings, F1 and kappa of readers against gold and each other, what "
    "they found ambiguous or unlisted, and how natural: by set, kind of text and way of "
    "reference."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("sets", choices=WRITTEN_SETS, nargs="+", metavar="SET")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--disputed", action="store_true", help="list what keeps recorded samples from passing"
    )
    output.add_argument(
        "--write", action="store_true", help="put the table into data/README.md too"
    )


def run(arguments: argparse.Namespace) -> bool:
    """Print agreement on first readings by set, register and way of reference, or disputes.

    Returns:
        True.

    Raises:
        PiiBenchError: no set has readings, or a file is broken.
    """
    recorded = Recorded.load()
    rows: list[list[str]] = []
    for name in arguments.sets:
        samples = {sample.id: sample for sample in recorded.samples(name)}
        readings = load_readings(name)
        if arguments.disputed:
            _print_disputed(samples, readings, 1 if name.startswith(("train-", "dev-")) else 2)
            continue
        firsts = [r for r in readings if r.round == 1 and r.id in samples]
        rows += _rows(name, firsts, samples)
    if not arguments.disputed:
        table = tabulate(rows, headers=_HEADERS, tablefmt="pipe", disable_numparse=True)
        say(table)
        if arguments.write:
            replace_block("agreement", table, README)
            say(f"\nwritten: {README}")
    return True


_HEADERS = (
    *("set", "group", "readings", "F1", "exact", "kappa, gold", "kappa, readers"),
    *("ambiguous", "unlisted per 100", "text, 1 to 5", "query, 1 to 5"),
)


def _rows(name: str, firsts: Sequence[Reading], samples: Mapping[str, Sample]) -> list[list[str]]:
    """A row for all readings of a set, one for each way of reference and kind of text."""
    groups: dict[str, list[Reading]] = {"all": list(firsts)} if firsts else {}
    for key in ("reference", "register", "template"):
        own = [reading for reading in firsts if key in samples[reading.id].meta]
        for reading in sorted(own, key=lambda r: str(samples[r.id].meta[key])):
            groups.setdefault(str(samples[reading.id].meta[key]), []).append(reading)
    return [[name, group, *_row(own)] for group, own in groups.items()]


def _row(readings: Sequence[Reading]) -> list[str]:
    found = agreement(readings)
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
