"""The labels that a prompt asks for, each with what it marks (`pii_bench.labels`)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.labels import name_in, taxonomy
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.labels import Meaning

PAPER: Final = "paper"
"""The taxonomy whose labels are our types."""

_KINDS: Final[Mapping[PiiType, str]] = MappingProxyType(
    {
        PiiType.PER: "Name",
        PiiType.CODE: "Number or string that identifies somebody",
        PiiType.LOC: "Place",
        PiiType.ORG: "Organization",
        PiiType.DEM: "Attribute of a person",
        PiiType.DATETIME: "Date or time",
        PiiType.QUANTITY: "Sum of money or share",
    }
)


def definitions(name: str) -> Mapping[str, str]:
    """Label to what it marks, in the order of the table; empty where the table does not say.

    Of the paper's taxonomy the seven types alone. Labels that differ from another in a running
    number (`LASTNAME1`) are not asked for: some releases of a dataset number a repeated label.

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    labels = taxonomy(name)
    if name == PAPER:
        return MappingProxyType({each.value: ", ".join(CATEGORIES[each]) for each in PiiType})
    return MappingProxyType(
        {
            label: _definition(label, meaning)
            for label, meaning in labels.items()
            if name_in({key: labels[key] for key in labels if key != label}, label) is None
        }
    )


def asked_as(asked: Mapping[str, str], meaning: Meaning | None, label: str) -> str | None:
    """The label among those asked for that a dataset's label stands for; None for none."""
    if label in asked:
        return label
    if meaning is not None and meaning.type in asked:
        return meaning.type
    bare = label.rstrip("0123456789").removesuffix("_")
    return bare if bare in asked else None


def _definition(label: str, meaning: Meaning) -> str:
    if meaning.category is not None:
        return f"Part of: {meaning.category}" if meaning.part else meaning.category
    datafog = (meaning.datafog or "").replace("_", " ").capitalize()
    if datafog and datafog.lower() != label.replace("_", " ").lower():
        return datafog
    return "" if meaning.type is None else _KINDS[meaning.type]
