"""`pii-bench data sheet`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import WRITTEN_SETS, add_reader, positive
from pii_bench.cli.terminal import echo
from pii_bench.construction.readings import sheet
from pii_bench.construction.recorded import Recorded, portion_of
from pii_bench.datasets.readings import folder_of, load_readings, version_of
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse


DESCRIPTION: Final = (
    "Write a reader's sheet: texts, queries and entities in random order, without types and "
    "gold, of samples whose recorded version this reader has not read."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("set", choices=WRITTEN_SETS)
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    add_reader(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def run(arguments: argparse.Namespace) -> bool:
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
    echo(f"{arguments.out}: {len(wanted)} samples")
    return True
