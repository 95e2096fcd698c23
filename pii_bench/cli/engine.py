"""Where a local system works: here, or in the processes of a Ray cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pii_bench.cli.options import positive
from pii_bench.errors import PiiBenchError
from pii_bench.systems.base import THIS_MACHINE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pii_bench.systems.base import System


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Where a local system works."""
    parser.add_argument(
        "--engine",
        choices=("process", "ray"),
        default="process",
        help="process: this one; ray: a Ray cluster, that of RAY_ADDRESS or one of this machine, "
        "with a copy of the system in each worker (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="of --engine ray (default: the processors of this machine)",
    )


def ray_workers(arguments: argparse.Namespace, systems: Iterable[System]) -> int | None:
    """How many processes of Ray work; None where this one does.

    Raises:
        PiiBenchError: `--workers` without Ray, or a system that calls another machine.
    """
    if arguments.engine == "process":
        if arguments.workers is not None:
            raise PiiBenchError("--workers is for --engine ray")
        return None
    for system in systems:
        if system.card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                f"--engine ray is for systems of this machine, not for {system.card.model!r}, "
                f"which sends texts to {system.card.unmasked_text_to}: use --concurrency"
            )
    workers: int | None = arguments.workers
    return workers or os.cpu_count() or 1
