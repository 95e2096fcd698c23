"""`pii-bench data quality`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.data_build import build_all
from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo, echo_json, log
from pii_bench.construction.quality import (
    MIN_LETTERS,
    frequent_words,
    render,
    text_measures,
    trivial_measure,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.text import blanked
from pii_bench.datasets.publish import replace_block
from pii_bench.datasets.sample import read_native
from pii_bench.systems.relevance.catalog import build_relevance

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MEASURED: Final = ("single", "multi")
_TRIVIAL: Final = ("all", "random", "keyword", "embedding")
_WORDS: Final = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Measure how alike the texts of single and multi are, and how well trivial systems score "
        "on them. Updates the README.md next to the sets."
    )
    add_options(parser, "--data", "--json")
    parser.add_argument(
        "--compare",
        metavar="DATASET",
        help="also print the most frequent words, next to those of this dataset (capid:PATH...)",
    )


def run(arguments: argparse.Namespace) -> bool:
    """Print the measures of single and multi, and write them into the README next to them."""
    data: Path = arguments.data
    other: str | None = arguments.compare
    if not all((data / f"{name}.jsonl").exists() for name in _MEASURED):
        log(f"{data}: the sets do not exist and are built first")
        build_all(data)
    sets = {name: read_native(data / f"{name}.jsonl") for name in _MEASURED}
    measures = text_measures(sets)
    measures += [trivial_measure(build_relevance(name), sets) for name in _TRIVIAL]
    table = render(measures)
    words: dict[str, Sequence[tuple[str, float]]] = {}
    if other is not None:
        for name, samples in {**sets, other: load_dataset(other).samples}.items():
            words[name] = frequent_words(map(blanked, samples), _WORDS)
    if arguments.json:
        rows: list[dict[str, object]] = [
            {"measure": measure.name, "set": name, "value": value, "goal": measure.goal}
            for measure in measures
            for name, value in measure.values.items()
        ]
        rows += [
            {"measure": "share of texts", "set": name, "word": word, "value": share}
            for name, shares in words.items()
            for word, share in shares
        ]
        echo_json(rows)
    else:
        echo(table)
        if words:
            _print_words(words)
    if (data / "README.md").exists():
        replace_block("quality", table, data / "README.md")
    return True


def _print_words(words: Mapping[str, Sequence[tuple[str, float]]]) -> None:
    columns = {
        name: [f"{word} {share:.1%}" for word, share in shares] for name, shares in words.items()
    }
    rows = zip(*columns.values(), strict=False)
    echo()
    echo(f"share of texts that contain a word of {MIN_LETTERS} letters or more:")
    echo(tabulate(rows, headers=list(columns), disable_numparse=True))
