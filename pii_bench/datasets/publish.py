"""What is written anew after the sets were built: pins, Croissant metadata, checksums."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pii_bench.datasets.card import card_path, pin, read_card, write_card
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.checksums import write_checksums
from pii_bench.datasets.croissant import FILE, write_croissant
from pii_bench.resources import DATA

if TYPE_CHECKING:
    from pathlib import Path


def publish(data: Path = DATA) -> None:
    """Pin what lies in the files of every dataset of ours, and describe it.

    Each card keeps its prose and gets new pins.

    Args:
        data: the folder of the sets and their cards.

    Raises:
        InputFileError: a set or a card is absent or broken.
        ResultsError: something cannot be written.
    """
    cards = []
    for name, group in groupby(DATASETS.values(), key=lambda entry: entry.card):
        entries = list(group)
        path = card_path(data, name)
        card = pin(read_card(path), [entry.path_in(data) for entry in entries])
        write_card(path, card)
        cards.append(card)
    write_croissant(data, cards)
    files = [f"{name}.jsonl" for card in cards for name in card.pins]
    files += [path.name for path in data.glob("*.card.json")]
    write_checksums(data, [*files, FILE])
