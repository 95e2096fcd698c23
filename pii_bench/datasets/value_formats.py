"""Formats of the values of each category, and parsers of values.

The paper's table of 55 categories gives one format for dates, times, durations, amounts and
measures. English texts use many others, which are accepted too. Categories without a format
accept any single line of text.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pii_bench.scorer.writings import MONTH_NAMES, NUMBER_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Predicate = Callable[[str], bool]


def luhn_holds(digits: str) -> bool:
    """Return whether the last digit is the check digit of Luhn's formula (ISO/IEC 7812-1)."""
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_ip_address(text: str) -> bool:
    """Return whether a text is an IPv4 or IPv6 address without a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    # A zone ("fe80::1%eth0") is local to one machine and not part of the address.
    return "%" not in text


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money; `currency` is the sign or code as written."""

    currency: str
    value: float


class Rank(IntEnum):
    """Level of education, in order."""

    BELOW_DEGREE = 0
    BACHELOR = 1
    MASTER = 2
    DOCTOR = 3


_CODES: Final = (
    "AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|ETB|EUR|GBP|GHS|HKD|HUF|IDR|ILS|INR|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|UGX|USD|VND|"
    "ZAR|Ksh|KSh|TSh|USh|Rp|Rs\\.?|kr\\.?|zł|Fr\\."
)
_SIGN: Final = r"[$£€¥₣₤₦₩₪₫₱₲₴₵₸₹₺₽]"
# Digits grouped by thousands or as in India ("1,20,000").
_GROUPED: Final = r"\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)"
_DIGITS: Final = rf"(?:{_GROUPED}|\d+)(?:\.\d{{1,2}})?(?![\d%])"
# A plain R is a currency only before grouped digits: "R2" is a room.
AMOUNT: Final = re.compile(
    rf"(?<!\w)(?:(?P<before>[A-Z]{{0,3}}{_SIGN}|{_CODES}|R(?= ?{_GROUPED})) ?(?P<first>{_DIGITS})"
    rf"|(?P<second>{_DIGITS}) ?(?P<after>{_SIGN}|(?:{_CODES})(?!\w)))"
)
_DURATION: Final = re.compile(r"(\d+) ?(d|days?|h|hours?|m|min|minutes?|s|sec|seconds?)", re.ASCII)
_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}

_CENTIMETRES: Final = re.compile(r"(\d{3}) ?cm", re.ASCII)
_FEET: Final = re.compile(r"([2-8])(?:['′’] ?| ?ft ?| feet ?)(\d|1[01])(?:[\"″”]| ?in| inches)?")
_WEIGHT: Final = re.compile(r"(\d{2,3}) ?(?:(kg)|lbs?)", re.ASCII)
_KILOGRAMS_A_POUND: Final = 0.453_592_37
_METRES_AN_INCH: Final = 0.0254

# From the highest. Abbreviations are case-sensitive ("MA" is not the end of "drama").
_RANKS: Final = {
    Rank.DOCTOR: r"\b(?:Ph\.?D|D\.?Phil|MD|EdD|DSc|DBA|(?i:doctora(?:te|l)|doctor of))\b",
    Rank.MASTER: (
        r"\b(?:MSc|MA|MS|MBA|MEng|MPhil|MRes|MEd|MFA|MPH|MPA|MSW|MArch|MMus|LLM"
        r"|(?i:master(?:['’]?s| of)))\b"
    ),
    Rank.BACHELOR: (
        r"\b(?:BSc|BA|BS|BEng|BEd|BFA|BBA|BCom|BMus|BArch|BTech|BSN|LLB"
        r"|(?i:bachelor(?:['’]?s| of)))\b"
    ),
    Rank.BELOW_DEGREE: (
        r"\b(?:GCSEs?|GED|A-levels?|O-levels?|(?i:(?:primary|elementary|middle|secondary|high)"
        r" school|vocational|apprenticeship|some college|no (?:formal )?(?:schooling|degree)))\b"
    ),
}


def parse_amount(text: str) -> Amount | None:
    """Parse money: "$2,180" is 2180 in "$"."""
    match = AMOUNT.fullmatch(text)
    if match is None:
        return None
    digits = match["first"] or match["second"]
    return Amount(match["before"] or match["after"], float(digits.replace(",", "")))


def parse_percentage(text: str) -> float | None:
    """Parse a percentage with two decimals: "6.85%" is 6.85."""
    if re.fullmatch(r"[-−+]?\d+\.\d{2}%", text) is None:
        return None
    return float(text[:-1].replace("−", "-"))


def parse_days(text: str) -> float | None:
    """Parse a duration in days: "36 hours" is 1.5."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * _SECONDS[match[2][0]] / _SECONDS["d"]


def parse_metres(text: str) -> float | None:
    """Parse a height in metres, from centimetres or from feet and inches."""
    if match := _CENTIMETRES.fullmatch(text):
        return int(match[1]) / 100
    if match := _FEET.fullmatch(text):
        return (int(match[1]) * 12 + int(match[2])) * _METRES_AN_INCH
    return None


def parse_kilograms(text: str) -> float | None:
    """Parse a weight in kilograms, from kilograms or pounds."""
    match = _WEIGHT.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * (1 if match[2] else _KILOGRAMS_A_POUND)


def parse_rank(text: str) -> Rank | None:
    """Return the highest level of education that a text names; None if it names none."""
    return next((rank for rank, pattern in _RANKS.items() if re.search(pattern, text)), None)


def _like(*patterns: str, flags: int = re.ASCII) -> Predicate:
    compiled = [re.compile(pattern, flags) for pattern in patterns]
    return lambda text: any(pattern.fullmatch(text) for pattern in compiled)


_ONES: Final = "|".join(word for word in NUMBER_VALUES if word != "zero")
_NUMBER_WORD: Final = rf"(?:{_ONES}|zero|hundred|thousand|lakh|crore|million|half|quarter|dozen)"
# "four thousand two hundred", "twenty-five", "a hundred and fifty", "two and a half"
_IN_WORDS: Final = rf"(?:an? )?{_NUMBER_WORD}(?:(?:[ -]|,? and (?:a )?){_NUMBER_WORD})*"
# "4,200", "4.200,50", "4 200", "1,20,000", "2½"
_IN_DIGITS: Final = r"\d+(?:[.,  '’]\d{2,3})*(?:[.,]\d{1,2})?[½¼¾]?"
_NUMBER: Final = rf"(?:{_IN_DIGITS}|{_IN_WORDS})"

_WEEKDAYS: Final = (
    "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Mon|Tues?|Wed|Thurs?|Thu|Fri|Sat|Sun"
)
_ORDINALS: Final = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth"
    "|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
    "|twenty-(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|thirty-first"
)
_DAY: Final = rf"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|{_ORDINALS})"
_YEAR: Final = r"(?:(?:19|20)\d{2}|['’]\d{2})"

# A day, or a month with its year, such as "3 March 2024", "March 3rd", "03/04/2021", "May 2019".
_FREE_DATE: Final = _like(
    rf"(?:(?:{_WEEKDAYS})\.?,? )?{_DAY}(?: of)?[ -](?:{MONTH_NAMES})\.?(?:,?[ -]{_YEAR})?",
    rf"(?:(?:{_WEEKDAYS})\.?,? )?(?:{MONTH_NAMES})\.?[ -]{_DAY}(?:,?[ -]{_YEAR})?",
    rf"(?:{MONTH_NAMES})\.? (?:of )?{_YEAR}",
    r"(?:0?[1-9]|[12]\d|3[01])([./-])(?:0?[1-9]|1[0-2])\1(?:(?:19|20)\d{2}|\d{2})",
    r"(?:0?[1-9]|1[0-2])([/-])(?:0?[1-9]|[12]\d|3[01])\1(?:(?:19|20)\d{2}|\d{2})",
    r"(?:19|20)\d{2}([./])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])",
    flags=re.IGNORECASE,
)

_HOUR_WORD: Final = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight|1[0-2]|[1-9]"
)
_MINUTE_WORD: Final = (
    "five|ten|quarter|a quarter|twenty|twenty-five|twenty five|half|5|10|20|25"
    "|(?:\\d{1,2}|[a-z-]+) minutes?"
)
_PART_OF_DAY: Final = (
    "(?: ?[ap]\\.?m\\.?| o['’]clock| in the (?:morning|afternoon|evening)| at night| hours"
    "| hrs| ?h|h)"
)
_PAST_HOUR: Final = (
    "oh[ -]five|fifteen|thirty|forty|forty-five|twenty|ten|fifty|twenty-five|thirty-five|fifty-five"
)
# A time of day, such as "8:30 pm", "20:30", "quarter past nine", "half seven", "noon".
_FREE_TIME: Final = _like(
    rf"(?:[01]?\d|2[0-3])[:.h][0-5]\d(?::[0-5]\d)?{_PART_OF_DAY}?",
    r"(?:[01]\d|2[0-3])[0-5]\d(?: ?(?:hours|hrs|h))?",
    rf"(?:1[0-2]|[1-9]|{_HOUR_WORD}){_PART_OF_DAY}(?: in the (?:morning|afternoon|evening))?",
    rf"(?:{_MINUTE_WORD}) (?:past|to|after|before|of|till) (?:{_HOUR_WORD}){_PART_OF_DAY}?",
    rf"half (?:{_HOUR_WORD}){_PART_OF_DAY}?",
    rf"(?:{_HOUR_WORD})[ -](?:{_PAST_HOUR}){_PART_OF_DAY}?",
    r"noon|midnight",
    flags=re.IGNORECASE,
)

_UNIT: Final = (
    r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|fortnights?|months?|years?"
    r"|yrs?|decades?|s|m|h|d|wks?|mos?)"
)
_SPAN_OF_TIME: Final = (
    rf"(?:(?:{_NUMBER}|an?)[ -]?(?:working |calendar |school |full |whole )?{_UNIT})"
)
# A duration, such as "six weeks", "two and a half years", "1 h 45 min", "half an hour".
_FREE_DURATION: Final = _like(
    rf"{_SPAN_OF_TIME}(?:(?:,| and|, and)? {_SPAN_OF_TIME})*",
    rf"{_NUMBER} {_UNIT} and (?:a (?:half|quarter|bit)|three quarters)",
    rf"(?:half|quarter of|three quarters of) an? {_UNIT}",
    rf"{_UNIT} and a (?:half|quarter)",
    r"fortnight|decade",
    flags=re.IGNORECASE,
)

_CURRENCY_WORD: Final = (
    r"(?:(?:US|Canadian|Australian|Singapore|Hong Kong|New Zealand|Taiwan) )?"
    r"(?:dollars?|bucks|euros?|pounds?|quid|cents?|yen|yuan|renminbi|won|rupees?|rupiah|ringgit"
    r"|baht|dong|pesos?|soles|sol|reais|real|rand|naira|cedis?|birr|dirhams?|dinars?|riyals?"
    r"|shekels?|lira|zloty|zlotys|złoty|złotych|kronor|kroner|krona|krone|koruna|korun|forint"
    r"|francs?|lei|leu|hryvnias?|roubles?|rubles?|shillings?|takas?|k|grand)"
)
_CURRENCY_SIGN: Final = (
    r"(?:[A-Z]{0,3}[$£€¥₣₤₦₩₪₫₱₲₴₵₸₹₺₽]|[A-Z]{3}|Ksh|KSh|TSh|USh|Rp|Rs\.?|R|S/|E£|kr\.?|Kč|Fr\.?)"
)
_SCALE: Final = r"(?: ?(?:k|K|m|thousand|million|lakh|lakhs|crore))?"
# Money with its currency, such as "four thousand two hundred euros", "4.200,50 €", "$52k".
_FREE_AMOUNT: Final = _like(
    rf"{_CURRENCY_SIGN} ?{_IN_DIGITS}{_SCALE}(?:[.,]-)?",
    rf"{_IN_DIGITS}{_SCALE} ?(?:{_CURRENCY_SIGN}|zł|Ft|lei|(?i:{_CURRENCY_WORD}))",
    (
        rf"(?i:{_IN_WORDS}) (?:zł|kr|Ft|lei|Kč|(?i:{_CURRENCY_WORD}))"
        rf"(?: (?i:and {_IN_WORDS})(?: cents)?)?"
    ),
    flags=0,
)

# A height, such as "1.68 m", "5 ft 6", "five foot six".
_FREE_HEIGHT: Final = _like(
    r"[12][.,]\d{1,2} ?(?:m|metres?|meters?)",
    r"1 ?m ?\d{2}(?: ?cm)?|[12]\d{2} ?(?:cm|centimetres?|centimeters?)",
    r"[2-8] ?(?:['′’]|ft\.?|feet|foot)(?: ?(?:\d|1[01]) ?½?(?:[\"″”]| ?in\.?| ?inch(?:es)?)?)?",
    rf"(?:{_ONES}) (?:foot|feet)(?: (?:{_ONES})(?:(?: and a half)? inch(?:es)?)?)?",
    rf"(?:one|two) met(?:re|er)s? (?:{_ONES})(?:[- ](?:{_ONES}))?",
    flags=re.IGNORECASE,
)
# A weight, such as "64 kilos", "10 st 4", "a hundred and fifty pounds".
_FREE_WEIGHT: Final = _like(
    r"\d{2,3}(?:[.,]\d)? ?(?:kg|kgs|kilos?|kilograms?|kilogrammes?|lbs?\.?|pounds?)",
    r"\d{1,2} ?(?:st|stone)(?: ?\d{1,2} ?(?:lbs?|pounds?)?)?",
    rf"{_IN_WORDS} (?:kilos?|kilograms?|pounds?|stone(?: {_IN_WORDS}(?: pounds?)?)?)",
    flags=re.IGNORECASE,
)


def _is_phone(text: str) -> bool:
    pattern = r"(?:\+|00)?\(?\d[\d ()./-]{6,20}\d(?: ?(?:ext|x)\.? ?\d{1,4})?"
    digits = sum(character.isdecimal() for character in text)
    return 8 <= digits <= 15 and re.fullmatch(pattern, text) is not None


def _one_of(words: str) -> Predicate:
    allowed = frozenset(words.split(", "))
    return lambda text: text.lower() in allowed


def _parses(parse: Callable[[str], object]) -> Predicate:
    return lambda text: parse(text) is not None


def _either(paper: Predicate, free: Predicate) -> Predicate:
    return lambda text: paper(text) or free(text)


def _is_full_name(text: str) -> bool:
    # Names come in all scripts, so only characters that no name has are refused.
    return re.fullmatch(r"[^\W\d_][^\s\d@_]*(?: [^\s\d@_]+)+", text) is not None


def _is_card_number(text: str) -> bool:
    return re.fullmatch(r"\d{16}", text, re.ASCII) is not None and luhn_holds(text)


def _is_iso_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2024-09-16") and "W" not in text


_LICENCE: Final = _like(r"[A-Z]\d{8}")
_AMOUNT: Final = _either(_parses(parse_amount), _FREE_AMOUNT)
_PERCENTAGE: Final = _parses(parse_percentage)

FORMATS: Final[Mapping[str, Predicate]] = {
    "Full Name": _is_full_name,
    "Social Media Handle": _like(r"@[A-Za-z0-9]{5,15}"),
    "Social Security Number": _like(r"\d{3}-\d{2}-\d{4}"),
    "Driver's License": _LICENCE,
    "Bank Account": _like(r"\d{10,12}"),
    "Credit Card": _is_card_number,
    "Phone Number": _either(_like(r"\+[1-9]\d{0,2}-\d{10}"), _is_phone),
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
    "Height": _either(_parses(parse_metres), _FREE_HEIGHT),
    "Weight": _either(_parses(parse_kilograms), _FREE_WEIGHT),
    "Blood Type": _like(r"(?:A|B|AB|O)[+\-\u2212]"),
    "Sexual Orientation": _one_of(
        "gay, lesbian, bisexual, straight, heterosexual, homosexual, asexual, aromantic, "
        "demisexual, pansexual, queer, questioning"
    ),
    "Date": _either(_is_iso_date, _FREE_DATE),
    "Time": _either(_like(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"), _FREE_TIME),
    "Duration": _either(_parses(parse_days), _FREE_DURATION),
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


def fits(text: str, category: str) -> bool:
    """Return whether a text has a format of a category; without a format, any line does."""
    if category in FORMATS:
        return FORMATS[category](text)
    return text == text.strip() and len(text.splitlines()) == 1
