"""Other writings of a value: what a writer puts for it who tells the same.

- numbers: in words and in figures (English; below a thousand million), with and without marks
  between thousands, sums of money with the sign or the name of the currency, per cent; years as
  they are spoken;
- dates and times of day in the usual English and numeric orders, months in full and short;
- places: the two names of some cities ("Göteborg", "Gothenburg");
- letters with marks in two letters ("Goeteborg");
- e-mail addresses that are spelled out ("ann at mail dot org").

No more: no other language's numbers, no synonyms, no conclusions ("thirty-two" from a year of
birth). Letters without their marks are the locator's.
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
_LONGEST: Final = 15
"""Figures of a number; more of them are a code."""
_VALUES: Final = {
    **{word: number for number, word in enumerate(_ONES)},
    **{word: 10 * number for number, word in enumerate(_TENS, start=2)},
}
_WORD: Final = rf"(?:{'|'.join(_VALUES)}|hundred|thousand|million)"
NUMBER_WORDS: Final = re.compile(rf"\b{_WORD}(?:(?:\s+and\s+|[\s-]+){_WORD})*\b", re.IGNORECASE)
"""A number in words, as long as it goes on."""

_FIGURES: Final = r"\d{1,3}(?:[, ]\d{3})+|\d{1,9}"
_NUMBER: Final = re.compile(rf"(?<![\w.,/:-])(?:{_FIGURES})(?![\w/:]|[.,-]\d)")
_MONEY: Final = re.compile(rf"([$€£])\s?({_FIGURES})(?:\.00)?(?![\w/:]|[.,-]\d)")
_MONEY_NAMED: Final = re.compile(
    rf"(?<![\w.,/:-])({_FIGURES})(?:\.00)?\s(dollars|euros|pounds|USD|EUR|GBP)\b", re.IGNORECASE
)
_PER_CENT: Final = re.compile(r"(?<=\d)\s?(?:%|per\s?cent\b)", re.IGNORECASE)
_CURRENCIES: Final = (("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"))

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
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
# Marks on letters of other scripts make another letter.
_MARKED: Final = re.compile("([A-Za-z])[\u0300-\u036f]+")
_TWO_LETTERS: Final = str.maketrans(
    dict(
        zip("äöüåøÄÖÜÅØ", ("ae", "oe", "ue", "aa", "oe", "Ae", "Oe", "Ue", "Aa", "Oe"), strict=True)
    )
)


@lru_cache(maxsize=1 << 14)
def unmarked(text: str) -> str:
    """A text without the marks on its Latin letters; case stays."""
    if text.isascii():
        return text
    # Python's own takes the square of the marks on one letter.
    return nfc(_MARKED.sub(r"\1", decomposed(text.translate(_LETTERS))))


@lru_cache(maxsize=1 << 16)
def writings(value: str) -> tuple[str, ...]:
    """Other writings of a value, without itself, in a fixed order.

    A number by itself is not written out below ten: "one" is rarely a number.
    """
    plain = " ".join(value.split())
    bases = dict.fromkeys([plain, NUMBER_WORDS.sub(_in_figures, plain)])
    found = [other for base in bases for rule in _RULES for other in rule(base)]
    return tuple(each for each in dict.fromkeys([*bases, *found]) if each != plain)


def in_words(number: int) -> str:
    """A whole number in English words, from zero to below a thousand million."""
    if number < 20:
        return _ONES[number]
    for scale, name in _SCALES:
        if number >= scale:
            head, rest = divmod(number, scale)
            return f"{in_words(head)} {name}" + (f" {in_words(rest)}" if rest else "")
    tens, rest = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[rest]}" if rest else "")


def from_words(text: str) -> int | None:
    """The number that words say; None where they say none ("two three")."""
    total = part = 0
    spoken = re.split(r"[\s-]+(?:and\s+)?", text.casefold().strip())
    for word in spoken:
        if word in _VALUES:
            part += _VALUES[word]
        elif word == "hundred":
            part *= 100
        elif word in {"thousand", "million"}:
            total += part * (1_000 if word == "thousand" else 1_000_000)
            part = 0
        else:
            return None
    number = total + part
    said = number < _LIMIT and re.split(r"[\s-]+", in_words(number))
    return number if said == spoken else None


def _numbers(value: str) -> Iterator[str]:
    alone = _NUMBER.fullmatch(value) is not None
    for write in _WAYS:
        yield _replaced(value, write, alone=alone)
    if alone:
        yield _spoken_year(value)


def _replaced(value: str, write: Callable[[str], str], *, alone: bool = False) -> str:
    """A value with its numbers in another writing."""

    def other(match: re.Match[str]) -> str:
        figures = re.sub(r"[, ]", "", match[0])
        if len(figures) > _LONGEST or (len(figures) > 1 and figures.startswith("0")):
            return match[0]
        least = 10 if alone else 0
        if write in _SPELLED and not least <= int(figures) < _LIMIT:
            return match[0]
        return write(figures)

    return _NUMBER.sub(other, value)


def _money(value: str) -> Iterator[str]:
    for sign, name, code in _CURRENCIES:
        named = {name, code.casefold()}
        found = [(m, m[2]) for m in _MONEY.finditer(value) if m[1] == sign]
        found += [(m, m[1]) for m in _MONEY_NAMED.finditer(value) if m[2].casefold() in named]
        for match, number in found:
            for write in _WAYS:
                amount = _replaced(number, write)
                forms = f"{sign}{amount}", f"{amount} {name}", f"{amount} {code}"
                for form in (*forms, f"{code} {amount}", f"{sign}{amount}.00"):
                    yield value[: match.start()] + form + value[match.end() :]


def _per_cent(value: str) -> Iterator[str]:
    for write in ("%", " %", " percent", " per cent") if _PER_CENT.search(value) else ():
        written = _PER_CENT.sub(write, value)
        yield written
        yield _replaced(written, _in_words)


def _in_figures(words: re.Match[str]) -> str:
    number = from_words(words[0])
    return words[0] if number is None else str(number)


def _grouped(mark: str) -> Callable[[str], str]:
    return lambda figures: f"{int(figures):,}".replace(",", mark)


def _in_words(figures: str) -> str:
    """Figures in words."""
    return in_words(int(figures))


def _with_and(figures: str) -> str:
    return re.sub(r"(?<=hundred) (?!thousand|million)", " and ", _in_words(figures))


def _apart(figures: str) -> str:
    return _in_words(figures).replace("-", " ")


def _spoken_year(figures: str) -> str:
    century, rest = divmod(int(figures), 100) if figures.isdigit() else (0, 0)
    known = len(figures) == 4 and 18 <= century <= 20 and rest >= 10
    return f"{in_words(century)} {in_words(rest)}" if known else figures


_SPELLED: Final = (_in_words, _with_and, _apart)
_WAYS: Final = (str, _grouped(","), _grouped("."), _grouped(" "), _grouped("'"), *_SPELLED)


def _dates(value: str) -> Iterator[str]:
    for pattern in _DATES:
        if match := pattern.fullmatch(value):
            told = match.groupdict()
            month = _month(told)
            if month is not None:
                yield from _date(told.get("day"), month, told.get("year"))


def _month(told: dict[str, str | None]) -> int | None:
    if name := told.get("month"):
        return next(n for n, each in enumerate(_MONTHS, 1) if each[:3].lower() == name[:3].lower())
    number = int(told.get("number") or 0)
    return number if 1 <= number <= 12 else None


def _date(day_told: str | None, month: int, year: str | None) -> Iterator[str]:
    name = _MONTHS[month - 1]
    names = (name, name[:3], f"{name[:3]}.", *(("Sept", "Sept.") if month == 9 else ()))
    if day_told is None:
        yield from (f"{each} {year}" for each in names)
        yield from (f"{each}, {year}" for each in names)
        yield from (f"{month:02}/{year}", f"{month}/{year}", f"{year}-{month:02}")
        return
    day = int(day_told)
    ordinal = f"{day}{_ending(day)}"
    ends = ("",) if year is None else (f" {year}", f", {year}")
    for each in names:
        for end in ends:
            yield from (f"{each} {day}{end}", f"{each} {ordinal}{end}", f"{day} {each}{end}")
            yield from (f"{each} {day:02}{end}", f"{day:02} {each}{end}", f"{ordinal} {each}{end}")
            yield from (f"{ordinal} of {each}{end}", f"the {ordinal} of {each}{end}")
    if year is not None:
        for mark in "-/.":
            yield f"{year}{mark}{month:02}{mark}{day:02}"
            for one, other in ((day, month), (month, day)):
                yield f"{one:02}{mark}{other:02}{mark}{year}"
                yield f"{one}{mark}{other}{mark}{year}"


def _ending(day: int) -> str:
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
    half, short = "ap"[hour >= 12], hour % 12 or 12
    for told in (f"{short}:{minute}", f"{short}.{minute}", *([f"{short}"] * (minute == "00"))):
        yield from (f"{told} {half}m", f"{told}{half}m", f"{told} {half}.m.")


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


def _mails(value: str) -> Iterator[str]:
    if _MAIL.fullmatch(value):
        for at, dot in _AROUND_AT:
            yield value.replace("@", at).replace(".", dot)
            yield value.replace("@", f" {at.strip()} ").replace(".", dot)


_RULES: Final[tuple[Callable[[str], Iterator[str]], ...]] = (
    *(_numbers, _money, _per_cent, _dates, _times, _places, _two_letters, _mails),
)
