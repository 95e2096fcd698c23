"""`pii-bench data build`."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from multiprocessing import Manager
from typing import TYPE_CHECKING, Final

from pii_bench.cli.progress import RunProgress
from pii_bench.construction.sets import (
    SEED,
    TEST_STEPS,
    TRAIN_STEPS,
    BuiltSets,
    build_test_sets,
    build_train_sets,
    plan_of,
)
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.native import write_native
from pii_bench.datasets.publish import publish

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from multiprocessing.managers import ListProxy
    from pathlib import Path

_BUILDS: Final[tuple[Callable[[str, Callable[[], None]], BuiltSets], ...]] = (
    build_train_sets,
    build_test_sets,
)


def build_data(data: Path) -> bool:
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
            print(f"{path}: {len(samples)} samples")
        dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(built.dropped.items()))
        print(f"attempts not kept: {dropped}", file=sys.stderr)
    publish(data)
    return True


def build_by_model(arguments: argparse.Namespace) -> bool:
    """Let a chat model write a set, and say what was rejected and why.

    Returns:
        Whether every commission brought a sample.

    Raises:
        PiiBenchError: wrong arguments, a missing key, or the provider refuses.
    """
    from pii_bench.construction.by_model import build_with_writer
    from pii_bench.models.calls.guarded import CallPolicy
    from pii_bench.models.catalog import ModelOptions, build_model

    options = ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout))
    concurrency = arguments.concurrency or 8
    model = CallPolicy(concurrency).guard(build_model(arguments.writer, options), None)
    plan = plan_of(arguments.set, "test", {"single": 1, "multi": 2}[arguments.set], arguments.limit)
    with RunProgress() as progress:
        progress.label(f"{arguments.set} by {model.name}")
        report = build_with_writer(
            model,
            plan,
            SEED,
            arguments.data / "built",
            concurrency=concurrency,
            observer=progress,
        )
    for rejection in report.rejected:
        for problem in rejection.problems:
            reason = f"{problem.rule}: {problem.reason}"
            print(f"{rejection.id}: {rejection.stage}: {reason}", file=sys.stderr)
    rules = Counter(problem.rule for r in report.rejected for problem in r.problems)
    for rule, count in rules.most_common():
        print(f"rejected for {rule}: {count}")
    where = f": {report.path}" if report.accepted else ""
    print(f"accepted {len(report.accepted)}, rejected {len(report.rejected)}{where}")
    return not report.rejected


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
