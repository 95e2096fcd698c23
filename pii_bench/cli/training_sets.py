"""Which samples may be learnt from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import DATASETS, load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.prompting.labelled import TRAIN
from pii_bench.prompting.targets import Target, examples_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.tuning import Example

LEARNT: Final = (*TRAIN, "dev-single", "dev-multi")
"""Our own sets that a model may be trained or tuned on."""


def add_targets(parser: argparse._ActionsContainer) -> None:
    """What is learnt."""
    parser.add_argument(
        "--task",
        nargs="+",
        choices=[str(target) for target in Target],
        default=[str(Target.QUERY_RELATED)],
        help="what is learnt; rewriting: the description with tags where the query does not need "
        "what is there (default: query-related)",
    )


def training_examples(sources: Iterable[str], targets: Iterable[str]) -> list[Example]:
    """The prompts of datasets with their answers, target by target.

    Args:
        sources: names of `LEARNT`, or datasets of others.
        targets: what is learnt.

    Raises:
        PiiBenchError: one of our sets that is not for training, or a dataset is missing or
            broken.
    """
    samples: list[Sample] = []
    for source in sources:
        if source in DATASETS and source not in LEARNT:
            allowed = ", ".join(LEARNT)
            raise PiiBenchError(f"dataset {source!r} is for tests alone (allowed: {allowed})")
        samples += load_dataset(source).samples
    return [
        example
        for target in dict.fromkeys(targets)
        for example in examples_of(samples, Target(target))
    ]
