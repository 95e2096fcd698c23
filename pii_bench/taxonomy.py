"""The seven types of PII and their 55 categories (paper, Section 3 and its appendix)."""

from __future__ import annotations

from enum import StrEnum
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
