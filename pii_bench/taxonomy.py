"""The seven PII types, their 55 categories, and the mapping of other taxonomies to them.

Types and categories are the paper's (Section 3 and its appendix); the sensitivity tiers are our
own. `labels.csv` maps each label of another detector or dataset to a type, to a category if the
label covers only one, and to a label of DataFog; an empty cell means that there is no equivalent.
The column `part` names the whole of which a label marks a part: a given name and a surname next
to each other are one name here.
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
from typing import TYPE_CHECKING, Final

from pii_bench.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping


class PiiType(StrEnum):
    """A PII type; the value is the spelling in datasets and prompts."""

    PER = "PER"
    CODE = "CODE"
    LOC = "LOC"
    ORG = "ORG"
    DEM = "DEM"
    DATETIME = "DATETIME"
    QUANTITY = "QUANTITY"


CATEGORIES: Final[Mapping[PiiType, tuple[str, ...]]] = {
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

TYPE_OF_CATEGORY: Final[Mapping[str, PiiType]] = {
    category: pii_type for pii_type, names in CATEGORIES.items() for category in names
}


def type_named(name: str) -> PiiType:
    """Return the type of a category ("Age"), or of its own name ("CODE").

    Raises:
        KeyError: `name` is neither.
    """
    return PiiType(name) if name in PiiType.__members__ else TYPE_OF_CATEGORY[name]


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

SENSITIVITY: Final[Mapping[str, int]] = {
    **dict.fromkeys(CATEGORIES[PiiType.PER], 3),
    **dict.fromkeys(CATEGORIES[PiiType.CODE], 3),
    "Street Address": 3,
    **dict.fromkeys(_SPECIAL, 3),
    **dict.fromkeys(CATEGORIES[PiiType.QUANTITY], 2),
    **dict.fromkeys(_NARROWING, 2),
    **dict.fromkeys(_COMMON, 1),
}
"""Category to tier, the weight of a leak. The tiers are an ordinal scale, not measured harm.

3, direct identifiers: names, handles, numbers, accounts and street addresses. Each identifies or
    reaches a person on its own. The HIPAA Safe Harbor rule, 45 CFR 164.514(b)(2), lists them;
    NIST SP 800-122, Section 2.2, counts aliases as names.
3, special categories of GDPR Art. 9(1): origin, politics, religion, sexual orientation, health.
    The place of treatment and the blood type are health data (Recital 35).
2, money: income, debts, scores. GDPR does not list it; the Article 29 Working Party counts
    financial data as highly personal (WP 248 rev.01, criterion 4).
2, quasi-identifiers (paper): place, date, age, gender, nationality, employer, school, looks. They
    identify a person in combination; HIPAA lists dates and places below a state too.
1, common attributes that reveal little: a landmark, height, weight, a degree, a time of day, a
    duration.
"""

_SENSITIVITY_OF_TYPE: Final[Mapping[PiiType, int]] = {
    pii_type: median_high([SENSITIVITY[category] for category in names])
    for pii_type, names in CATEGORIES.items()
}


def sensitivity(category: str | None, pii_type: str) -> int:
    """Return the tier of an entity, 1 to 3.

    Without a category, or with one of another taxonomy, it is the median over the categories of
    the type.
    """
    of_category = None if category is None else SENSITIVITY.get(category)
    return of_category or _SENSITIVITY_OF_TYPE[PiiType(pii_type)]


TARGETS: Final[Mapping[int, float]] = {1: 0.98, 2: 0.95, 3: 0.90, 4: 0.85}
"""DataFog's target recall for each of its tiers (label_schema.py of DataFog/datafog-labs)."""

_TIERS: Final[Mapping[int, str]] = {
    1: "SSN CREDIT_CARD BANK_ACCOUNT PASSPORT_NUMBER DRIVERS_LICENSE TAX_ID",
    2: "PERSON EMAIL PHONE DATE_OF_BIRTH STREET_ADDRESS IP_ADDRESS",
    3: "USERNAME DATE LOCATION ORGANIZATION URL LICENSE_PLATE AGE NATIONALITY GENDER "
    "ETHNICITY RELIGION MARITAL_STATUS",
    4: "MEDICAL_RECORD EMPLOYEE_ID STUDENT_ID ACCOUNT_NUMBER PIN PASSWORD BIOMETRIC "
    "VEHICLE_ID DEVICE_ID CRYPTO_WALLET IBAN SWIFT_CODE INSURANCE_NUMBER SALARY "
    "CRIMINAL_RECORD POLITICAL_AFFILIATION SEXUAL_ORIENTATION HEALTH_CONDITION GENETIC_DATA "
    "TRADE_UNION",
}

TIER_OF: Final[Mapping[str, int]] = {
    label: tier for tier, labels in _TIERS.items() for label in labels.split()
}
"""DataFog label to tier."""

PAPER: Final = "paper"
"""The name of the paper's taxonomy, whose labels are the seven types."""

_FILE: Final = Path(__file__).with_name("labels.csv")
_RUNNING_NUMBER: Final = re.compile(r"_?\d+$")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The equivalents of a label; None if a taxonomy has none."""

    type: PiiType | None
    category: str | None
    datafog: str | None
    part: str | None

    @property
    def tier(self) -> int | None:
        """DataFog's tier of the label, 1 to 4."""
        return None if self.datafog is None else TIER_OF[self.datafog]


def taxonomy(name: str) -> Mapping[str, Meaning]:
    """Return the labels of a taxonomy: `paper`, `ai4privacy`, `datafog`, `presidio`, `spacy`...

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    tables = _tables()
    if name not in tables:
        raise UnknownNameError("taxonomy", name, tables)
    return tables[name]


@cache
def any_taxonomy() -> Mapping[str, Meaning]:
    """Return the labels of all taxonomies; the first in the file wins where several share one."""
    tables = reversed(_tables().values())
    return {label: meaning for table in tables for label, meaning in table.items()}


def sha256_of_labels() -> str:
    """Return the SHA-256 of `labels.csv`, for the signature of scores that depend on it."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def types_of(name: str) -> Mapping[str, PiiType | None]:
    """Return the type of each label of a taxonomy."""
    return {label: meaning.type for label, meaning in taxonomy(name).items()}


def name_in(labels: Mapping[str, Meaning], label: str) -> str | None:
    """Return the taxonomy's spelling of a label given in another case or with a running number.

    None if the taxonomy has no such label.
    """
    for name in (label, _RUNNING_NUMBER.sub("", label)):
        for form in (name, name.upper(), name.lower()):
            if form in labels:
                return form
    return None


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
