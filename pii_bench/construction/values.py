"""Drawing values of facts, in the taxonomy's formats and in ranges that belong to no person."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from pii_bench.construction.pools import City, Country, Pools


@dataclass(frozen=True, slots=True)
class Draw:
    """The context that the values of a person depend on.

    Attributes:
        country: of the home, whether or not the text says so; likewise `city`.
        pronoun: `she`, `he` or `they`.
        income: gross monthly pay in US dollars, around which amounts lie.
        culture: of the name; it need not be that of the home.
    """

    random: Random
    pools: Pools
    country: Country
    city: City
    pronoun: str
    culture: str
    income: float

    def one(self, name: str) -> str:
        """Draw a member of a list of the pools."""
        return self.random.choice(self.pools.lists[name])

    def digits(self, count: int) -> str:
        """Draw random digits that do not start with 0."""
        return str(self.random.randrange(10 ** (count - 1), 10**count))

    def letter(self) -> str:
        """Draw a capital letter that cannot be mistaken for a digit."""
        return self.random.choice("ABCDEFGHJKLMNPRSTVWXYZ")


def draw_value(category: str, facet: str, draw: Draw) -> str:
    """Draw a value of a category; the same state of `draw.random` gives the same value."""
    return _VALUES[category](draw, facet)


def amount(draw: Draw, dollars: float) -> str:
    """Return an amount of dollars in the currency of the country, rounded as people do."""
    local = dollars * draw.country.per_usd
    step = 10 ** max(len(str(int(local))) - draw.random.choice((2, 2, 3)), 0)
    return draw.country.currency.format(f"{max(round(local / step) * step, step):,}")


# Numbers set aside for fiction by the regulators; `#` is a digit. Elsewhere a number
# starts in 00, which no subscriber's number does in international form.
_FICTION_NUMBERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "United States": ("20255501##", "31255501##", "41555501##", "61755501##", "20655501##"),
        "Canada": ("41655501##", "60455501##", "51455501##", "90255501##"),
        "United Kingdom": ("2079460###", "1632960###", "1134960###", "1914980###", "1314960###"),
        "Ireland": ("020910####",),
        "Australia": ("025550####", "035550####", "075550####"),
        "Germany": ("3023125###", "6990009###", "8999998###"),
        "France": ("019900####", "026191####", "035301####", "046571####"),
        "Sweden": ("0313900###", "0406280###", "0980319###"),
    }
)
_NO_SUBSCRIBER: Final = ("00########",)

_EVENT_YEARS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
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
)

_HOURS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "shift-start": (4, 22),
        "medication": (6, 22),
        "train": (5, 21),
        "appointment": (8, 18),
        "call": (7, 21),
        "incident": (0, 23),
        "waking": (4, 9),
        "class": (8, 20),
    }
)

_DURATIONS: Final[Mapping[str, tuple[tuple[str, int, int], ...]]] = MappingProxyType(
    {
        "commute": (("minutes", 25, 140), ("hours", 2, 4)),
        "in-post": (("days", 40, 3900),),
        "recovery": (("days", 12, 260),),
        "waiting": (("days", 14, 420),),
        "training": (("hours", 12, 320), ("days", 5, 90)),
        "sleep": (("hours", 4, 9), ("minutes", 250, 470)),
        "absence": (("days", 11, 180),),
        "session": (("minutes", 12, 95),),
    }
)


_FACETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
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
)


def facets_of(category: str) -> tuple[str, ...]:
    """Return the facets of a category; one empty facet if the category needs none."""
    return _FACETS.get(category, ("",))


def _full_name(draw: Draw, _: str) -> str:
    first, last = draw.pools.names(draw.culture, draw.pronoun)
    return f"{draw.random.choice(first)} {draw.random.choice(last)}"


def _handle(draw: Draw, _: str) -> str:
    stem = draw.one("handle_stems")
    return f"@{stem}{draw.digits(draw.random.choice((2, 2, 3, 4)))}"[:16]


def _credit_card(draw: Draw, _: str) -> str:
    # 9 is not issued to card networks; the last digit is Luhn's.
    head = "9" + draw.digits(14)
    doubled = [int(d) * (2 - n % 2) for n, d in enumerate(head)]
    return head + str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def _phone(draw: Draw, _: str) -> str:
    patterns = _FICTION_NUMBERS.get(draw.country.name, _NO_SUBSCRIBER)
    pattern = draw.random.choice(patterns)
    number = "".join(str(draw.random.randrange(10)) if c == "#" else c for c in pattern)
    return f"{draw.country.phone}-{number}"


def _ip_address(draw: Draw, _: str) -> str:
    if draw.random.random() < 0.3:
        return (
            "2001:db8:"
            + ":".join(f"{draw.random.randrange(1, 65536):x}" for _ in range(2))
            + (f"::{draw.random.randrange(1, 4096):x}")
        )
    net = draw.random.choice(("192.0.2", "198.51.100", "203.0.113"))
    return f"{net}.{draw.random.randrange(1, 255)}"


def _email(draw: Draw, _: str) -> str:
    local = draw.one("handle_stems") + draw.random.choice(
        ("", str(draw.random.randrange(10, 99)), "." + draw.one("handle_stems"))
    )
    return f"{local}@{draw.one('domains')}"


def _social_security_number(draw: Draw, _: str) -> str:
    # Areas 900 to 999 are never issued.
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
    centre = {"she": 165, "he": 178}.get(draw.pronoun, 171)
    centimetres = min(max(round(draw.random.gauss(centre, 7)), 148), 204)
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


def _orientation(draw: Draw, _: str) -> str:
    allowed = [
        word
        for word in draw.pools.lists["orientations"]
        if word != "lesbian" or draw.pronoun != "he"
    ]
    return draw.random.choice(allowed)


def _gender(draw: Draw, _: str) -> str:
    return draw.random.choice(
        [word for word, pronoun in draw.pools.genders.items() if pronoun == draw.pronoun]
    )


def _date(draw: Draw, facet: str) -> str:
    first, last = _EVENT_YEARS[facet]
    start = dt.date(first, 1, 1)
    # The data is of the summer of 2026, and every event lies behind it.
    end = dt.date(last, 6, 30)
    return (start + dt.timedelta(draw.random.randrange((end - start).days))).isoformat()


def _time(draw: Draw, facet: str) -> str:
    first, last = _HOURS[facet]
    hour = draw.random.randrange(first, last + 1)
    if facet == "incident":
        return f"{hour:02}:{draw.random.randrange(60):02}:{draw.random.randrange(60):02}"
    return f"{hour:02}:{draw.random.randrange(0, 60, 5):02}:00"


def _duration(draw: Draw, facet: str) -> str:
    unit, low, high = draw.random.choice(_DURATIONS[facet])
    return f"{draw.random.randrange(low, high)} {unit}"


def _of_income(low: float, high: float) -> Callable[[Draw, str], str]:
    def value(draw: Draw, _: str) -> str:
        return amount(draw, draw.income * draw.random.uniform(low, high))

    return value


def _percentage(low: float, high: float) -> Callable[[Draw, str], str]:
    def value(draw: Draw, _: str) -> str:
        return f"{draw.random.uniform(low, high):.2f}%"

    return value


def _listed(name: str) -> Callable[[Draw, str], str]:
    return lambda draw, _: draw.one(name)


_VALUES: Final[Mapping[str, Callable[[Draw, str], str]]] = MappingProxyType(
    {
        "Full Name": _full_name,
        "Social Media Handle": _handle,
        "Nickname": _listed("nicknames"),
        "Social Security Number": _social_security_number,
        "Driver's License": lambda draw, _: draw.letter() + draw.digits(8),
        "Bank Account": lambda draw, _: draw.digits(draw.random.choice((10, 11, 12))),
        "Credit Card": _credit_card,
        "Phone Number": _phone,
        "IP Address": _ip_address,
        "Email Address": _email,
        "Password Hash": lambda draw, _: sha256(draw.random.randbytes(16)).hexdigest(),
        "Passport Number": lambda draw, _: draw.letter() + draw.digits(8),
        "Tax ID": lambda draw, _: draw.digits(9),
        "Employee ID": lambda draw, _: draw.letter() + draw.letter() + draw.digits(6),
        "Student ID": lambda draw, _: draw.digits(8),
        "Street Address": lambda draw, _: draw.random.choice(draw.country.streets).format(
            n=draw.random.randrange(2, 190)
        ),
        "City/Region": _city,
        "Landmark": lambda draw, _: draw.random.choice(draw.city.landmarks),
        "Company Name": _listed("companies"),
        "Educational Institution": _university,
        "Government Agency": lambda draw, _: draw.random.choice(draw.country.agencies),
        "NGO": _listed("ngos"),
        "Healthcare Facility": _listed("hospitals"),
        "Occupation": lambda draw, _: draw.random.choice(list(draw.pools.occupations)),
        "Age": lambda draw, _: str(draw.random.randrange(18, 84)),
        "Gender": _gender,
        "Height": _height,
        "Weight": _weight,
        "Blood Type": _listed("blood_types"),
        "Sexual Orientation": _orientation,
        "Nationality": _nationality,
        "Ethnicity": _listed("ethnicities"),
        "Race": _listed("races"),
        "Religious Belief": _listed("religions"),
        "Political Affiliation": lambda draw, _: draw.random.choice(draw.country.parties),
        "Education Level": lambda draw, _: draw.random.choice(list(draw.pools.education_levels)),
        "Academic Degree": lambda draw, _: draw.random.choice(list(draw.pools.degrees)),
        "Physical Features": _listed("physical_features"),
        "Medical Condition": _listed("medical_conditions"),
        "Disability Status": _listed("disabilities"),
        "Date": _date,
        "Time": _time,
        "Duration": _duration,
        "Monthly Income": _of_income(0.8, 1.2),
        "Monthly Expenses": _of_income(0.4, 1.1),
        "Account Balance": _of_income(0.2, 9.0),
        "Loan Amount": _of_income(1.5, 40.0),
        "Annual Bonus": _of_income(0.2, 2.5),
        "Credit Limit": _of_income(0.5, 4.0),
        "Social Security Payment": _of_income(0.25, 0.6),
        "Tax Payment": _of_income(0.3, 3.6),
        "Debt Ratio": _percentage(6, 68),
        "Investment Return": _percentage(0.8, 13),
        "ROI": _percentage(2, 64),
        "Credit Score": lambda draw, _: str(draw.random.randrange(480, 845)),
    }
)
