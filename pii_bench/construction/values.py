"""Drawing values of facts, in the taxonomy's formats. Numbers are of ranges that are not issued."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.value_formats import luhn_holds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from pii_bench.construction.pools import City, Country, Pools


@dataclass(frozen=True, slots=True)
class Draw:
    """The properties of a person that values depend on.

    Attributes:
        country: the country of residence, even if the text does not mention it.
        pronoun: `she`, `he` or `they`.
        culture: the culture of the name, which may differ from that of the country.
        income: gross monthly pay in US dollars, which amounts are proportional to.
    """

    random: Random
    pools: Pools
    country: Country
    city: City
    pronoun: str
    culture: str
    income: float

    def from_list(self, name: str) -> str:
        """Draw a value from a list of the pools."""
        return self.random.choice(self.pools.lists[name])

    def digits(self, count: int) -> str:
        """Draw digits, the first of which is not 0."""
        return str(self.random.randrange(10 ** (count - 1), 10**count))

    def letter(self) -> str:
        """Draw a capital letter that cannot be mistaken for a digit."""
        return self.random.choice("ABCDEFGHJKLMNPRSTVWXYZ")


def draw_value(category: str, facet: str, draw: Draw) -> str:
    """Draw a value of a category; the same state of `draw.random` gives the same value."""
    if category in _DRAWERS:
        return _DRAWERS[category](draw, facet)
    if category in _CODES:
        letters, digits = _CODES[category]
        return "".join(draw.letter() for _ in range(letters)) + draw.digits(digits)
    if category in _INCOME_SHARES:
        return amount(draw, draw.income * draw.random.uniform(*_INCOME_SHARES[category]))
    if category in _PERCENTAGES:
        return f"{draw.random.uniform(*_PERCENTAGES[category]):.2f}%"
    return draw.random.choice(_options(category, draw))


def _options(category: str, draw: Draw) -> Sequence[str]:
    """Return the values of a category that suit the person."""
    if category in _LISTS:
        values = draw.pools.lists[_LISTS[category]]
        if category == "Sexual Orientation" and draw.pronoun == "he":
            return [value for value in values if value != "lesbian"]
        return values
    options: Mapping[str, Sequence[str]] = {
        "Landmark": draw.city.landmarks,
        "Government Agency": draw.country.agencies,
        "Political Affiliation": draw.country.parties,
        "Occupation": list(draw.pools.occupations),
        "Education Level": list(draw.pools.education_levels),
        "Academic Degree": list(draw.pools.degrees),
        "Gender": [word for word, of in draw.pools.genders.items() if of == draw.pronoun],
    }
    return options[category]


def amount(draw: Draw, dollars: float) -> str:
    """Return an amount in the currency of the country, rounded to two or three digits."""
    local = dollars * draw.country.per_usd
    kept_digits = draw.random.choice((2, 2, 3))
    step = 10 ** max(len(str(int(local))) - kept_digits, 0)
    rounded = max(round(local / step) * step, step)
    return draw.country.currency.format(f"{rounded:,}")


# Phone numbers that the regulators reserve for fiction; `#` is any digit. For other
# countries, numbers start with 00, unlike all subscriber numbers in international form.
_FICTION_NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "United States": ("20255501##", "31255501##", "41555501##", "61755501##", "20655501##"),
    "Canada": ("41655501##", "60455501##", "51455501##", "90255501##"),
    "United Kingdom": ("2079460###", "1632960###", "1134960###", "1914980###", "1314960###"),
    "Ireland": ("020910####",),
    "Australia": ("025550####", "035550####", "075550####"),
    "Germany": ("3023125###", "6990009###", "8999998###"),
    "France": ("019900####", "026191####", "035301####", "046571####"),
    "Sweden": ("0313900###", "0406280###", "0980319###"),
}
_NO_SUBSCRIBER: Final = ("00########",)

# By facet, the first and the last year of an event.
_EVENT_YEARS: Final[Mapping[str, tuple[int, int]]] = {
    "job-start": (2012, 2025),
    "home-move": (2015, 2026),
    "operation": (2023, 2026),
    "exam": (2024, 2026),
    "document": (2016, 2026),
    "hearing": (2024, 2026),
    "accident": (2022, 2026),
    "course-end": (2009, 2026),
    "trip": (2024, 2026),
    "claim": (2024, 2026),
}

# By facet, the first and the last hour of a time.
_HOURS: Final[Mapping[str, tuple[int, int]]] = {
    "shift-start": (4, 22),
    "medication": (6, 22),
    "train": (5, 21),
    "appointment": (8, 18),
    "call": (7, 21),
    "incident": (0, 23),
    "waking": (4, 9),
    "class": (8, 20),
}

# By facet, the possible units, each with the least number and the end of the range.
_DURATIONS: Final[Mapping[str, tuple[tuple[str, int, int], ...]]] = {
    "commute": (("minutes", 25, 140), ("hours", 2, 4)),
    "in-post": (("days", 40, 3900),),
    "recovery": (("days", 12, 260),),
    "waiting": (("days", 14, 420),),
    "training": (("hours", 12, 320), ("days", 5, 90)),
    "sleep": (("hours", 4, 9), ("minutes", 250, 470)),
    "absence": (("days", 11, 180),),
    "session": (("minutes", 12, 95),),
}


_FACETS: Final[Mapping[str, tuple[str, ...]]] = {
    "Street Address": ("home", "mail"),
    "City/Region": ("home", "origin"),
    "Landmark": ("near-home", "meeting"),
    "Company Name": ("employer", "former", "client"),
    "Educational Institution": ("alumni", "current"),
    "Government Agency": ("case", "letter"),
    "NGO": ("volunteers", "supports", "helped-by"),
    "Healthcare Facility": ("patient", "referred"),
    "Date": tuple(_EVENT_YEARS),
    "Time": tuple(_HOURS),
    "Duration": tuple(_DURATIONS),
}


def facets_of(category: str) -> tuple[str, ...]:
    """Return the facets of a category; one empty facet if the category needs none."""
    return _FACETS.get(category, ("",))


def _full_name(draw: Draw, _: str) -> str:
    first, last = draw.pools.names(draw.culture, draw.pronoun)
    return f"{draw.random.choice(first)} {draw.random.choice(last)}"


def _street_address(draw: Draw, _: str) -> str:
    return draw.random.choice(draw.country.streets).format(n=draw.random.randrange(2, 190))


def _handle(draw: Draw, _: str) -> str:
    stem = draw.from_list("handle_stems")
    return f"@{stem}{draw.digits(draw.random.choice((2, 2, 3, 4)))}"[:16]


def _credit_card(draw: Draw, _: str) -> str:
    # No card network has numbers that start with 9.
    digits = "9" + draw.digits(14)
    (number,) = (digits + last for last in "0123456789" if luhn_holds(digits + last))
    return number


def _phone(draw: Draw, _: str) -> str:
    form = draw.random.choice(_FICTION_NUMBERS.get(draw.country.name, _NO_SUBSCRIBER))
    number = re.sub("#", lambda _: str(draw.random.randrange(10)), form)
    return f"{draw.country.phone}-{number}"


def _ip_address(draw: Draw, _: str) -> str:
    # The networks that RFC 3849 and RFC 5737 reserve for documentation.
    if draw.random.random() < 0.3:
        first, second, last = (draw.random.randrange(1, end) for end in (65536, 65536, 4096))
        return f"2001:db8:{first:x}:{second:x}::{last:x}"
    network = draw.random.choice(("192.0.2", "198.51.100", "203.0.113"))
    return f"{network}.{draw.random.randrange(1, 255)}"


def _email(draw: Draw, _: str) -> str:
    name = draw.from_list("handle_stems")
    number = str(draw.random.randrange(10, 99))
    second_name = draw.from_list("handle_stems")
    ending = draw.random.choice(("", number, f".{second_name}"))
    return f"{name}{ending}@{draw.from_list('domains')}"


def _social_security_number(draw: Draw, _: str) -> str:
    # The Social Security Administration does not issue numbers that start with 9.
    return f"9{draw.digits(2)}-{draw.random.randrange(10, 100)}-{draw.digits(4)}"


def _city(draw: Draw, facet: str) -> str:
    if facet == "home":
        return draw.city.name
    cities = {name for country in draw.pools.countries.values() for name in country.cities}
    return draw.random.choice(sorted(cities - {draw.city.name}))


def _university(draw: Draw, facet: str) -> str:
    if facet == "current" or draw.random.random() < 0.5:
        return draw.random.choice(draw.city.universities)
    city = draw.random.choice(sorted(draw.country.cities))
    return draw.random.choice(draw.country.cities[city].universities)


def _height(draw: Draw, _: str) -> str:
    mean = {"she": 165, "he": 178}.get(draw.pronoun, 171)
    centimetres = min(max(round(draw.random.gauss(mean, 7)), 148), 204)
    if draw.country.name == "United States":
        feet, inches = divmod(round(centimetres / 2.54), 12)
        return f"{feet}'{inches}\""
    return f"{centimetres} cm"


def _weight(draw: Draw, _: str) -> str:
    kilograms = min(max(round(draw.random.gauss(74, 13)), 46), 128)
    if draw.country.name == "United States":
        return f"{round(kilograms * 2.205)} lbs"
    return f"{kilograms} kg"


def _nationality(draw: Draw, _: str) -> str:
    if draw.culture in draw.pools.countries:
        return draw.pools.countries[draw.culture].nationality
    return draw.country.nationality


def _date(draw: Draw, facet: str) -> str:
    first, last = _EVENT_YEARS[facet]
    start = dt.date(first, 1, 1)
    # The texts are set in the summer of 2026, after every event.
    days = draw.random.randrange((dt.date(last, 6, 30) - start).days)
    return (start + dt.timedelta(days)).isoformat()


def _time(draw: Draw, facet: str) -> str:
    first, last = _HOURS[facet]
    hour = draw.random.randrange(first, last + 1)
    if facet == "incident":
        return f"{hour:02}:{draw.random.randrange(60):02}:{draw.random.randrange(60):02}"
    return f"{hour:02}:{draw.random.randrange(0, 60, 5):02}:00"


def _duration(draw: Draw, facet: str) -> str:
    unit, least, end = draw.random.choice(_DURATIONS[facet])
    return f"{draw.random.randrange(least, end)} {unit}"


_LISTS: Final[Mapping[str, str]] = {
    "Nickname": "nicknames",
    "Company Name": "companies",
    "NGO": "ngos",
    "Healthcare Facility": "hospitals",
    "Blood Type": "blood_types",
    "Ethnicity": "ethnicities",
    "Race": "races",
    "Religious Belief": "religions",
    "Physical Features": "physical_features",
    "Medical Condition": "medical_conditions",
    "Disability Status": "disabilities",
    "Sexual Orientation": "orientations",
}
"""Category to the list of the pools that contains its values."""

_CODES: Final[Mapping[str, tuple[int, int]]] = {
    "Driver's License": (1, 8),
    "Passport Number": (1, 8),
    "Tax ID": (0, 9),
    "Employee ID": (2, 6),
    "Student ID": (0, 8),
}
"""Category to the number of letters and of digits after them."""

_INCOME_SHARES: Final[Mapping[str, tuple[float, float]]] = {
    "Monthly Income": (0.8, 1.2),
    "Monthly Expenses": (0.4, 1.1),
    "Account Balance": (0.2, 9.0),
    "Loan Amount": (1.5, 40.0),
    "Annual Bonus": (0.2, 2.5),
    "Credit Limit": (0.5, 4.0),
    "Social Security Payment": (0.25, 0.6),
    "Tax Payment": (0.3, 3.6),
}
"""Category to the least and the greatest amount, in monthly incomes."""

_PERCENTAGES: Final[Mapping[str, tuple[float, float]]] = {
    "Debt Ratio": (6, 68),
    "Investment Return": (0.8, 13),
    "ROI": (2, 64),
}
"""Category to the least and the greatest percentage."""

_DRAWERS: Final[Mapping[str, Callable[[Draw, str], str]]] = {
    "Full Name": _full_name,
    "Social Media Handle": _handle,
    "Social Security Number": _social_security_number,
    "Bank Account": lambda draw, _: draw.digits(draw.random.choice((10, 11, 12))),
    "Credit Card": _credit_card,
    "Phone Number": _phone,
    "IP Address": _ip_address,
    "Email Address": _email,
    "Password Hash": lambda draw, _: sha256(draw.random.randbytes(16)).hexdigest(),
    "Street Address": _street_address,
    "City/Region": _city,
    "Educational Institution": _university,
    "Age": lambda draw, _: str(draw.random.randrange(18, 84)),
    "Height": _height,
    "Weight": _weight,
    "Nationality": _nationality,
    "Date": _date,
    "Time": _time,
    "Duration": _duration,
    "Credit Score": lambda draw, _: str(draw.random.randrange(480, 845)),
}
"""Other categories to the function that draws a value, given the facet."""
