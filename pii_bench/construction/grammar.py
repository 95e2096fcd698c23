"""The banks of one split, each frame dealt as evenly as cards are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from pii_bench.construction.bank import Bank, read_bank
from pii_bench.construction.pools import GRAMMAR, Split
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

REGISTERS: Final = (
    *("resume", "employee-record", "case-note", "biography", "self-introduction"),
    *("forum-post", "letter", "transcript", "family-scene", "chat"),
)

DOMAINS: Final = (
    *("career", "medical", "financial", "legal", "academic", "housing", "personal-life"),
)


@dataclass(frozen=True, slots=True)
class Banks:
    """Every bank of a split.

    Attributes:
        facts: category to its bank.
        registers: register to its bank.
        relations: relation to its bank.
        queries: domain to its bank; each facet is a scenario.
        joints: what joins and opens sentences.
        distractors: numbers, measures, names and words that belong to nobody.
        distract: what people say around the texts that a conversation joins.
    """

    facts: Mapping[str, Bank]
    registers: Mapping[str, Bank]
    relations: Mapping[str, Bank]
    queries: Mapping[str, Bank]
    joints: Bank
    distractors: Bank
    distract: Bank


@cache
def load_banks(split: Split) -> Banks:
    """Read the banks of a split.

    Raises:
        InputFileError: a bank is absent or broken.
    """
    folder = GRAMMAR / split
    relations = sorted(path.stem for path in (folder / "relations").glob("*.txt"))
    return Banks(
        facts={
            category: read_bank(folder / "facts" / f"{slug(category)}.txt")
            for category, pii_type in TYPE_OF_CATEGORY.items()
            if pii_type is not PiiType.PER
        },
        registers={name: read_bank(folder / "registers" / f"{name}.txt") for name in REGISTERS},
        relations={name: read_bank(folder / "relations" / f"{name}.txt") for name in relations},
        queries={name: read_bank(folder / "queries" / f"{name}.txt") for name in DOMAINS},
        joints=read_bank(folder / "joints.txt"),
        distractors=read_bank(folder / "distractors.txt"),
        distract=read_bank(folder / "distract.txt"),
    )


def slug(category: str) -> str:
    """The file name of a category: "Driver's License" is `driver-s-license`."""
    return re.sub(r"[^a-z0-9]+", "-", category.lower()).strip("-")


@dataclass
class Dealer:
    """Deals frames from shuffled decks: none comes again before all have come."""

    random: Random
    _decks: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def deal(
        self,
        key: tuple[str, ...],
        frames: tuple[str, ...],
        fits: Callable[[str], bool] = lambda _: True,
    ) -> str:
        """The next frame of a deck that fits.

        Args:
            key: names the deck.
            frames: what the deck is made of.
            fits: frames that do not fit stay in the deck.

        Raises:
            LookupError: no frame of the deck fits.
        """
        for _ in range(2):
            deck = self._decks.setdefault(key, [])
            for place in range(len(deck) - 1, -1, -1):
                if fits(deck[place]):
                    return deck.pop(place)
            fresh = list(frames)
            self.random.shuffle(fresh)
            # What was left over comes first, so that no frame falls behind.
            left = set(deck)
            self._decks[key] = [frame for frame in fresh if frame not in left] + deck
        raise LookupError(f"no frame fits in {' / '.join(key)}")
