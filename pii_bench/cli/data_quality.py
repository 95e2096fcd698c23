"""`pii-bench data quality`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.data_build import build_all
from pii_bench.cli.options import add_data_folder, add_json
from pii_bench.cli.terminal import echo, echo_json, log
from pii_bench.construction.quality import (
    LONG,
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

    from pii_bench.datasets.sample import Sample

_MEASURED: Final = ("single", "multi")
_TRIVIAL: Final = ("all", "random", "keyword", "embedding")
_WORDS: Final = 50
DESCRIPTION: Final = (
    "Measure single and multi: how alike their texts are, and how far systems get that "
    "understand nothing. The figures go into README.md next to the sets too."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_data_folder(parser)
    add_json(parser)
    parser.add_argument(
        "--compare",
        metavar="DATASET",
        help="print the most frequent words with those of a dataset, such as capid:PATH",
    )


def run(arguments: argparse.Namespace) -> bool:
    """Print the quality of single and multi and write it into the README next to them.

    Raises:
        InputFileError: a set is broken, or the README has no place for the figures.
        UnknownNameError: `--compare` names no dataset.
        ResultsError: the README cannot be written.
    """
    data: Path = arguments.data
    other: str | None = arguments.compare
    if not all((data / f"{name}.jsonl").exists() for name in _MEASURED):
        log(f"{data}: the sets are not there and are built first")
        build_all(data)
    sets = {name: read_native(data / f"{name}.jsonl") for name in _MEASURED}
    measures = text_measures(sets)
    measures += [trivial_measure(build_relevance(name), sets) for name in _TRIVIAL]
    table = render(measures)
    words = {} if other is None else _frequent({**sets, other: load_dataset(other).samples})
    if arguments.json:
        measured = [
            {"measure": each.name, "set": name, "value": value, "goal": each.goal}
            for each in measures
            for name, value in each.values.items()
        ]
        shares = [
            {"measure": "share of texts", "set": name, "word": word, "value": share}
            for name, own in words.items()
            for word, share in own
        ]
        echo_json([*measured, *shares])
    else:
        echo(table)
        if words:
            _print_words(words)
    if (data / "README.md").exists():
        replace_block("quality", table, data / "README.md")
    return True


def _frequent(sets: Mapping[str, Sequence[Sample]]) -> dict[str, Sequence[tuple[str, float]]]:
    """The most frequent words of each set, with the share of texts that hold them."""
    return {name: frequent_words(map(blanked, samples), _WORDS) for name, samples in sets.items()}


def _print_words(found: Mapping[str, Sequence[tuple[str, float]]]) -> None:
    rows = zip(
        *([f"{word} {share:.1%}" for word, share in own] for own in found.values()), strict=False
    )
    echo()
    echo(f"share of texts that hold a word of {LONG} letters and more:")
    echo(tabulate(rows, headers=[*found], disable_numparse=True))
