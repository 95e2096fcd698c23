"""What the labels of other people's detectors and datasets mean here (`labels.csv`).

A label has a type of ours where what it marks has one (the type that has its category), a
category where it marks one alone, and a label of DataFog where that has one. What a taxonomy
cannot express is empty, none left to chance. `part` says of which whole a label marks pieces:
other taxonomies hold a given name and a surname next to each other as one name.
"""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.errors import UnknownNameError
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGETS: Final[Mapping[int, float]] = MappingProxyType({1: 0.98, 2: 0.95, 3: 0.90, 4: 0.85})
"""The recall that DataFog wants for each of its tiers (label_schema.py of DataFog/datafog-labs)."""

_TIERS: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: "SSN CREDIT_CARD BANK_ACCOUNT PASSPORT_NUMBER DRIVERS_LICENSE TAX_ID",
        2: "PERSON EMAIL PHONE DATE_OF_BIRTH STREET_ADDRESS IP_ADDRESS",
        3: "USERNAME DATE LOCATION ORGANIZATION URL LICENSE_PLATE AGE NATIONALITY GENDER "
        "ETHNICITY RELIGION MARITAL_STATUS",
        4: "MEDICAL_RECORD EMPLOYEE_ID STUDENT_ID ACCOUNT_NUMBER PIN PASSWORD BIOMETRIC "
        "VEHICLE_ID DEVICE_ID CRYPTO_WALLET IBAN SWIFT_CODE INSURANCE_NUMBER SALARY "
        "CRIMINAL_RECORD POLITICAL_AFFILIATION SEXUAL_ORIENTATION HEALTH_CONDITION GENETIC_DATA "
        "TRADE_UNION",
    }
)

TIER_OF: Final[Mapping[str, int]] = MappingProxyType(
    {label: tier for tier, labels in _TIERS.items() for label in labels.split()}
)
"""The tier of each of its labels."""

_FILE: Final = Path(__file__).with_name("labels.csv")
_RUNNING_NUMBER: Final = re.compile(r"_?\d+$")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a label marks; None where a taxonomy has nothing for it."""

    type: PiiType | None
    category: str | None
    datafog: str | None
    part: str | None

    @property
    def tier(self) -> int | None:
        """Of DataFog, 1 to 4."""
        return None if self.datafog is None else TIER_OF[self.datafog]


@cache
def taxonomy(name: str) -> Mapping[str, Meaning]:
    """The labels of a taxonomy by name: `paper`, `ai4privacy`, `datafog`, `presidio`, `spacy`...

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    tables = _tables()
    if name not in tables:
        raise UnknownNameError("taxonomy", name, tables)
    return MappingProxyType(tables[name])


@cache
def any_taxonomy() -> Mapping[str, Meaning]:
    """All labels of all taxonomies; of one that several have, what the first in the file says."""
    tables = reversed(_tables().values())
    return MappingProxyType(
        {label: meaning for table in tables for label, meaning in table.items()}
    )


def sha256_of_labels() -> str:
    """Hash of all tables, for the signature of scores that they are part of."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def types_of(name: str) -> Mapping[str, PiiType | None]:
    """The types of a taxonomy's labels."""
    return {label: meaning.type for label, meaning in taxonomy(name).items()}


def name_in(labels: Mapping[str, Meaning], label: str) -> str | None:
    """How a taxonomy writes a label that comes in other case or with a running number.

    None where it has no such label.
    """
    bare = _RUNNING_NUMBER.sub("", label)
    forms = (form for each in (label, bare) for form in (each, each.upper(), each.lower()))
    return next((form for form in forms if form in labels), None)


@cache
def _tables() -> dict[str, dict[str, Meaning]]:
    tables: dict[str, dict[str, Meaning]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            tables.setdefault(row["taxonomy"], {})[row["label"]] = Meaning(
                PiiType(row["type"]) if row["type"] else None,
                row["category"] or None,
                row["datafog"] or None,
                row["part"] or None,
            )
    return tables
