"""The seven types of the benchmark and the other names that models give them."""

from __future__ import annotations

import re
from typing import Final

TYPES: Final = frozenset({"PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"})

_ALIASES = {
    "PER": "person persons people name names fullname personname",
    "CODE": "codes identifier identifiers identifiercode identificationcode id idnumber",
    "LOC": "location locations place address gpe",
    "ORG": "organization organizations organisation organisations company institution",
    "DEM": "demographic demographics demographicinformation demographicattribute",
    "DATETIME": "date time dates times dateandtime timestamp",
    "QUANTITY": "quantities quant number amount money numeric numericalvalue",
}
_TYPE_OF = {name.lower(): name for name in TYPES} | {
    alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()
}
_PUNCTUATION = re.compile(r"[\W_]+")
_EXPLAINED = re.compile(r"\W*([A-Z]+)\s*\([\w\s/-]*\)\W*")
_LONGEST_NAME: Final = 60


def type_of(written: str) -> str | None:
    """Give the type that a name means (`PER`, `person`, `Date/Time`, `LOC (city)`), or None."""
    if len(written) > _LONGEST_NAME:
        return None
    explained = _EXPLAINED.fullmatch(written)
    name = explained[1] if explained else written
    return _TYPE_OF.get(_PUNCTUATION.sub("", name.lower()))
