"""`pii-bench data stats`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo, echo_json, report
from pii_bench.datasets.catalog import ALL, load_datasets
from pii_bench.datasets.publish import README, replace_block
from pii_bench.datasets.statistics import compare, measure, published_statistics, to_markdown
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pii_bench.datasets.statistics import Statistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Show the statistics of datasets, next to those of the paper's sets of the same names."
    )
    add_options(parser, "--dataset")
    parser.add_argument(
        "--write", action="store_true", help="update data/README.md too; needs `--dataset all`"
    )
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Print the statistics of datasets, next to those of the paper's sets."""
    if arguments.write and arguments.dataset != ALL:
        raise PiiBenchError(f"--write needs --dataset {ALL}: {README} has the tables of these sets")
    published = published_statistics()
    measured = {
        dataset.name: measure(dataset.samples) for dataset in load_datasets(arguments.dataset)
    }
    markdown = "\n\n".join(
        f"### {name}\n\n{to_markdown(ours, published.get(name))}" for name, ours in measured.items()
    )
    if arguments.json:
        echo_json(
            [
                {"dataset": name, **row}
                for name, ours in measured.items()
                for row in _records(ours, published.get(name))
            ]
        )
    else:
        echo(markdown)
    if arguments.write:
        replace_block("statistics", markdown, README)
        report(f"\nwritten: {README}", as_json=arguments.json)
    return True


def _records(ours: Statistics, paper: Statistics | None) -> Iterator[dict[str, object]]:
    for table, rows in compare(ours, paper).items():
        for row in rows:
            yield {"table": table, **asdict(row), "difference": row.difference}
    yield {"table": "categories", "name": "categories", "ours": ours.categories}
