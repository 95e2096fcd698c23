"""Every frame of the banks, with the slots that it must have."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, TypeVar

from pii_bench.construction.bank import read_bank
from pii_bench.construction.markup import HE, SHE, THEY, I, Person, Slot, render
from pii_bench.construction.pools import GRAMMAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Item = TypeVar("Item")

FILES = sorted(path for split in ("test", "train") for path in (GRAMMAR / split).rglob("*.txt"))

PEOPLE = {
    "I": I,
    "she": SHE,
    "he": HE,
    "they": THEY,
    "role": replace(SHE, role="the trainee"),
    "role, they": replace(THEY, role="the trainee"),
}

TEXT_SECTIONS = ("clause", "sentence", "casual", "formal", "record")
ABSTRACTIONS = ("near", "mid", "far")


_SLOTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{("facts", section): ("V",) for section in TEXT_SECTIONS},
    ("registers", "opening"): ("PER",),
    ("relations", "intro"): ("A", "B"),
    ("relations", "shared"): ("V",),
    ("queries", "one"): ("1",),
    ("queries", "two"): ("1", "2"),
    ("queries", "three"): ("1", "2", "3"),
    ("joints", "two"): ("1", "2"),
    ("joints", "three"): ("1", "2", "3"),
    ("distract", "about"): ("who",),
    ("distract", "one"): ("hook", "role"),
}
"""Kind of bank and first word of a section to the slots of its frames; others have none."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as the program opens it.

    Attributes:
        source: as it stands in the file.
        opened: with the markers replaced that are no markup of a single person.
        slots: names of its slots, sorted.
    """

    section: str
    source: str
    opened: str
    slots: tuple[str, ...]


def name_of(path: Path) -> str:
    return str(path.relative_to(GRAMMAR).with_suffix(""))


def frames(path: Path) -> Iterator[Frame]:
    """The frames of a file; lines that are lists ("needs", "roles") are none."""
    kind = path.parent.name if path.parent.parent.parent == GRAMMAR else path.stem
    for (_, section), lines in read_bank(path).sections.items():
        if section == "needs" or section.startswith("roles"):
            continue
        for line in lines:
            for part in line.split(" || ") if section == "hook" else (line,):
                opened = re.sub(r"\{([Tt]he(?:y|ir|m))\}", r"\1", part).replace("{B}", "my aunt")
                yield Frame(section, line, opened, _SLOTS.get((kind, section.split()[0]), ()))


class _Nth(Random):
    """Always chooses the same place."""

    place = 0

    def choice(self, items: Sequence[Item]) -> Item:  # type: ignore[override]
        return items[self.place % len(items)]


def texts(frame: Frame, person: Person) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts of a frame in which each alternative stands at least once, and their slots."""
    random = _Nth()
    values = dict.fromkeys(frame.slots, "zebra")
    most = max((each.count("|") for each in re.findall(r"\[(.*?)\]", frame.opened)), default=0)
    for random.place in range(most + 1):
        pieces = render(frame.opened, person, values, random, lambda _: "a")
        yield (
            "".join("zebra" if isinstance(piece, Slot) else piece for piece in pieces),
            tuple(sorted(piece.name for piece in pieces if isinstance(piece, Slot))),
        )
