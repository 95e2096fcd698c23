"""`pii-bench data quality`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.terminal import say
from pii_bench.construction.quality import (
    LONG,
    frequent_words,
    render,
    text_measures,
    trivial_measure,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.check.text import blanked
from pii_bench.datasets.native import read_native
from pii_bench.datasets.readme import replace_block
from pii_bench.errors import InputFileError
from pii_bench.systems.relevance.catalog import build_relevance

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

_SETS: Final = ("single", "multi")
_TRIVIAL: Final = ("all", "random", "keyword", "embedding")
_WORDS: Final = 50


def report_quality(data: Path, beside: str | None) -> bool:
    """Print the quality of single and multi and write it into the README beside them.

    Args:
        data: the folder of the sets.
        beside: a dataset whose frequent words are printed beside those of ours; None for none.

    Returns:
        True: a goal that is missed is a finding, and no error.

    Raises:
        InputFileError: a set is missing or broken, or the README has no place for the figures.
        UnknownNameError: `beside` names no dataset.
        ResultsError: the README cannot be written.
    """
    sets = {name: _read(data / f"{name}.jsonl") for name in _SETS}
    measures = text_measures(sets)
    measures += [trivial_measure(build_relevance(name), sets) for name in _TRIVIAL]
    table = render(measures)
    say(table)
    replace_block("quality", table, data / "README.md")
    if beside is not None:
        _print_words({**sets, beside: load_dataset(beside).samples})
    return True


def _print_words(sets: dict[str, Sequence[Sample]]) -> None:
    """The most frequent words of each set, with the share of texts that hold them."""
    found = {name: frequent_words(map(blanked, samples), _WORDS) for name, samples in sets.items()}
    rows = zip(
        *([f"{word} {share:.1%}" for word, share in own] for own in found.values()), strict=False
    )
    say()
    say(f"share of texts that hold a word of {LONG} letters and more:")
    say(tabulate(rows, headers=[*found], disable_numparse=True))


def _read(path: Path) -> Sequence[Sample]:
    if not path.exists():
        raise InputFileError(path, "is not there; `pii-bench data build` makes it")
    return read_native(path)
