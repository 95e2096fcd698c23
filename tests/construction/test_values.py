from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.pools import City, Country, load_pools
from pii_bench.construction.values import Draw, amount, draw_value, facets_of
from pii_bench.datasets.value_formats import fits, luhn_holds
from pii_bench.taxonomy import TYPE_OF_CATEGORY

if TYPE_CHECKING:
    from collections.abc import Iterator

POOLS = load_pools("test")
PLACES = [
    (country, city) for country in POOLS.countries.values() for city in country.cities.values()
]


def draw_in(place: tuple[Country, City], seed: int = 1, pronoun: str = "she") -> Draw:
    return Draw(Random(seed), POOLS, *place, pronoun, "japanese", income=3000.0)


def draw_in_country(name: str, seed: int = 1) -> Draw:
    return draw_in(next(place for place in PLACES if place[0].name == name), seed)


def drawn(category: str) -> Iterator[tuple[Draw, str]]:
    """Yield values of every facet for people in every city, with the draw of each."""
    for seed in range(4):
        for number, place in enumerate(PLACES):
            pronoun = ("she", "he", "they")[number % 3]
            draw = draw_in(place, seed * len(PLACES) + number, pronoun)
            for facet in facets_of(category):
                yield draw, draw_value(category, facet, draw)


@pytest.mark.parametrize("category", TYPE_OF_CATEGORY)
def test_values_have_the_format_of_their_category(category: str) -> None:
    assert not [value for _, value in drawn(category) if not fits(value, category)]


def test_card_numbers_have_a_valid_check_digit_and_belong_to_no_network() -> None:
    for _, card in drawn("Credit Card"):
        assert card.startswith("9")
        assert luhn_holds(card)


def test_phone_numbers_are_reserved_for_fiction_or_have_no_subscriber() -> None:
    # ComReg, Ofcom, ACMA, ARCEP, Bundesnetzagentur, PTS and the North American plan.
    fiction = {
        "United States": r"\+1-\d{3}55501\d\d",
        "Canada": r"\+1-\d{3}55501\d\d",
        "United Kingdom": r"\+44-(2079460|1632960|1134960|1914980|1314960)\d{3}",
        "Ireland": r"\+353-020910\d{4}",
        "Australia": r"\+61-0[2357]5550\d{4}",
        "Germany": r"\+49-(3023125|6990009|8999998)\d{3}",
        "France": r"\+33-0(19900|26191|35301|46571)\d{4}",
        "Sweden": r"\+46-0(313900|406280|980319)\d{3}",
    }
    for draw, phone in drawn("Phone Number"):
        pattern = fiction.get(draw.country.name, re.escape(draw.country.phone) + r"-0\d{9}")
        assert re.fullmatch(pattern, phone), phone


def test_ip_addresses_are_reserved_for_documentation() -> None:
    networks = [
        ipaddress.ip_network(network)
        for network in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
    ]
    for _, value in drawn("IP Address"):
        assert any(ipaddress.ip_address(value) in network for network in networks), value


def test_domains_of_email_addresses_are_reserved() -> None:
    for _, address in drawn("Email Address"):
        domain = address.partition("@")[2]
        assert re.fullmatch(r"(.+\.)?(example|test|example\.(com|net|org))", domain), domain


def test_social_security_numbers_are_never_issued() -> None:
    assert all(value.startswith("9") for _, value in drawn("Social Security Number"))


def test_dates_are_before_the_summer_of_2026() -> None:
    for _, date in drawn("Date"):
        assert "2009-01-01" <= date < "2026-07-01"


def test_values_about_the_home_exist_there() -> None:
    for place in PLACES:
        country, city = place
        for category, facet, allowed in (
            ("City/Region", "home", (city.name,)),
            ("Landmark", "near-home", city.landmarks),
            ("Government Agency", "case", country.agencies),
            ("Political Affiliation", "", country.parties),
            ("Educational Institution", "current", city.universities),
            ("Street Address", "home", country.streets),
        ):
            value = draw_value(category, facet, draw_in(place))
            assert re.sub(r"\d+", "{n}", value) in allowed


def test_the_city_of_origin_is_not_the_home() -> None:
    for place in PLACES:
        assert draw_value("City/Region", "origin", draw_in(place)) != place[1].name


def test_the_nationality_is_that_of_the_name_s_country_or_else_of_the_home() -> None:
    swede = draw_in_country("Sweden")
    assert draw_value("Nationality", "", swede) == "Swedish"
    assert draw_value("Nationality", "", replace(swede, culture="Poland")) == "Polish"


def test_gender_and_orientation_fit_the_pronoun_of_the_person() -> None:
    assert all(draw.pools.genders[value] == draw.pronoun for draw, value in drawn("Gender"))
    for draw, value in drawn("Sexual Orientation"):
        assert draw.pronoun != "he" or value != "lesbian"


def test_americans_measure_in_feet_and_pounds() -> None:
    for draw, value in drawn("Height"):
        assert ("'" in value) == (draw.country.name == "United States")
    for draw, value in drawn("Weight"):
        assert value.endswith("lbs") == (draw.country.name == "United States")


@pytest.mark.parametrize(
    ("country", "dollars", "allowed"),
    [
        ("United States", 2184.0, {"$2,200", "$2,180"}),
        ("United States", 14_650.0, {"$15,000", "$14,600"}),
        ("United Kingdom", 0.1, {"£1"}),
    ],
)
def test_amounts_are_rounded_to_two_or_three_digits(
    country: str, dollars: float, allowed: set[str]
) -> None:
    assert {amount(draw_in_country(country, seed), dollars) for seed in range(30)} <= allowed


def test_amounts_follow_income() -> None:
    for seed in range(50):
        income = draw_value("Monthly Income", "", draw_in_country("United States", seed))
        # The income is 3,000 dollars; 0.8 to 1.2 times that, rounded to two or three digits.
        assert 2400 <= int(income.removeprefix("$").replace(",", "")) <= 3600
