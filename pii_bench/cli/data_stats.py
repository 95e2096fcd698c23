"""`pii-bench data stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_dataset
from pii_bench.cli.terminal import say
from pii_bench.datasets.catalog import load_datasets
from pii_bench.datasets.readme import README, replace_block
from pii_bench.datasets.statistics import measure, published_statistics, to_markdown

if TYPE_CHECKING:
    import argparse


DESCRIPTION: Final = (
    "Show the statistics of datasets, with those of the paper's sets of the same names."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_dataset(parser)
    parser.add_argument("--write", action="store_true", help="put them into data/README.md too")


def run(arguments: argparse.Namespace) -> bool:
    """Print the statistics of datasets, with those of the paper's sets.

    Returns:
        True: they are complete.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: a file is absent or broken.
        ResultsError: the dataset card cannot be written.
    """
    published = published_statistics()
    markdown = "\n\n".join(
        f"### {dataset.name}\n\n"
        + to_markdown(measure(dataset.samples), published.get(dataset.name))
        for dataset in load_datasets(arguments.dataset)
    )
    say(markdown)
    if arguments.write:
        replace_block("statistics", markdown, README)
        say(f"\nwritten: {README}")
    return True
