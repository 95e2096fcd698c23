"""Whether an entity is of its category, and its text in the category's format.

Source: the table of the paper's 55 categories. A category that people fill freely takes any
one line of text.
"""

from __future__ import annotations

import datetime as dt
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.forms import (
    is_amount,
    is_date,
    is_duration,
    is_height,
    is_phone,
    is_time,
    is_weight,
)
from pii_bench.datasets.check.problem import Problem
from pii_bench.datasets.check.values import (
    parse_amount,
    parse_days,
    parse_kilograms,
    parse_metres,
    parse_percentage,
)
from pii_bench.datasets.codes import is_ip_address, luhn_holds
from pii_bench.datasets.sample import perturbation_of, reasons_of
from pii_bench.taxonomy import TYPE_OF_CATEGORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.datasets.sample import Entity, Sample

    Predicate = Callable[[str], bool]


def format_problems(sample: Sample) -> Iterator[Problem]:
    """Entities that are not what their annotation says.

    Rules: `category`, it is one of the 55 and belongs to the entity's type; `format`, the
    text is in a form of the category: the paper's or, for dates, times, durations, amounts,
    measures and phone numbers, another one in use (`forms`). Foreign entities without a
    category pass, and those of a sample whose difficulty is its forms (`meta.reasons`) or which
    is a version in other forms (`meta.perturbation`).
    """
    for entity in sample.entities:
        if entity.category is not None:
            yield from _entity_problems(sample, entity, entity.category)


def _entity_problems(sample: Sample, entity: Entity, category: str) -> Iterator[Problem]:
    pii_type = TYPE_OF_CATEGORY.get(category)
    if pii_type is None:
        yield Problem(sample.id, "category", f"{category!r} is none of the 55")
        return
    if entity.type != pii_type:
        reason = f"{entity.text!r}: {category} is of type {pii_type}, not {entity.type}"
        yield Problem(sample.id, "category", reason)
    if "forms" in reasons_of(sample) or perturbation_of(sample):
        return
    if not FORMATS.get(category, _is_line)(entity.text):
        yield Problem(sample.id, "format", f"{entity.text!r} is no {category}")


def _is_line(text: str) -> bool:
    return text == text.strip() and len(text.splitlines()) == 1


def _like(pattern: str) -> Predicate:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _one_of(words: str) -> Predicate:
    allowed = frozenset(words.split(", "))
    return lambda text: text.lower() in allowed


def _is_read_by(reader: Callable[[str], object]) -> Predicate:
    return lambda text: reader(text) is not None


def _either(paper: Predicate, free: Predicate) -> Predicate:
    return lambda text: paper(text) or free(text)


def _is_full_name(text: str) -> bool:
    # Names of all scripts, so only what no name has is refused.
    return re.fullmatch(r"[^\W\d_][^\s\d@_]*(?: [^\s\d@_]+)+", text) is not None


def _is_card_number(text: str) -> bool:
    """Sixteen digits whose last one is right by Luhn's formula (ISO/IEC 7812-1)."""
    return _like(r"\d{16}")(text) and luhn_holds(text)


def _is_iso_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2024-09-16") and "W" not in text


_LICENCE: Final = _like(r"[A-Z]\d{8}")
_AMOUNT: Final = _either(_is_read_by(parse_amount), is_amount)
_PERCENTAGE: Final = _is_read_by(parse_percentage)

FORMATS: Final[Mapping[str, Predicate]] = MappingProxyType(
    {
        "Full Name": _is_full_name,
        "Social Media Handle": _like(r"@[A-Za-z0-9]{5,15}"),
        "Social Security Number": _like(r"\d{3}-\d{2}-\d{4}"),
        "Driver's License": _LICENCE,
        "Bank Account": _like(r"\d{10,12}"),
        "Credit Card": _is_card_number,
        "Phone Number": _either(_like(r"\+[1-9]\d{0,2}-\d{10}"), is_phone),
        "IP Address": is_ip_address,
        "Email Address": _like(r"[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"),
        "Password Hash": _like(r"[0-9a-fA-F]{64}"),
        "Passport Number": _LICENCE,
        "Tax ID": _like(r"\d{9}"),
        "Employee ID": _like(r"[A-Z]{2}\d{6}"),
        "Student ID": _like(r"\d{8}"),
        "Age": _like(r"[1-9]?\d|1[01]\d|120"),
        "Gender": _one_of(
            "man, woman, male, female, boy, girl, trans man, trans woman, transgender, non-binary, "
            "nonbinary, genderfluid, genderqueer, agender, bigender, intersex"
        ),
        "Height": _either(_is_read_by(parse_metres), is_height),
        "Weight": _either(_is_read_by(parse_kilograms), is_weight),
        "Blood Type": _like(r"(?:A|B|AB|O)[+\-\u2212]"),
        "Sexual Orientation": _one_of(
            "gay, lesbian, bisexual, straight, heterosexual, homosexual, asexual, aromantic, "
            "demisexual, pansexual, queer, questioning"
        ),
        "Date": _either(_is_iso_date, is_date),
        "Time": _either(_like(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"), is_time),
        "Duration": _either(_is_read_by(parse_days), is_duration),
        "Monthly Income": _AMOUNT,
        "Monthly Expenses": _AMOUNT,
        "Account Balance": _AMOUNT,
        "Loan Amount": _AMOUNT,
        "Annual Bonus": _AMOUNT,
        "Credit Limit": _AMOUNT,
        "Social Security Payment": _AMOUNT,
        "Tax Payment": _AMOUNT,
        "Debt Ratio": _PERCENTAGE,
        "Investment Return": _PERCENTAGE,
        "ROI": _PERCENTAGE,
        "Credit Score": _like(r"[3-7]\d\d|8[0-4]\d|850"),
    }
)
