"""`pii-bench data build`."""

from __future__ import annotations

import asyncio
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from multiprocessing import Manager
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import WRITTEN_SETS, add_calls, add_data_folder, positive, usd
from pii_bench.cli.progress import RunProgress
from pii_bench.cli.terminal import say, tell
from pii_bench.construction.recorded import Recorded
from pii_bench.construction.sets import (
    SEED,
    TEST_STEPS,
    TRAIN_STEPS,
    BuiltSets,
    build_test_sets,
    build_train_sets,
)
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.native import write_native
from pii_bench.datasets.publish import publish

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from multiprocessing.managers import ListProxy
    from pathlib import Path


def _build_test_sets(seed: str, advance: Callable[[], None]) -> BuiltSets:
    recorded = Recorded.load()
    written = {name: recorded.samples(name) for name in ("single", "multi", "twins")}
    return build_test_sets(seed, advance, written)


_BUILDS: Final[tuple[Callable[[str, Callable[[], None]], BuiltSets], ...]] = (
    build_train_sets,
    _build_test_sets,
)


DESCRIPTION: Final = (
    "Build single, multi, hard, distract and twins, and into the folder `built` the sets to "
    "train and tune on: the same bytes on any machine."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_data_folder(parser, " and their cards")
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="let a chat model write texts from the commissions, into DIR/built (see run --model)",
    )
    parser.add_argument(
        "--set", choices=WRITTEN_SETS, default="single", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--max-usd",
        type=usd,
        metavar="USD",
        help="with --writer: make no call that might pass this sum",
    )
    add_calls(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Build every set, or let a chat model write the first texts of one.

    Returns:
        Whether everything was built or written.

    Raises:
        PiiBenchError: see `_build_all` and `_build_by_model`.
    """
    return _build_by_model(arguments) if arguments.writer else _build_all(arguments.data)


def _build_all(data: Path) -> bool:
    """Build every set, write it, and pin it in its card.

    Args:
        data: the folder of the sets; those to train and tune on go to `built` below it.

    Returns:
        True: every set was built whole.

    Raises:
        MissingExtraError: Faker or inflect is not installed.
        InputFileError: a bank or a pool of the grammar is broken.
        ResultsError: a set cannot be written.
    """
    for built in _build_side_by_side():
        for name, samples in built.sets.items():
            path = DATASETS[name].path_in(data)
            write_native(path, samples)
            say(f"{path}: {len(samples)} samples")
        dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(built.dropped.items()))
        tell(f"attempts not kept: {dropped}")
    publish(data)
    return True


def _build_by_model(arguments: argparse.Namespace) -> bool:
    """Let a chat model write the first texts of a set, and say what was refused and why.

    Returns:
        Whether every commission brought a text.

    Raises:
        PiiBenchError: wrong arguments, a missing key, or the provider refuses.
    """
    from pii_bench.construction.commissions import ORDERS
    from pii_bench.construction.model_writer import write_with_model
    from pii_bench.models.calls.guarded import CallPolicy
    from pii_bench.models.catalog import ModelOptions, build_model
    from pii_bench.models.table import find_card

    options = ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout))
    concurrency = arguments.concurrency or 8
    model = build_model(arguments.writer, options)
    provider, _, model_id = model.name.partition("/")
    card = find_card(provider, model_id)
    policy = CallPolicy(concurrency, max_usd=arguments.max_usd)
    guarded = policy.guard(model, card.price if card and not arguments.base_url else None)
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
            tell(f"{sample_id}: {reason}")
    where = f": {report.path}" if report.accepted else ""
    say(f"accepted {len(report.accepted)}, refused {len(report.refused)}{where}")
    return not report.refused


def _build_side_by_side() -> list[BuiltSets]:
    """One process per author: test sets here, train and dev sets there."""
    with (
        Manager() as manager,
        ProcessPoolExecutor(len(_BUILDS)) as pool,
        RunProgress() as progress,
    ):
        steps = manager.list([0] * len(_BUILDS))
        futures = [pool.submit(_build, place, steps) for place in range(len(_BUILDS))]
        progress.label("samples")
        progress.started(0, TEST_STEPS + TRAIN_STEPS)
        shown = 0
        while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
            shown = _show(progress, shown, sum(steps))
            if any(future.done() and future.exception() for future in futures):
                break
        _show(progress, shown, sum(steps))
        return [future.result() for future in futures]


def _show(progress: RunProgress, shown: int, done: int) -> int:
    for _ in range(done - shown):
        progress.advanced(failed=False)
    return done


def _build(place: int, steps: ListProxy[int]) -> BuiltSets:
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        # Each message to the manager costs; the bar needs no more than these.
        if done % 50 == 0:
            steps[place] = done

    built = _BUILDS[place](SEED, advance)
    steps[place] = done
    return built
