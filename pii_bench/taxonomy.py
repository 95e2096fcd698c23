"""The seven types of PII and their 55 categories (paper, Section 3 and its appendix).

How sensitive each category is, is ours.
"""

from __future__ import annotations

from enum import StrEnum
from statistics import median_high
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
