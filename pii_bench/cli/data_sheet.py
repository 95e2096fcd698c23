"""`pii-bench data sheet`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options, positive
from pii_bench.cli.terminal import echo
from pii_bench.construction.readings import reading_sheet
from pii_bench.construction.recorded import SIZES, Recorded, portion_of
from pii_bench.datasets.readings import folder_of, load_readings, version_of
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Write a sheet for a blind reader: texts, queries and entities in random order, without "
        "types and gold, of the samples that this reader has not read in their recorded version."
    )
    parser.add_argument("set", choices=list(SIZES))
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    add_options(parser, "--reader")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write")


def run(arguments: argparse.Namespace) -> bool:
    """Write the unread samples of some portions."""
    name, reader = arguments.set, arguments.reader
    already_read = {
        (reading.id, reading.version)
        for reading in load_readings(name, folder_of(reader))
        if reading.reader == reader
    }
    recorded = Recorded.load()
    samples = [
        sample
        for marked_id, marked in sorted(recorded.sets[name].items())
        if portion_of(marked_id) in arguments.portions
        for sample in recorded.samples_of(marked)
        if (sample.id, version_of(sample)) not in already_read
    ]
    if not samples:
        raise PiiBenchError(f"{name}: nothing is left to read in these portions for {reader}")
    write_whole(arguments.out, reading_sheet(samples, reader))
    echo(f"{arguments.out}: {len(samples)} samples")
    return True
