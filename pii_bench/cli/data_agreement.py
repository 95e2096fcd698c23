"""`pii-bench data agreement`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.options import WRITTEN_SETS, add_json
from pii_bench.cli.terminal import echo, echo_json
from pii_bench.construction.readings import agreement, faults
from pii_bench.construction.recorded import Recorded
from pii_bench.datasets.publish import README, replace_block
from pii_bench.datasets.readings import FINISHED, READINGS, Reading, load_readings, version_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.construction.readings import Agreement
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
    add_json(output)
    parser.add_argument(
        "--finished",
        action="store_true",
        help="of readings by a third reader, who saw samples drawn from the finished sets",
    )


def run(arguments: argparse.Namespace) -> bool:
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
        echo_json([{"set": name, "group": group, **asdict(own)} for name, group, own in found])
    elif not arguments.disputed:
        rows = [[name, group, *_row(own)] for name, group, own in found]
        table = tabulate(rows, headers=_HEADERS, tablefmt="pipe", disable_numparse=True)
        echo(table)
        if arguments.write:
            replace_block("finished" if arguments.finished else "agreement", table, README)
            echo(f"\nwritten: {README}")
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
            echo(f"{key}: {fault}")
        for reading in own[key] if found else ():
            if reading.remark:
                echo(f"{key}: reader {reading.reader} remarks: {reading.remark}")
        passed += not found and len(own[key]) >= wanted
    unread = sum(len(own.get(key, ())) < wanted for key in samples)
    echo(f"{len(samples)} recorded, {passed} passed, {unread} lack readings")
