"""Relevance by words that name a category or that query and description share."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.systems.relevance.base import relative_scores, without_names
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.systems.relevance.base import Candidate

# A mark ends a clause only before white space, so not in 05:15:00 and example.org.
_CLAUSE_END: Final = re.compile(
    r"[.,;:!?…][\"'”’»)\]]*\s+|\s*\n\s*|\s+[–—-]\s+|\s+(?=(?:and|or|but)\b)", re.IGNORECASE
)

_SENTENCE_END: Final = re.compile(r"(?<=[.?!…])\s+")
_PART_END: Final = re.compile(r"[.,;:?!…()–—]+|\b(?:and|or|but)\b", re.IGNORECASE)


def clauses_around(description: str, candidates: Sequence[Candidate]) -> list[str]:
    """Return the clause of the first occurrence of each candidate.

    A clause ends at punctuation, at the end of a line, or before "and", "or" and "but", but not
    inside the candidate.
    """
    breaks = [match.span() for match in _CLAUSE_END.finditer(description)]
    clauses: list[str] = []
    for candidate in candidates:
        end = candidate.start + len(candidate.text)
        before = max((stop for _, stop in breaks if stop <= candidate.start), default=0)
        after = min((begin for begin, _ in breaks if begin >= end), default=len(description))
        clauses.append(description[before:after])
    return clauses


def parts_of(query: str) -> list[str]:
    """Return the query, its sentences and its clauses, without duplicates."""
    parts = [query, *_SENTENCE_END.split(query), *_PART_END.split(query)]
    return [*dict.fromkeys(part.strip() for part in parts if part.strip())]


KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
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
    "Medical Condition": ("condition", "medical", "illness", "disease", "diagnosis", "health"),
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
"""Words for each category, at most six; there are none for PER."""

KEYWORDS_SHA256: Final = hashlib.sha256(json.dumps(KEYWORDS).encode()).hexdigest()
"""Hash for the identity of systems that use the words."""


_WORD: Final = re.compile(r"[^\W_]+")
_FUNCTION_WORDS: Final = frozenset(
    """
    a about above after again against all also am an and another any are as at be because been
    before being below between both but by can cannot could did do does doing done down during each
    either else even ever every few for from further get had has have having he her here hers
    herself him himself his how however i if in into is it its itself just least less let like
    many may me might mine more most much must my myself neither no nor not now of off on once
    one only onto or other others our ours out over own per quite rather same shall she should
    since so some somebody someone something still such than that the their theirs them
    themselves then there these they this those though through to too two under until up upon us
    very was we were what whatever when where whether which while who whom whose why will with
    within without would yes yet you your yours
    """.split()  # noqa: SIM905
)

_WORDS_SHA256: Final = hashlib.sha256(
    " ".join([KEYWORDS_SHA256, *sorted(_FUNCTION_WORDS)]).encode()
).hexdigest()

_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    category: re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", re.IGNORECASE)
    for category, words in KEYWORDS.items()
}


@dataclass(frozen=True, slots=True)
class KeywordRelevance:
    """Scores a candidate by words (`Relevance`).

    1 if the query names a category of its type (by `KEYWORDS`), 0.5 if the clause around it names
    the same category, and 0.1 for each content word that query and clause share; minus the mean
    over the candidates.
    """

    threshold: float
    name: str = "keyword"

    @property
    def identity(self) -> Mapping[str, str]:
        """The hash of the word lists, and the threshold."""
        return {"words": _WORDS_SHA256, "threshold": repr(self.threshold)}

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """Return one score per candidate."""
        named = {category for category, pattern in _PATTERNS.items() if pattern.search(query)}
        query_words = content_words(query)
        scores: dict[Candidate, float] = {}
        scored = without_names(candidates)
        for candidate, clause in zip(scored, clauses_around(description, scored), strict=True):
            categories = named.intersection(CATEGORIES[PiiType(candidate.type)])
            in_clause = any(_PATTERNS[category].search(clause) for category in categories)
            shared = len(query_words & content_words(clause))
            scores[candidate] = bool(categories) + 0.5 * in_clause + 0.1 * shared
        return relative_scores(candidates, scores)


def content_words(text: str) -> frozenset[str]:
    """Return the content words of at least two letters, in lower case, without plural s."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(
        _singular(word) for word in words if len(word) > 1 and word not in _FUNCTION_WORDS
    )


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if is_plural else word
