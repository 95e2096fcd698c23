"""`pii-bench data build`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_options, concurrency_of, given_options, positive
from pii_bench.cli.terminal import RunProgress, echo, log
from pii_bench.construction.commissions import ORDERS
from pii_bench.construction.recorded import Recorded, build_sets
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.publish import publish
from pii_bench.datasets.sample import write_native
from pii_bench.errors import PiiBenchError
from pii_bench.models.catalog import TIMEOUT

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

_SET: Final = "single"
_LIMIT: Final = 20
_WRITER_OPTIONS: Final = ("set", "limit", "max_usd", "concurrency", "base_url", "timeout")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Build every set from the recorded texts and write its hash into its card. The result has "
        "the same bytes on any machine."
    )
    add_options(parser, "--data")
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="instead, let this chat model write texts from the commissions into DIR/built",
    )
    parser.add_argument(
        "--set",
        choices=list(ORDERS),
        help=f"set that --writer writes (default: {_SET})",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help=f"number of texts that --writer writes (default: {_LIMIT})",
    )
    add_options(
        parser,
        "--max-usd",
        help="cap on the cost of --writer: make no call that might exceed it",
    )
    add_options(parser, "--concurrency", "--base-url")
    # Without a default it shows whether it was given, as the others do.
    add_options(parser, "--timeout", default=None)


def run(arguments: argparse.Namespace) -> bool:
    """Build every set, or let a chat model write texts of one; True if none was refused."""
    if arguments.writer:
        return _write_texts(arguments)
    if given := given_options(arguments, _WRITER_OPTIONS):
        raise PiiBenchError(f"{given}: only with --writer; without it, every set is built")
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
    from pii_bench.construction.model_writer import write_with_model
    from pii_bench.models.calls import CallPolicy
    from pii_bench.models.catalog import ModelOptions, build_model, listed_price

    timeout = float(arguments.timeout or TIMEOUT)
    options = ModelOptions(base_url=arguments.base_url, timeout=timeout)
    concurrency = concurrency_of(arguments, arguments.writer)
    model = build_model(arguments.writer, options)
    policy = CallPolicy(concurrency, max_usd=arguments.max_usd)
    guarded = policy.guard(model, listed_price(arguments.writer, arguments.base_url))
    order = ORDERS[arguments.set or _SET]
    with RunProgress() as progress:
        progress.label(f"{order.name} by {model.name}")
        report = asyncio.run(
            write_with_model(
                guarded,
                order,
                min(arguments.limit or _LIMIT, order.size),
                arguments.data / "built",
                concurrency=concurrency,
                progress=progress,
            )
        )
    for sample_id, reasons in report.refused.items():
        for reason in reasons or ("no answer came: run again",):
            log(f"{sample_id}: {reason}")
    path = f": {report.path}" if report.accepted else ""
    echo(f"accepted {len(report.accepted)}, refused {len(report.refused)}{path}")
    return not report.refused
