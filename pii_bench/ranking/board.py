"""The leaderboard of a results folder: everything stored, scored again and ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.ranking.collect import collect
from pii_bench.ranking.human import human_rows
from pii_bench.ranking.published import published_rows
from pii_bench.ranking.reading import reading_rows
from pii_bench.ranking.render import write_leaderboard
from pii_bench.ranking.rows import rank
from pii_bench.runs.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.rows import Row

_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard that was written.

    Attributes:
        rows: ranked; ours, those submitted, the readers', people's, and the published ones.
        files: where it is written, `leaderboard.csv` first.
        left_out: runs and lines that could not be scored, each with the reason.
    """

    rows: tuple[Row, ...]
    files: tuple[Path, ...]
    left_out: tuple[str, ...]


def update(results: Path, loaded: Iterable[Dataset] = ()) -> Board:
    """Score what is stored and write the leaderboard.

    Args:
        results: folder of the runs.
        loaded: datasets that need not be read again.

    Raises:
        ResultsError: it cannot be written, or another run writes it for minutes.
    """
    # Who collects last must write last: an older view would hide the rows of another run.
    with locked(results, wait=_LONGEST_WAIT):
        collection = collect(results, loaded)
        read = reading_rows({row.dataset for row in collection.rows})
        people, broken = human_rows(results)
        rows = rank([*collection.rows, *read, *people, *published_rows()])
        files = write_leaderboard(rows, results)
    return Board(tuple(rows), tuple(files), (*collection.left_out, *broken))
