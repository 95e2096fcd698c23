"""The parts of a person's name by which a text could call them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.datasets.sample import Entity, Sample

# Particles ("van", "al") and initials are no name of their own.
_PART: Final = re.compile(r"[^\W\d_]\S+")


def name_parts(sample: Sample) -> Iterator[str]:
    """The words of full names, and handles without their sign, each once.

    A person entity without a category counts as a full name where it has several words.
    """
    parts = (
        part for entity in sample.entities if entity.type == PiiType.PER for part in _parts(entity)
    )
    yield from dict.fromkeys(parts)


def _parts(entity: Entity) -> Iterator[str]:
    if entity.text.startswith("@"):
        yield entity.text[1:]
        return
    words = entity.text.split()
    if entity.category in {"Full Name", None} and len(words) > 1:
        yield from (word for word in words if _PART.fullmatch(word) and not word.islower())
