"""`pii-bench data build`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import WRITTEN_SETS, add_calls, add_data_folder, add_max_usd, positive
from pii_bench.cli.terminal import RunProgress, echo, log
from pii_bench.construction.recorded import Recorded, build_sets
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.publish import publish
from pii_bench.datasets.sample import write_native

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


DESCRIPTION: Final = (
    "Build every set from the recorded texts and write its hash into its card. The result has the "
    "same bytes on any machine."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_data_folder(parser)
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="instead, let this chat model write texts from the commissions into DIR/built",
    )
    parser.add_argument(
        "--set",
        choices=WRITTEN_SETS,
        default="single",
        help="set that --writer writes (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=20,
        metavar="N",
        help="number of texts that --writer writes (default: %(default)s)",
    )
    add_max_usd(parser, "cap on the cost of --writer: make no call that might exceed it")
    add_calls(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Build every set, or let a chat model write the first texts of one.

    Returns:
        True if no text was refused.
    """
    if arguments.writer:
        return _write_texts(arguments)
    for path, samples in build_all(arguments.data).items():
        echo(f"{path}: {samples} samples")
    publish(arguments.data)
    return True


def build_all(data: Path) -> dict[Path, int]:
    """Write every set, and return the number of samples in each file."""
    written = {}
    for name, samples in build_sets(Recorded.load()).items():
        path = DATASETS[name].path_in(data)
        write_native(path, samples)
        written[path] = len(samples)
    return written


def _write_texts(arguments: argparse.Namespace) -> bool:
    """Let a chat model write texts, and log the refused ones; True if none was refused."""
    from pii_bench.construction.commissions import ORDERS
    from pii_bench.construction.model_writer import write_with_model
    from pii_bench.models.calls import CallPolicy
    from pii_bench.models.catalog import ModelOptions, build_model, listed_price

    options = ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout))
    concurrency = arguments.concurrency or 8
    model = build_model(arguments.writer, options)
    policy = CallPolicy(concurrency, max_usd=arguments.max_usd)
    guarded = policy.guard(model, listed_price(arguments.writer, arguments.base_url))
    order = ORDERS[arguments.set]
    with RunProgress() as progress:
        progress.label(f"{order.name} by {model.name}")
        report = asyncio.run(
            write_with_model(
                guarded,
                order,
                min(arguments.limit, order.size),
                arguments.data / "built",
                concurrency=concurrency,
                observer=progress,
            )
        )
    for sample_id, reasons in report.refused.items():
        for reason in reasons or ("no answer came: run again",):
            log(f"{sample_id}: {reason}")
    path = f": {report.path}" if report.accepted else ""
    echo(f"accepted {len(report.accepted)}, refused {len(report.refused)}{path}")
    return not report.refused
