from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.value_formats import (
    FORMATS,
    Amount,
    Rank,
    fits,
    luhn_holds,
    parse_amount,
    parse_days,
    parse_kilograms,
    parse_metres,
    parse_percentage,
    parse_rank,
)
from pii_bench.taxonomy import TYPE_OF_CATEGORY

if TYPE_CHECKING:
    from collections.abc import Callable


# The example of the standard, and a common test card.
@pytest.mark.parametrize("digits", ["79927398713", "4111111111111111"])
def test_luhn_accepts_only_the_right_check_digit(digits: str) -> None:
    assert luhn_holds(digits)
    assert not luhn_holds(digits[:-1] + str((int(digits[-1]) + 1) % 10))


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_amount, "$2,180", Amount("$", 2180)),
        (parse_amount, "$950", Amount("$", 950)),
        (parse_amount, "£6,812.50", Amount("£", 6812.5)),
        (parse_amount, "€4500", Amount("€", 4500)),
        (parse_amount, "SEK 31,000", Amount("SEK", 31000)),
        (parse_amount, "1,200 kr", Amount("kr", 1200)),
        (parse_amount, "R$ 4,300", Amount("R$", 4300)),
        (parse_amount, "US$1,000,000", Amount("US$", 1_000_000)),
        (parse_amount, "R 12,000", Amount("R", 12000)),
        (parse_amount, "₹1,20,000", Amount("₹", 120_000)),
        (parse_percentage, "18.40%", 18.4),
        (parse_percentage, "−3.10%", -3.1),
        (parse_days, "41 days", 41),
        (parse_days, "180d", 180),
        (parse_days, "36 hours", 1.5),
        (parse_days, "720 minutes", 0.5),
        (parse_days, "43200 s", 0.5),
        (parse_metres, "193 cm", 1.93),
        (parse_metres, "5'10\"", pytest.approx(1.778)),
        (parse_metres, "5 ft 10 in", pytest.approx(1.778)),
        (parse_kilograms, "74 kg", 74),
        (parse_kilograms, "200 lbs", pytest.approx(90.72, abs=0.01)),
        (parse_rank, "PhD in Linguistics", Rank.DOCTOR),
        (parse_rank, "doctorate", Rank.DOCTOR),
        (parse_rank, "MSc in geomatics", Rank.MASTER),
        (parse_rank, "Master of Laws", Rank.MASTER),
        (parse_rank, "master's level", Rank.MASTER),
        (parse_rank, "BA in Russian", Rank.BACHELOR),
        (parse_rank, "bachelor's degree", Rank.BACHELOR),
        (parse_rank, "A-levels", Rank.BELOW_DEGREE),
        (parse_rank, "vocational certificate", Rank.BELOW_DEGREE),
    ],
)
def test_values_are_parsed(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "texts"),
    [
        (parse_amount, ["2,180", "$", "$2,18", "$1,2345", "R2", "ISO 9001", "$5%", "$-5"]),
        (parse_percentage, ["18.4%"]),
        (parse_days, ["two days", "3 weeks", "days", "1.5 days"]),
        (parse_metres, ["5'12\"", "1.93 m"]),
        (parse_kilograms, ["11 stone"]),
        (parse_rank, ["diploma in drama", ""]),
    ],
)
def test_other_texts_are_not_parsed(parse: Callable[[str], object], texts: list[str]) -> None:
    assert [text for text in texts if parse(text) is not None] == []


GOOD = {
    "Full Name": [
        "Thảo Đặng",
        "Soo-ah Whitlock",
        "Ludwig van Tongeren",
        "Ọmọ́ládé Òní",
        "Ed O'Hara",
    ],
    "Social Media Handle": ["@moss7", "@abcdefghijklmno"],
    "Nickname": ["小满", "Captain Fig"],
    "Social Security Number": ["666-31-0847"],
    "Driver's License": ["P40918273"],
    "Bank Account": ["4471902836", "208844731906"],
    "Credit Card": ["4988438843884305", "4111111111111111"],
    "Phone Number": ["+1-9025550147", "+353-0209101234", "(902) 555-0147", "+46 31 390 06 00"],
    "IP Address": ["203.0.113.146", "2001:db8:6c:41::9e"],
    "Email Address": ["a.b+c@mail.tidewrack.example"],
    "Password Hash": ["0a" * 32],
    "Tax ID": ["948217306"],
    "Employee ID": ["CF118240"],
    "Student ID": ["20417735"],
    "Age": ["0", "9", "32", "100", "120"],
    "Gender": ["non-binary", "Woman"],
    "Height": ["193 cm", "5'8\"", "1.93 m", "5 ft 6", "five foot six", "six feet"],
    "Weight": ["74 kg", "150 lbs", "64 kilos", "10 st 4", "a hundred and fifty pounds"],
    "Blood Type": ["B+", "AB-", "O−"],
    "Sexual Orientation": ["gay"],
    "Occupation": ["lift engineer"],
    "Date": [
        *("2024-02-29", "3 March 2024", "March 3rd", "3rd of March 2024", "Tuesday 4 March"),
        *("29/02/2024", "3.4.2021", "May 2019", "12 May"),
    ],
    "Time": [
        *("00:00:00", "23:59:59", "9:40", "8:30 pm", "quarter past nine", "half seven", "noon"),
        *("0715", "nine o'clock", "ten to six", "six thirty", "five in the morning"),
    ],
    "Duration": [
        *("41 days", "180d", "six weeks", "two and a half years", "1 h 45 min", "half an hour"),
        *("fortnight", "two years and three months", "seven working days"),
    ],
    "Monthly Income": [
        *("£3,480", "four thousand two hundred euros", "€4.200,50", "$52k", "1 250 kr"),
        *("45,000 rupees", "1.2 million pesos"),
    ],
    "ROI": ["14.25%"],
    "Credit Score": ["300", "688", "850"],
}

BAD = {
    "Full Name": ["Ann", "Ann  Lee", "Ann Lee2", "@ann lee", " Ann Lee"],
    "Social Media Handle": ["moss77", "@moss", "@abcdefghijklmnop", "@mo_ss7"],
    "Nickname": ["", "two\nlines", " Moss"],
    "Social Security Number": ["666310847", "66-631-0847"],
    "Driver's License": ["p40918273", "P4091827"],
    "Bank Account": ["447190283", "2088447319061", "44719028x6"],
    "Credit Card": ["4988438843884306", "498843884388430", "4988 4388 4388 4305"],
    "Phone Number": ["902555", "+1 902 call 5550147", "902-555-0147-0147-0147"],
    "IP Address": ["203.0.113.256", "2001:db8::1::2", "fe80::1%eth0"],
    "Email Address": ["a@b", "a b@c.example", "@c.example"],
    "Password Hash": ["0a" * 31, "0g" * 32],
    "Passport Number": ["40918273"],
    "Tax ID": ["94821730"],
    "Employee ID": ["C1182401"],
    "Student ID": ["204177350"],
    "Age": ["032", "121", "thirty", "32 years"],
    "Gender": ["potter"],
    "Height": ["19 cm", "3.93 m", "tall"],
    "Weight": ["7 kg", "74"],
    "Blood Type": ["C+", "A"],
    "Sexual Orientation": ["left-handed"],
    "Date": ["2023-02-29", "20240229", "32/02/2024", "2024-W09-4", "Smarch 4", "in May"],
    "Time": ["24:00:00", "09:60", "25:10", "9:40:61", "half an hour", "soon"],
    "Duration": ["two", "weeks", "5 parsecs", "long"],
    "Tax Payment": ["5,225", "dollars", "five", "$"],
    "Debt Ratio": ["18.4%", "18.40"],
    "Credit Score": ["299", "851", "88"],
}


@pytest.mark.parametrize(
    ("category", "text"), [(name, text) for name, texts in GOOD.items() for text in texts]
)
def test_a_category_accepts_its_formats(category: str, text: str) -> None:
    assert fits(text, category)


@pytest.mark.parametrize(
    ("category", "text"), [(name, text) for name, texts in BAD.items() for text in texts]
)
def test_a_category_refuses_other_texts(category: str, text: str) -> None:
    assert not fits(text, category)


def test_formats_belong_to_known_categories() -> None:
    assert set(FORMATS) <= set(TYPE_OF_CATEGORY)
