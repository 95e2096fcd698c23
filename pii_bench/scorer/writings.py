"""Other ways to write a value.

- numbers in words and digits (English, below a thousand million), with and without thousands
  separators; amounts of money with the sign or name of the currency; percentages; spoken years;
- dates and times of day in the usual English and numeric orders, with full and short months;
- the two names of some cities ("Göteborg", "Gothenburg");
- letters with diacritics as two letters ("Goeteborg");
- spelled-out e-mail addresses ("ann at mail dot org").

Numbers in other languages, synonyms and conclusions ("thirty-two" from a year of birth) are not
covered. The locator handles letters without their diacritics.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pii_bench.scorer.text import decomposed, nfc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred"))
_LIMIT: Final = 1_000_000_000
_MOST_DIGITS: Final = 15
"""A longer run of digits is a code, not a number."""
NUMBER_VALUES: Final = {
    **{word: number for number, word in enumerate(_ONES)},
    **{word: 10 * number for number, word in enumerate(_TENS, start=2)},
}
"""Values of the words from zero to twenty, and of the tens."""
_WORD: Final = rf"(?:{'|'.join(NUMBER_VALUES)}|hundred|thousand|million)"
NUMBER_WORDS: Final = re.compile(rf"\b{_WORD}(?:(?:\s+and\s+|[\s-]+){_WORD})*\b", re.IGNORECASE)
"""The longest sequence of number words."""

_DIGITS: Final = r"\d{1,3}(?:[, ]\d{3})+|\d{1,9}"
_NUMBER: Final = re.compile(rf"(?<![\w.,/:-])(?:{_DIGITS})(?![\w/:]|[.,-]\d)")
_MONEY: Final = re.compile(rf"([$€£])\s?({_DIGITS})(?:\.00)?(?![\w/:]|[.,-]\d)")
_MONEY_NAMED: Final = re.compile(
    rf"(?<![\w.,/:-])({_DIGITS})(?:\.00)?\s(dollars|euros|pounds|USD|EUR|GBP)\b", re.IGNORECASE
)
_PERCENT: Final = re.compile(r"(?<=\d)\s?(?:%|per\s?cent\b)", re.IGNORECASE)
_CURRENCIES: Final = (("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"))

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
MONTH_NAMES: Final = "|".join([*_MONTHS, *(month[:3] for month in _MONTHS), "Sept"])
"""Alternatives of a pattern: full and short names of months."""
_MONTH: Final = rf"(?P<month>{MONTH_NAMES})\.?"
_DAY: Final = r"(?P<day>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:1[89]|20)\d\d)"
_DATES: Final = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}[-/.](?P<number>\d\d?)[-/.]{_DAY}",
        rf"{_DAY}[-/.](?P<number>\d\d?)[-/.]{_YEAR}",
        rf"(?P<number>\d\d?)[-/.]{_DAY}[-/.]{_YEAR}",
        rf"{_DAY}(?:\sof)?\s{_MONTH}(?:,?\s{_YEAR})?",
        rf"{_MONTH}\s{_DAY}(?:,?\s{_YEAR})?",
        rf"{_MONTH},?\s{_YEAR}",
        rf"(?P<number>\d\d?)/{_YEAR}",
    )
)
_TIME: Final = re.compile(
    r"(?P<hour>[01]?\d|2[0-3])(?:[:.](?P<minute>[0-5]\d))?\s?(?P<half>[ap]\.?m\.?)?",
    re.ASCII | re.IGNORECASE,
)
_AROUND_AT: Final = (("@", "."), (" at ", "."), (" at ", " dot "), ("(at)", "."), ("[at]", "."))
_MAIL: Final = re.compile(r"[^\s@]+@[^\s@]+")

_PLACES: Final = (
    *(("Göteborg", "Gothenburg"), ("København", "Copenhagen"), ("Turku", "Åbo")),
    *(("Helsinki", "Helsingfors"), ("Wien", "Vienna"), ("München", "Munich")),
    *(("Köln", "Cologne"), ("Nürnberg", "Nuremberg"), ("Hannover", "Hanover")),
    *(("Zürich", "Zurigo"), ("Genève", "Geneva", "Genf"), ("Basel", "Basle", "Bâle")),
    *(("Bern", "Berne"), ("Roma", "Rome"), ("Milano", "Milan"), ("Torino", "Turin")),
    *(("Napoli", "Naples"), ("Firenze", "Florence"), ("Venezia", "Venice")),
    *(("Genova", "Genoa"), ("Padova", "Padua"), ("Lisboa", "Lisbon"), ("Porto", "Oporto")),
    *(("Sevilla", "Seville"), ("Zaragoza", "Saragossa"), ("A Coruña", "Corunna")),
    *(("Bruxelles", "Brussels", "Brussel"), ("Antwerpen", "Antwerp", "Anvers")),
    *(("Gent", "Ghent"), ("Brugge", "Bruges"), ("Den Haag", "The Hague")),
    *(("Lyon", "Lyons"), ("Marseille", "Marseilles"), ("Strasbourg", "Strassburg")),
    *(("Praha", "Prague"), ("Warszawa", "Warsaw"), ("Kraków", "Cracow")),
    *(("Gdańsk", "Danzig"), ("Wrocław", "Breslau"), ("Bucureşti", "Bucharest")),
    *(("Beograd", "Belgrade"), ("Kyiv", "Kiev"), ("Lviv", "Lvov"), ("Kharkiv", "Kharkov")),
    *(("Moskva", "Moscow"), ("Athina", "Athens"), ("Thessaloniki", "Salonica")),
    *(("İstanbul", "Constantinople"), ("İzmir", "Smyrna"), ("Beijing", "Peking")),
    *(("Guangzhou", "Canton"), ("Nanjing", "Nanking"), ("Mumbai", "Bombay")),
    *(("Chennai", "Madras"), ("Kolkata", "Calcutta"), ("Bengaluru", "Bangalore")),
    *(("Yangon", "Rangoon"), ("Ho Chi Minh City", "Saigon"), ("Ciudad de México", "Mexico City")),
    *(("Québec", "Quebec City"), ("Corcaigh", "Cork"), ("Caerdydd", "Cardiff")),
)
_LETTERS: Final = str.maketrans(
    dict(zip("øØłŁđĐðÐı", "oOlLdDdDi", strict=True))
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}
)
# In other scripts, a letter with a mark is another letter.
_MARKED: Final = re.compile("([A-Za-z])[\u0300-\u036f]+")
_TWO_LETTERS: Final = str.maketrans(
    dict(
        zip("äöüåøÄÖÜÅØ", ("ae", "oe", "ue", "aa", "oe", "Ae", "Oe", "Ue", "Aa", "Oe"), strict=True)
    )
)


@lru_cache(maxsize=1 << 14)
def unmarked(text: str) -> str:
    """Remove the diacritics of Latin letters; case stays."""
    if text.isascii():
        return text
    # `decomposed` is linear, unicodedata quadratic in the number of marks on one letter.
    return nfc(_MARKED.sub(r"\1", decomposed(text.translate(_LETTERS))))


@lru_cache(maxsize=1 << 16)
def writings(value: str) -> tuple[str, ...]:
    """Return other ways to write a value, in a fixed order.

    A number below ten that is the whole value is not written in words: "one" is rarely a number.
    """
    plain = " ".join(value.split())
    with_digits = NUMBER_WORDS.sub(_words_to_digits, plain)
    forms = [plain, with_digits]
    for form in dict.fromkeys(forms):
        for rule in _RULES:
            forms += rule(form)
    return tuple(form for form in dict.fromkeys(forms) if form != plain)


def in_words(number: int) -> str:
    """Write a whole number from zero to below a thousand million in English words."""
    if number < 20:
        return _ONES[number]
    for scale, name in _SCALES:
        if number >= scale:
            head, rest = divmod(number, scale)
            return f"{in_words(head)} {name}" + (f" {in_words(rest)}" if rest else "")
    tens, rest = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[rest]}" if rest else "")


def from_words(text: str) -> int | None:
    """Parse a number in words; None if the words are no number ("two three")."""
    total = part = 0
    words = re.split(r"[\s-]+(?:and\s+)?", text.casefold().strip())
    for word in words:
        if word in NUMBER_VALUES:
            part += NUMBER_VALUES[word]
        elif word == "hundred":
            part *= 100
        elif word in {"thousand", "million"}:
            total += part * (1_000 if word == "thousand" else 1_000_000)
            part = 0
        else:
            return None
    number = total + part
    if number < _LIMIT and words == re.split(r"[\s-]+", in_words(number)):
        return number
    return None


def _numbers(value: str) -> Iterator[str]:
    is_number = _NUMBER.fullmatch(value) is not None
    for write in _WAYS_IN_DIGITS if is_number and len(value) == 1 else _WAYS:
        yield _rewrite_numbers(value, write)
    if is_number:
        yield _spoken_year(value)


def _rewrite_numbers(value: str, write: Callable[[str], str]) -> str:
    def rewrite(match: re.Match[str]) -> str:
        digits = re.sub(r"[, ]", "", match[0])
        is_code = len(digits) > _MOST_DIGITS or (len(digits) > 1 and digits.startswith("0"))
        return match[0] if is_code else write(digits) or match[0]

    return _NUMBER.sub(rewrite, value)


def _money(value: str) -> Iterator[str]:
    for sign, name, code in _CURRENCIES:
        amounts = [(m, m[2]) for m in _MONEY.finditer(value) if m[1] == sign]
        names = {name, code.casefold()}
        amounts += [(m, m[1]) for m in _MONEY_NAMED.finditer(value) if m[2].casefold() in names]
        for match, number in amounts:
            before, after = value[: match.start()], value[match.end() :]
            for write in _WAYS:
                amount = _rewrite_numbers(number, write)
                forms = f"{sign}{amount}", f"{amount} {name}", f"{amount} {code}"
                for form in (*forms, f"{code} {amount}", f"{sign}{amount}.00"):
                    yield before + form + after


def _percentages(value: str) -> Iterator[str]:
    if _PERCENT.search(value):
        for sign in ("%", " %", " percent", " per cent"):
            form = _PERCENT.sub(sign, value)
            yield form
            yield _rewrite_numbers(form, _in_words)


def _words_to_digits(words: re.Match[str]) -> str:
    number = from_words(words[0])
    return words[0] if number is None else str(number)


def _grouped(separator: str) -> Callable[[str], str]:
    return lambda digits: f"{int(digits):,}".replace(",", separator)


def _in_words(digits: str) -> str:
    """Write a number in words; "" if it is too large."""
    number = int(digits)
    return in_words(number) if number < _LIMIT else ""


def _in_words_with_and(digits: str) -> str:
    return re.sub(r"(?<=hundred) (?!thousand|million)", " and ", _in_words(digits))


def _in_words_without_hyphens(digits: str) -> str:
    return _in_words(digits).replace("-", " ")


def _spoken_year(digits: str) -> str:
    """Write 1991 as "nineteen ninety-one"; other numbers stay."""
    if len(digits) == 4 and digits.isdigit():
        century, rest = divmod(int(digits), 100)
        if 18 <= century <= 20 and rest >= 10:
            return f"{in_words(century)} {in_words(rest)}"
    return digits


_WAYS_IN_DIGITS: Final = (str, _grouped(","), _grouped("."), _grouped(" "), _grouped("'"))
_WAYS: Final = (*_WAYS_IN_DIGITS, _in_words, _in_words_with_and, _in_words_without_hyphens)


def _dates(value: str) -> Iterator[str]:
    for pattern in _DATES:
        if match := pattern.fullmatch(value):
            parts = match.groupdict()
            month = _month(parts)
            if month is not None:
                yield from _date_forms(parts.get("day"), month, parts.get("year"))


def _month(parts: dict[str, str | None]) -> int | None:
    if name := parts.get("month"):
        short_names = [month[:3].lower() for month in _MONTHS]
        return short_names.index(name[:3].lower()) + 1
    number = int(parts.get("number") or 0)
    return number if 1 <= number <= 12 else None


def _date_forms(day_text: str | None, month: int, year: str | None) -> Iterator[str]:
    name = _MONTHS[month - 1]
    names = [name, name[:3], f"{name[:3]}."]
    if month == 9:
        names += ["Sept", "Sept."]
    if day_text is None:
        yield from (f"{name} {year}" for name in names)
        yield from (f"{name}, {year}" for name in names)
        yield from (f"{month:02}/{year}", f"{month}/{year}", f"{year}-{month:02}")
        return
    day = int(day_text)
    ordinal = f"{day}{ordinal_suffix(day)}"
    ends = ("",) if year is None else (f" {year}", f", {year}")
    for name in names:
        for end in ends:
            yield from (f"{name} {day}{end}", f"{name} {ordinal}{end}", f"{day} {name}{end}")
            yield from (f"{name} {day:02}{end}", f"{day:02} {name}{end}", f"{ordinal} {name}{end}")
            yield from (f"{ordinal} of {name}{end}", f"the {ordinal} of {name}{end}")
    if year is not None:
        for sign in "-/.":
            yield f"{year}{sign}{month:02}{sign}{day:02}"
            for one, other in ((day, month), (month, day)):
                yield f"{one:02}{sign}{other:02}{sign}{year}"
                yield f"{one}{sign}{other}{sign}{year}"


def ordinal_suffix(day: int) -> str:
    """Return the ending of a day of the month, as in 1st, 22nd, 13th."""
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _times(value: str) -> Iterator[str]:
    match = _TIME.fullmatch(value)
    if match is None or not (match["minute"] or match["half"]):
        return
    hour, minute = int(match["hour"]), match["minute"] or "00"
    if match["half"]:
        if not 1 <= hour <= 12:
            return
        hour = hour % 12 + (12 if match["half"].casefold().startswith("p") else 0)
    yield from (f"{hour}:{minute}", f"{hour:02}:{minute}", f"{hour:02}.{minute}")
    half = "p" if hour >= 12 else "a"
    hour = hour % 12 or 12
    times = [f"{hour}:{minute}", f"{hour}.{minute}"]
    if minute == "00":
        times.append(f"{hour}")
    for time in times:
        yield from (f"{time} {half}m", f"{time}{half}m", f"{time} {half}.m.")


def _places(value: str) -> Iterator[str]:
    bare = unmarked(value)
    for names in _PLACES:
        for name in names:
            pattern = re.compile(rf"(?<!\w){re.escape(unmarked(name))}(?!\w)", re.IGNORECASE)
            if pattern.search(bare):
                yield from (pattern.sub(other, bare) for other in names if other != name)


def _two_letters(value: str) -> Iterator[str]:
    yield value.translate(_TWO_LETTERS)
    if len(value) > 4:
        yield re.sub(r"(?<=[^\W\d_])([aou])e(?=[^\W\d_])", r"\1", value)


def _mail_addresses(value: str) -> Iterator[str]:
    if _MAIL.fullmatch(value):
        for at, dot in _AROUND_AT:
            yield value.replace("@", at).replace(".", dot)
            yield value.replace("@", f" {at.strip()} ").replace(".", dot)


_RULES: Final[tuple[Callable[[str], Iterator[str]], ...]] = (
    *(_numbers, _money, _percentages, _dates, _times, _places, _two_letters, _mail_addresses),
)
