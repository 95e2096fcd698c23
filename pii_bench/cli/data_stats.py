"""`pii-bench data stats`."""

from __future__ import annotations

from pii_bench.cli.terminal import say
from pii_bench.datasets.catalog import load_datasets
from pii_bench.datasets.readme import README, replace_block
from pii_bench.datasets.statistics import measure, published_statistics, to_markdown


def print_statistics(source: str, *, write: bool) -> bool:
    """Print the statistics of datasets, those of the paper's sets beside them.

    Args:
        source: what `--dataset` takes.
        write: whether to put them into the dataset card (`data/README.md`) too.

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
        for dataset in load_datasets(source)
    )
    say(markdown)
    if write:
        replace_block("statistics", markdown, README)
        say(f"\nwritten: {README}")
    return True
