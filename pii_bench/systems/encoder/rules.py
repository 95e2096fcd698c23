"""Rules that correct the spans of the network.

They extend spans to whole dates, numbers and names: the network, which labels word by word, may
find only "July" of "3 July 2001" or "22072" of "22072/02". They add parts of full names and codes
of a known format, remove labels of forms, and recognise queries that may need contact data.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.value_formats import is_ip_address, luhn_holds
from pii_bench.masking.masked import MONTH
from pii_bench.scorer.locate import within_one_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pii_bench.systems.encoder.reader import Labelled

VERSION: Final = 5
"""Version of the rules and of the decoding in `reader`. Raise it with every change to either.

It enters the request hashes, so stored answers of another version are not reused. Pictures enter
them too, so that a change to what `windows` takes for one concerns only the texts that have it.
"""

_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_DATES: Final = re.compile(
    rf"(?<![\w./-])(?:{_DAY}(?: of)? {MONTH}(?:,? {_YEAR})?|{MONTH} {_DAY}(?:,? {_YEAR})?"
    rf"|{MONTH},? {_YEAR}|{_YEAR}-\d\d-\d\d)(?![\w/-])",
    re.IGNORECASE,
)
# Parts with a digit each, joined without a space: 22072/02, 1,769.50, 14.03.1962.
_NUMBERS: Final = re.compile(r"(?<![\w/.,:])\d\w*+(?:[/.,:]\w*\d\w*+)++(?![\w/])")
_NUMBERED: Final = frozenset({PiiType.CODE, PiiType.DATETIME, PiiType.QUANTITY})
_NUMBER_OF: Final = re.compile(r"(?:nos?|nr)\b\.?\s+(?=\S*\d)", re.IGNORECASE)
_FIRST: Final = "+@(-−#_"
_LAST: Final = "%\"'+-−).°_′″"


def with_whole_spans(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Extend spans, given in order, to the whole dates and numbers that they are a part of.

    Spans that overlap afterwards are joined and get the type of the first. Spans without a letter
    or digit are dropped.
    """
    dates = [match.span() for match in _DATES.finditer(text)]
    numbers = [match.span() for match in _NUMBERS.finditer(text)]
    whole = []
    for span in spans:
        start, end, kind = span
        if kind in _NUMBERED:
            start, end = _extend(start, end, numbers)
        if kind is PiiType.DATETIME:
            start, end = _extend(start, end, dates)
        whole.append(_tidy(text, start, end, kind))
    found: list[Labelled] = []
    for start, end, kind in sorted(whole):
        if not any(map(str.isalnum, text[start:end])):
            continue
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end), found[-1][2])
        else:
            found.append((start, end, kind))
    return found


def _extend(start: int, end: int, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Extend a span by the places it overlaps, which are sorted and do not overlap each other."""
    first = bisect_right(places, start, key=itemgetter(1))
    for number in range(first, len(places)):
        begin, stop = places[number]
        if begin >= end:
            break
        start, end = min(start, begin), max(end, stop)
    return start, end


def _tidy(text: str, start: int, end: int, kind: PiiType) -> Labelled:
    """Strip "no." before a number and stray punctuation, and balance the brackets."""
    if kind is PiiType.CODE and (match := _NUMBER_OF.match(text, start, end)):
        start = match.end()
    while start < end and not _may_be(text[start], _FIRST):
        start += 1
    while start < end and not _may_be(text[end - 1], _LAST):
        end -= 1
    missing = text.count("(", start, end) - text.count(")", start, end)
    if missing == 1 and text.startswith("(", start):
        start += 1
    elif missing == 1 and text.startswith(")", end):
        end += 1
    elif missing == -1 and text.endswith(")", start, end):
        end -= 1
    elif missing == -1 and text.endswith("(", 0, start):
        start -= 1
    return start, end, kind


def _may_be(character: str, others: str) -> bool:
    """Return True for a letter, mark, number, currency sign, or one of `others`."""
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Sc" or character in others


_NAMED: Final = frozenset({PiiType.PER, PiiType.ORG, PiiType.LOC})
# A name may begin or end with a word that alone is an origin or a trade ("Scottish Greens").
_IN_NAMES: Final = _NAMED | {PiiType.DEM}
_WORD: Final = re.compile(r"[^\W\d_]+")
# Capitalised words next to or inside names that are not names themselves.
_NO_NAMES: Final = frozenset(
    {
        *("aunt", "auntie", "brother", "captain", "dame", "dear", "doctor", "dr", "father"),
        *("hello", "hi", "judge", "justice", "king", "lady", "lord", "madam", "miss", "mother"),
        *("mr", "mrs", "ms", "nurse", "officer", "president", "prince", "princess", "prof"),
        *("professor", "queen", "sir", "sister", "uncle"),
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
        *("october", "november", "december", "will"),
        *("and", "bin", "das", "del", "den", "der", "dos", "for", "los", "the", "van", "von"),
    }
)
_BEFORE_A_NAME_GOES_ON: Final = re.compile(r"[ \t]+(?=[^\W\d_])")
_OPENS_CAPITAL: Final = re.compile(r"[\W_]*[^\W\d_]")
_LAST_WORD: Final = re.compile(r"[^\W_][\w'’-]*\W*$")
_NEXT_WORD: Final = re.compile(r" ([^\W\d_][\w'’-]+)")
_WORD_BEFORE: Final = re.compile(r"(?<=[\w,;] )([^\W\d_][\w'’-]+) $")
_LONGEST_WORD: Final = 40


def with_whole_names(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Extend spans, given in order, to whole names.

    The name of a person, organisation or place is extended over adjacent capitalised words, except
    titles, months, days and the first word of a sentence. Two names separated by one space are
    joined and get the type of the longer; so are a name and a capitalised DEM span. Text that is
    mostly in capitals is left unchanged.
    """
    if 2 * sum(map(str.isupper, text)) > sum(map(str.isalpha, text)):
        return [*spans]
    whole: list[Labelled] = []
    for number, (start, end, kind) in enumerate(spans):
        before = whole[-1][1] if whole else 0
        following = spans[number + 1][0] if number + 1 < len(spans) else len(text)
        span = start, end, kind
        if kind in _NAMED:
            left = _extend_left(text, start, before)
            span = left, _extend_right(text, end, following, kind), kind
        if whole and _are_one_name(text, whole[-1], span):
            longer = max(whole[-1], span, key=lambda each: each[1] - each[0])
            whole[-1] = whole[-1][0], span[1], longer[2]
        else:
            whole.append(span)
    return whole


def _are_one_name(text: str, before: Labelled, span: Labelled) -> bool:
    kinds = {before[2], span[2]}
    return (
        not kinds.isdisjoint(_NAMED)
        and kinds <= _IN_NAMES
        and text[before[1] : span[0]] == " "
        and _ends_capital(text, before[1])
        and _begins_capital(text, span[0])
    )


def _extend_right(text: str, end: int, limit: int, kind: PiiType) -> int:
    if not _ends_capital(text, end) or (text[end - 1].isdigit() and kind is not PiiType.LOC):
        return end
    while (word := _NEXT_WORD.match(text, end, limit)) and _is_of_a_name(word[1]):
        end = word.end()
    return end


def _extend_left(text: str, start: int, limit: int) -> int:
    while (
        _begins_capital(text, start)
        and (word := _WORD_BEFORE.search(text, max(limit, start - _LONGEST_WORD), start))
        and _is_of_a_name(word[1])
    ):
        start = word.start()
    return start


def _is_of_a_name(word: str) -> bool:
    return word[0].isupper() and word.lower() not in _NO_NAMES


def _begins_capital(text: str, start: int) -> bool:
    first = _OPENS_CAPITAL.match(text, start)
    return first is not None and first[0][-1].isupper()


def _ends_capital(text: str, end: int) -> bool:
    """Return True if the last word before `end` begins with a capital or a digit."""
    last = _LAST_WORD.search(text, max(0, end - _LONGEST_WORD), end)
    return last is not None and (last[0][0].isupper() or last[0][0].isdigit())


def with_parts_of_names(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Add the places where a part of a person's full name occurs alone.

    A part is a capitalised word of a name of at least two words that the text never writes in
    lower case. It is skipped before a capitalised word outside all spans, where it belongs to
    another name ("Wilk Street").
    """
    taken = bytearray(len(text))
    for start, end, _ in spans:
        taken[start:end] = b"\1" * (end - start)
    parts: set[str] = set()
    for start, end, kind in spans:
        if kind is PiiType.PER:
            parts.update(_parts(text[start:end]))
    written = set(_WORD.findall(text))
    found = [*spans]
    for match in _WORD.finditer(text):
        start, end = match.span()
        is_part = match[0] in parts and match[0].lower() not in written
        if is_part and not any(taken[start:end]) and not _name_continues(text, end, taken):
            found.append((start, end, PiiType.PER))
    return sorted(found)


def whole_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name of a text to the longer name that contains all its words.

    A name maps to itself if no longer name, or more than one, contains its words.
    """
    words = {name: frozenset(_WORD.findall(name)) for name in names}
    whole: dict[str, str] = {}
    for name, own in words.items():
        longer = [other for other, theirs in words.items() if own and own < theirs]
        whole[name] = longer[0] if len(longer) == 1 else name
    return whole


def _parts(name: str) -> list[str]:
    words = _WORD.findall(name)
    if len(words) < 2 or any(map(str.isdecimal, name)):
        return []
    return [
        word
        for word in words
        if len(word) >= 3
        and word[0].isupper()
        and word[1:].islower()
        and word.lower() not in _NO_NAMES
    ]


def _name_continues(text: str, end: int, taken: bytearray) -> bool:
    """Return True if a capitalised word outside all spans follows."""
    gap = _BEFORE_A_NAME_GOES_ON.match(text, end)
    return gap is not None and text[gap.end()].isupper() and not taken[gap.end()]


def _is_card(text: str) -> bool:
    return luhn_holds("".join(filter(str.isdecimal, text)))


def _is_iban(text: str) -> bool:
    """Return True if the check digits are valid (ISO 13616)."""
    bare = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


# Each pattern with a test of what it matches; `bool` accepts every match.
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...]] = (
    # Words without @ match as well: this reads each once instead of trying again at each letter.
    (re.compile(r"[\w.%+-]++(?:(?<=\w)@\w[\w-]*(?:\.[\w-]*\w)+)?"), lambda text: "@" in text),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)"), is_ip_address),
    (
        re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"),
        lambda text: is_ip_address(text) and len(text) > len("1:2:3:4"),
    ),
    (re.compile(r"(?<!\w)[0-9a-f]{32,128}(?!\w)", re.IGNORECASE), bool),
    (
        re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"),
        _is_iban,
    ),
    (re.compile(r"(?<![\w-])\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}(?![\w-])"), _is_card),
    (re.compile(r"(?<![\w+])\+\d{1,3}(?:[ .()-]{0,2}\d){7,12}(?!\w)"), bool),
    (re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"), bool),
)


_CONTACT: Final = re.compile(r"\S+@\S+\.\S+|\+\d{1,3}(?:[ .()-]{0,2}\d){7,12}")
_REACHING: Final = re.compile(
    r"\b(?:phone|number|call|ring|text|mobile|cell|dial|sms|whatsapp|e-?mail|mail|contact|reach"
    r"|writ|wrot|repl|answer|send|sent|message|address|label|signature|card|form\b|slip)",
    re.IGNORECASE,
)

_LABELS: Final = frozenset(
    {
        *("address", "age", "born", "cc", "city", "company", "curriculum vitae", "cv", "date"),
        *("date of birth", "dob", "doctor", "education", "email", "e-mail", "employer"),
        *("experience", "from", "gender", "height", "iban", "ip", "job", "languages", "mobile"),
        *("name", "nationality", "notes", "occupation", "patient", "phone", "position"),
        *("profile", "reference", "references", "religion", "remarks", "resume", "school"),
        *("skills", "ssn", "street", "subject", "summary", "tel", "telephone", "to", "weight"),
        *("ticket", "user", "work experience"),
    }
)
# A heading on its own line, or the part of a line before its colon.
_OPENING: Final = re.compile(r"^[^\S\n]*([A-Za-z][A-Za-z -]{0,30}?)[^\S\n]*(?::|$)", re.MULTILINE)


def fixed_forms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of codes: e-mail and IP addresses, hashes, IBANs, and other numbers."""
    for pattern, holds in _FORMS:
        for match in pattern.finditer(text):
            if holds(match[0]):
                yield match.span()


def is_contact(text: str) -> bool:
    """Return True for an e-mail address or a phone number with a country code."""
    return _CONTACT.fullmatch(text) is not None


def may_need_contact(query: str) -> bool:
    """Return True if a query mentions contacting a person, or an addressed item such as a card.

    The words of an e-mail address ("ann@mail.example") do not count.
    """
    # Word by word: a search for addresses takes quadratic time in a long word, such as base64.
    words = (word for word in query.split() if not is_contact(word))
    return _REACHING.search(" ".join(words)) is not None


def with_fixed_forms(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Add the codes found by `fixed_forms`; they replace the spans they overlap."""
    taken = bytearray(len(text))
    fixed: list[Labelled] = []
    for start, end in fixed_forms(text):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            fixed.append((start, end, PiiType.CODE))
    kept = [span for span in spans if not any(taken[span[0] : span[1]])]
    return sorted([*kept, *fixed])


def without_labels(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Drop the spans that are labels of a form ("Street:") or headings."""
    labels = [match.span(1) for match in _OPENING.finditer(text) if match[1].lower() in _LABELS]
    is_in_label = within_one_of(labels)
    return [span for span in spans if not is_in_label((span[0], span[1]))]
