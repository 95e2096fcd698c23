"""`pii-bench data agreement`."""

from __future__ import annotations

from dataclasses import asdict
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo, echo_json, formatted
from pii_bench.construction.readings import agreement, disputes
from pii_bench.construction.recorded import SIZES, Recorded
from pii_bench.datasets.publish import README, replace_block
from pii_bench.datasets.readings import FINISHED, READINGS, Reading, load_readings, version_of
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import markdown_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from pii_bench.construction.readings import Agreement
    from pii_bench.datasets.sample import Sample

_HEADER: Final = (
    *("set", "group", "readings", "F1", "exact", "kappa, gold", "kappa, readers"),
    *("ambiguous", "unlisted per 100", "text, 1 to 5", "query, 1 to 5"),
)

_FINISHED_SETS: Final = ("single", "multi", "twins", "frontier", "distract")
"""The sets of the second table in data/README.md; the first has all recorded sets."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Show the agreement of blind readers with gold and with each other on first readings: F1, "
        "kappa, ambiguous and unlisted PII, naturalness; by set, kind of text and way of "
        "reference, and on the current versions."
    )
    parser.add_argument("sets", choices=list(SIZES), nargs="+", metavar="SET")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--disputed", action="store_true", help="list the disputes that keep samples from passing"
    )
    output.add_argument(
        "--write", action="store_true", help="write the table into data/README.md too"
    )
    add_options(output, "--json")
    parser.add_argument(
        "--finished",
        action="store_true",
        help="use the readings of the third reader, who reads samples of the finished sets",
    )


def run(arguments: argparse.Namespace) -> bool:
    """Print the agreement on first readings and on current versions, or the disputes."""
    table_sets = _FINISHED_SETS if arguments.finished else SIZES
    if arguments.write and set(arguments.sets) != set(table_sets):
        raise PiiBenchError(f"--write needs the sets of the table: {' '.join(table_sets)}")
    recorded = Recorded.load()
    results: list[tuple[str, str, Agreement]] = []
    for name in arguments.sets:
        versions = {sample.id: version_of(sample) for sample in recorded.samples(name)}
        readings = load_readings(name, FINISHED if arguments.finished else READINGS)
        current = [reading for reading in readings if versions.get(reading.id) == reading.version]
        if arguments.disputed:
            is_read_once = arguments.finished or name.startswith(("train-", "dev-"))
            _print_disputed(versions, current, 1 if is_read_once else 2)
            continue
        firsts = [reading for reading in readings if reading.round == 1 and reading.id in versions]
        # A text that was replaced since may be of another register than the one that was read.
        read = {(sample.id, version_of(sample)): sample for sample in recorded.versions(name)}
        for group, members in _groups(firsts, read).items():
            results.append((name, group, agreement(members)))
        if current:
            results.append((name, "current versions", agreement(current)))
    if arguments.json:
        echo_json(
            [{"set": name, "group": group, **asdict(result)} for name, group, result in results]
        )
    elif not arguments.disputed:
        table = markdown_table(
            _HEADER, [[name, group, *_cells(result)] for name, group, result in results]
        )
        echo(table)
        if arguments.write:
            replace_block("finished" if arguments.finished else "agreement", table, README)
            echo(f"\nwritten: {README}")
    return True


def _groups(
    readings: Sequence[Reading], versions: Mapping[tuple[str, str], Sample]
) -> Mapping[str, Sequence[Reading]]:
    """Return all readings, then those of each way of reference, register and template."""
    groups: dict[str, list[Reading]] = {"all": list(readings)} if readings else {}
    for key in ("reference", "register", "template"):
        values = []
        for reading in readings:
            sample = versions[reading.id, reading.version]
            if key in sample.meta:
                values.append((str(sample.meta[key]), reading))
        for value, reading in sorted(values, key=itemgetter(0)):
            groups.setdefault(value, []).append(reading)
    return groups


def _cells(result: Agreement) -> list[str]:
    return [
        f"{result.readings:,}",
        f"{result.f1:.3f}",
        f"{result.exact:.1%}",
        formatted(result.kappa_gold, ".3f"),
        formatted(result.kappa_readers, ".3f"),
        f"{result.ambiguous:.1%}",
        f"{result.unlisted:.1f}",
        f"{result.text:.2f}",
        f"{result.query:.2f}",
    ]


def _print_disputed(samples: Collection[str], readings: Sequence[Reading], wanted: int) -> None:
    """Print the disputes of the readings of current versions."""
    by_sample: dict[str, list[Reading]] = {}
    for reading in readings:
        by_sample.setdefault(reading.id, []).append(reading)
    passed = 0
    for sample_id in sorted(by_sample):
        of_sample = by_sample[sample_id]
        reasons = [reason for reading in of_sample for reason in disputes(reading)]
        for reason in reasons:
            echo(f"{sample_id}: {reason}")
        if reasons:
            for reading in of_sample:
                if reading.remark:
                    echo(f"{sample_id}: reader {reading.reader} remarks: {reading.remark}")
        elif len(of_sample) >= wanted:
            passed += 1
    unread = sum(len(by_sample.get(sample_id, ())) < wanted for sample_id in samples)
    echo(f"{len(samples)} recorded, {passed} passed, {unread} lack readings")
