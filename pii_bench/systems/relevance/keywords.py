"""Words by which a query would name a category outright: its own name and plain synonyms."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        # CODE
        "Social Security Number": ("social security number", "ssn", "national insurance number"),
        "Driver's License": ("license", "licence", "driving permit"),
        "Bank Account": ("bank account", "account number", "account", "iban"),
        "Credit Card": ("credit card", "card", "card number"),
        "Phone Number": ("phone", "telephone", "number", "call", "mobile", "cell"),
        "IP Address": ("ip", "ip address", "network address"),
        "Email Address": ("email", "e-mail", "mail", "mailbox", "inbox"),
        "Password Hash": ("password", "hash", "passphrase"),
        "Passport Number": ("passport", "travel document"),
        "Tax ID": ("tax id", "tax number", "taxpayer number", "tin"),
        "Employee ID": ("employee id", "employee number", "staff number", "badge"),
        "Student ID": ("student id", "student number", "matriculation number", "student card"),
        # LOC
        "Street Address": ("address", "street", "home", "house", "flat", "apartment"),
        "City/Region": ("city", "region", "town", "area", "state", "place"),
        "Landmark": ("landmark", "sight", "monument", "park", "bridge", "tower"),
        # ORG
        "Company Name": ("company", "employer", "firm", "business", "workplace", "work"),
        "Educational Institution": (
            "university",
            "college",
            "school",
            "institution",
            "institute",
            "campus",
        ),
        "Government Agency": ("agency", "government", "authority", "office", "department"),
        "NGO": ("ngo", "charity", "non-profit", "nonprofit", "organisation", "organization"),
        "Healthcare Facility": ("hospital", "clinic", "healthcare", "doctor", "practice", "ward"),
        # DEM
        "Occupation": ("occupation", "job", "profession", "work", "career", "role"),
        "Age": ("age", "old", "aged", "years old", "birthday"),
        "Gender": ("gender", "sex", "man", "woman", "male", "female"),
        "Height": ("height", "tall", "short"),
        "Weight": ("weight", "weigh", "heavy"),
        "Blood Type": ("blood", "blood type", "blood group", "transfusion", "donor"),
        "Sexual Orientation": ("orientation", "sexual", "sexuality", "partner", "dating"),
        "Nationality": ("nationality", "citizen", "citizenship", "country", "national"),
        "Ethnicity": ("ethnicity", "ethnic", "heritage", "background", "ancestry", "origin"),
        "Race": ("race", "racial", "skin", "skin colour", "skin color"),
        "Religious Belief": ("religion", "religious", "belief", "faith", "church", "worship"),
        "Political Affiliation": ("political", "politics", "party", "affiliation", "vote"),
        "Education Level": ("education", "schooling", "educated", "studies", "qualification"),
        "Academic Degree": ("degree", "diploma", "academic", "bachelor", "master", "doctorate"),
        "Physical Features": ("features", "look", "appearance", "scar", "tattoo", "hair"),
        "Medical Condition": (
            "condition",
            "medical",
            "illness",
            "disease",
            "diagnosis",
            "health",
        ),
        "Disability Status": ("disability", "disabled", "impairment", "accommodation"),
        # DATETIME
        "Date": ("date", "day", "when", "deadline", "appointment"),
        "Time": ("time", "hour", "o'clock", "when", "clock", "schedule"),
        "Duration": ("duration", "how long", "years", "months", "long", "length"),
        # QUANTITY
        "Monthly Income": ("income", "salary", "pay", "wage", "earn", "earnings"),
        "Monthly Expenses": ("expense", "spend", "spending", "cost", "outgoings", "bill"),
        "Account Balance": ("balance", "savings", "account", "saved", "bank"),
        "Loan Amount": ("loan", "borrow", "borrowed", "owe", "mortgage", "debt"),
        "Annual Bonus": ("bonus", "annual bonus", "extra pay"),
        "Credit Limit": ("credit limit", "limit", "ceiling", "credit line"),
        "Social Security Payment": (
            "social security",
            "benefit",
            "pension",
            "social security payment",
            "allowance",
            "payment",
        ),
        "Tax Payment": ("tax", "taxes", "tax payment", "tax bill"),
        "Debt Ratio": ("debt", "debt ratio", "ratio", "debt-to-income"),
        "Investment Return": ("investment", "return", "fund", "portfolio", "yield"),
        "ROI": ("roi", "return on investment", "return", "paid off", "profit"),
        "Credit Score": ("credit score", "score", "credit rating", "rating", "creditworthiness"),
    }
)
"""By category, at most six each; PER has none."""

KEYWORDS_SHA256: Final = hashlib.sha256(json.dumps(dict(KEYWORDS)).encode()).hexdigest()
"""Part of the identity of what is built on them."""
