"""The seven types of PII, their 55 categories, and what labels of other taxonomies mean in them.

Types and categories are the paper's (Section 3 and its appendix); how sensitive each category is,
is ours. `labels.csv` says of each label of other people's detectors and datasets which type of ours
has what it marks, which category where it marks one alone, and which label of DataFog. A cell is
empty where a taxonomy cannot express it. `part` says of which whole a label marks pieces: other
taxonomies hold a given name and a surname next to each other as one name.
"""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from statistics import median_high
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping


class PiiType(StrEnum):
    """A type of PII. The value is what datasets and prompts write."""

    PER = "PER"
    CODE = "CODE"
    LOC = "LOC"
    ORG = "ORG"
    DEM = "DEM"
    DATETIME = "DATETIME"
    QUANTITY = "QUANTITY"


CATEGORIES: Final[Mapping[PiiType, tuple[str, ...]]] = MappingProxyType(
    {
        PiiType.PER: ("Full Name", "Social Media Handle", "Nickname"),
        PiiType.CODE: (
            "Social Security Number",
            "Driver's License",
            "Bank Account",
            "Credit Card",
            "Phone Number",
            "IP Address",
            "Email Address",
            "Password Hash",
            "Passport Number",
            "Tax ID",
            "Employee ID",
            "Student ID",
        ),
        PiiType.LOC: ("Street Address", "City/Region", "Landmark"),
        PiiType.ORG: (
            "Company Name",
            "Educational Institution",
            "Government Agency",
            "NGO",
            "Healthcare Facility",
        ),
        PiiType.DEM: (
            "Occupation",
            "Age",
            "Gender",
            "Height",
            "Weight",
            "Blood Type",
            "Sexual Orientation",
            "Nationality",
            "Ethnicity",
            "Race",
            "Religious Belief",
            "Political Affiliation",
            "Education Level",
            "Academic Degree",
            "Physical Features",
            "Medical Condition",
            "Disability Status",
        ),
        PiiType.DATETIME: ("Date", "Time", "Duration"),
        PiiType.QUANTITY: (
            "Monthly Income",
            "Monthly Expenses",
            "Account Balance",
            "Loan Amount",
            "Annual Bonus",
            "Credit Limit",
            "Social Security Payment",
            "Tax Payment",
            "Debt Ratio",
            "Investment Return",
            "ROI",
            "Credit Score",
        ),
    }
)

TYPE_OF_CATEGORY: Final[Mapping[str, PiiType]] = MappingProxyType(
    {category: pii_type for pii_type, names in CATEGORIES.items() for category in names}
)


def type_named(name: str) -> PiiType:
    """The type of a category, or the type itself.

    Args:
        name: a category ("Age"), or a type ("CODE") for what has no category of its own.

    Raises:
        KeyError: there is neither.
    """
    return PiiType(name) if name in PiiType.__members__ else TYPE_OF_CATEGORY[name]


_DIRECT: Final = (
    *CATEGORIES[PiiType.PER],
    *CATEGORIES[PiiType.CODE],
    "Street Address",
)
_SPECIAL: Final = (
    "Blood Type",
    "Sexual Orientation",
    "Ethnicity",
    "Race",
    "Religious Belief",
    "Political Affiliation",
    "Medical Condition",
    "Disability Status",
    "Healthcare Facility",
)
_FINANCIAL: Final = CATEGORIES[PiiType.QUANTITY]
_NARROWING: Final = (
    "City/Region",
    "Company Name",
    "Educational Institution",
    "Government Agency",
    "NGO",
    "Occupation",
    "Age",
    "Gender",
    "Nationality",
    "Physical Features",
    "Date",
)
_COMMON: Final = (
    "Landmark",
    "Height",
    "Weight",
    "Education Level",
    "Academic Degree",
    "Time",
    "Duration",
)

SENSITIVITY: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(_DIRECT, 3),
        **dict.fromkeys(_SPECIAL, 3),
        **dict.fromkeys(_FINANCIAL, 2),
        **dict.fromkeys(_NARROWING, 2),
        **dict.fromkeys(_COMMON, 1),
    }
)
"""Category to tier: the weight of a leak. The tiers are an order made into numbers, not harms
that somebody measured.

3, direct identifiers: names, handles, numbers and accounts, and the street address. Each singles
    a person out, or reaches them, alone. The HIPAA Safe Harbor rule, 45 CFR 164.514(b)(2), lists
    them; NIST SP 800-122, Section 2.2, counts aliases as names.
3, special categories of GDPR Art. 9(1): origin, politics, religion, sexual orientation, health.
    Where somebody is treated and what a sample of blood shows are data on health (Recital 35).
2, money: income, debts, scores. GDPR says nothing of it; the Article 29 Working Party counts
    financial data among those of a highly personal nature (WP 248 rev.01, criterion 4).
2, what narrows a person down in combination: where, when, how old, of which sex and nationality,
    at which employer or school, with which looks. The paper's quasi-identifiers; dates and
    places below a state stand in the HIPAA list too.
1, what very many share, and what tells little of anyone: a landmark, height, weight, a degree,
    a time of day, a duration.
"""

_SENSITIVITY_OF_TYPE: Final[Mapping[PiiType, int]] = MappingProxyType(
    {
        pii_type: median_high([SENSITIVITY[category] for category in names])
        for pii_type, names in CATEGORIES.items()
    }
)


def sensitivity(category: str | None, pii_type: str) -> int:
    """The tier of an entity, 1 to 3.

    Args:
        category: None, or a name that is not ours, in foreign data: then the type decides, by
            the median of the tiers of its categories.
        pii_type: one of the seven.
    """
    of_category = None if category is None else SENSITIVITY.get(category)
    return of_category or _SENSITIVITY_OF_TYPE[PiiType(pii_type)]


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

PAPER: Final = "paper"
"""The taxonomy whose labels are our types."""

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
