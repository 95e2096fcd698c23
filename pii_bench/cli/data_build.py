"""`pii-bench data build`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from pii_bench.cli.progress import RunProgress
from pii_bench.construction.sets import (
    SEED,
    TEST_STEPS,
    TRAIN_STEPS,
    build_test_sets,
    build_train_sets,
)
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.native import sample_to_record
from pii_bench.datasets.publish import publish
from pii_bench.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


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
    with RunProgress() as progress:
        for label, steps, build in (
            ("test sets", TEST_STEPS, build_test_sets),
            ("train and dev sets", TRAIN_STEPS, build_train_sets),
        ):
            progress.label(label)
            progress.started(0, steps)
            built = build(SEED, lambda: progress.advanced(failed=False))
            for name, samples in built.sets.items():
                path = DATASETS[name].path_in(data)
                write_samples(path, samples)
                print(f"{path}: {len(samples)} samples")
            for reason, count in sorted(built.dropped.items()):
                print(f"attempts not kept: {reason}: {count}", file=sys.stderr)
    publish(data)
    return True


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write a dataset file in our format, whole or not at all.

    Raises:
        ResultsError: it cannot be written.
    """
    lines = [json.dumps(sample_to_record(sample), ensure_ascii=False) for sample in samples]
    write_whole(path, "".join(f"{line}\n" for line in lines))
