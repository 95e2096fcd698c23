"""`pii-bench data commission`."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import positive
from pii_bench.cli.terminal import echo
from pii_bench.construction.commissions import ORDERS, PORTION, commission_sheet
from pii_bench.construction.declared import (
    FRONTIER,
    FRONTIER_SIZE,
    OTHER,
    OTHER_SIZE,
    frontier_sheet,
    other_sheet,
)
from pii_bench.construction.derived import (
    CONVERSATIONS,
    TWIN_SETS,
    conversation_sheets,
    twin_sheet,
    twin_sources,
)
from pii_bench.construction.recorded import SIZES, Recorded
from pii_bench.errors import PiiBenchError
from pii_bench.files import write_whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Write the commissions that tell a writer what to write, a file for each portion of twelve "
        "texts: people, facts and values, voice, length, and the topic of the query."
    )
    parser.add_argument("set", choices=list(SIZES))
    parser.add_argument("portions", type=positive, nargs="+", metavar="PORTION", help="from 1")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/commissions"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> bool:
    """Write each portion of a set to `<out>/<set>-<portion>.txt`."""
    name: str = arguments.set
    size, write_sheet = _sheets(name)
    last = math.ceil(size / PORTION)
    for portion in arguments.portions:
        if portion > last:
            raise PiiBenchError(f"{name} has portions 1 to {last}, not {portion}")
        path = arguments.out / f"{name}-{portion:03d}.txt"
        write_whole(path, write_sheet(portion))
        echo(str(path))
    return True


def _sheets(name: str) -> tuple[int, Callable[[int], str]]:
    """Return the number of texts of a set, and a function that renders one portion."""
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
