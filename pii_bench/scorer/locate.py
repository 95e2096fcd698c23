"""Where values are in a text, and which piece of it is masked as what where they overlap.

Every part of the suite that asks where a value occurs asks here, and says how strictly it means
that (`Strictness`), so that what leaks is found in the same way as what is masked.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from heapq import merge
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from pii_bench.scorer.text import Token, normalise, tokenize
from pii_bench.scorer.writings import NUMBER_WORDS, unmarked, writings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pii_bench.taxonomy import PiiType

Span: TypeAlias = tuple[int, int]
"""Code points of a text as it is, end exclusive."""


@dataclass(frozen=True, slots=True)
class DetectedSpan:
    """A piece of PII in a text: code points, end exclusive."""

    start: int
    end: int
    type: PiiType


class Strictness(StrEnum):
    """When a piece of a text counts as a value.

    `VERBATIM`: code point for code point, as words and numbers of its own. So a dataset lists
    the occurrences of its entities.

    `EQUAL`: as the scorer compares texts (Unicode NFC, every run of white space one space; case
    counts), also inside a word. What occurs nowhere so is hallucinated.

    `PLACED`: as `VERBATIM`, and what occurs nowhere so as `EQUAL`. So annotations and answers that
    come without places get them: `son` is not in `person`, yet `34` is in `34F`, and only there.

    `READABLE`: whatever a reader takes for the value. So values are masked and kept, and so is
    judged what a masked text still says:

    - Apostrophes, quotes and hyphens of all kinds are alike, and so are the forms of one character
      (NFKC: width variants, ligatures) and runs of white space. Characters that show nothing (soft
      hyphens, zero-width and directional characters) do not count.
    - Case does not count either, but for a word of up to `SHORT` letters that begins with a
      capital: in lower case it is another word ("Will"), and so it is in other capitals if it
      has capitals alone ("IT" and "It").
    - A number of `LONG_NUMBER` digits or more is the same however they are grouped: `0412 345 678`,
      `0412-345-678`, `(0412) 345678`. So are dates, cards and amounts.
    - A value is a word or several: "Ann" is not in "Annual". One of up to `VERY_SHORT` letters and
      digits is no part of a longer number or abbreviation either ("3.5", "p.m.", "I'm").
    - What occurs nowhere so is looked for in any case; then inside words: a number next to
      letters (`25yo`), else one of up to `SHORT` letters and digits at the begin or end of a
      word, and one of up to `VERY_SHORT` not at all.

    `RESTATED`: as readable but never inside words, or in another writing of the value
    (`pii_bench.scorer.writings`: "thirty-two" for 32, "Gothenburg" for "Göteborg"), letters with
    or without their marks, digits of a long number however they are parted. So is judged what a
    text that was written anew still says.
    """

    VERBATIM = "verbatim"
    EQUAL = "equal"
    PLACED = "placed"
    READABLE = "readable"
    RESTATED = "restated"


SHORT: Final = 4
VERY_SHORT: Final = 2
LONG_NUMBER: Final = 7
"""Digits from which on a number is told by them alone, however they are parted."""

_LONG: Final = 100_000
"""Characters from which on an index of words is made: each of many values needs a search."""

_SELDOM_REPEATED: Final = 1_000
"""Characters up to which a value is searched for anew behind each place where it is."""

_TYPEWRITTEN: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʹʻʼʽˈ՚＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        **dict.fromkeys("‐‑‒–—―−⁃־﹘﹣－", "-"),
    }
)
# In capitals, Turkish has one i with a dot and one without.
_ALIKE: Final = _TYPEWRITTEN | str.maketrans(dict.fromkeys("İı", "i"))
# Vowels and final consonants of Hangul, and the voiced marks of half-width kana.
_COMPOSING: Final = re.compile("[\u1160-\u11ff\uff9e\uff9f]")
_VARIATION: Final = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SPACES: Final = re.compile(r"\s{2,}")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")
_IN_NUMBERS: Final = ".,:/-"
_GROUPED: Final = re.compile(rf"\d(?:[ ().,:/+'-]{{0,3}}\d){{{LONG_NUMBER - 1},}}")
_DIGITS: Final = re.compile(r"\d+")
_IN_ABBREVIATIONS: Final = "'.-_@&"
_MOST_MARKS: Final = 30
"""On one letter; Unicode's limit for text that is meant to be read (UAX 15, section 13)."""


class Locator:
    """Finds values in a text, and remembers where."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[tuple[str, Strictness], tuple[Span, ...]] = {}

    def spans(self, value: str, strictness: Strictness = Strictness.READABLE) -> tuple[Span, ...]:
        """Where a value is, in order; where a readable one overlaps itself, that is one span.

        A blank value is nowhere.
        """
        key = value, strictness
        if key not in self._found:
            self._found[key] = tuple(self._search(value, strictness))
        return self._found[key]

    def _search(self, value: str, strictness: Strictness) -> Iterable[Span]:
        match strictness:
            case Strictness.VERBATIM:
                return _verbatim(value, self._text)
            case Strictness.EQUAL:
                return self._equal.find(normalise(value))
            case Strictness.PLACED:
                exact = self.spans(value, Strictness.VERBATIM)
                return exact or self.spans(value, Strictness.EQUAL)
            case Strictness.READABLE:
                return self._find_readable(value)
            case Strictness.RESTATED:
                return _joined(sorted(set(self._find_restated(value))))

    @cached_property
    def _equal(self) -> _Form:
        return _Form.of(self._text, _equal)

    @cached_property
    def _readable(self) -> _Form:
        return _Form.of(self._text, _readable)

    @cached_property
    def _unmarked(self) -> _Form:
        return _Form.of(self._text, _folded)

    @cached_property
    def _words(self) -> _WordIndex:
        return _WordIndex(self._readable.text)

    @cached_property
    def _numbers(self) -> _Numbers:
        return _Numbers(self._readable.text)

    def _find_readable(self, value: str) -> Sequence[Span]:
        wanted = _written(value)
        size = len(_LETTER_OR_DIGIT.findall(wanted))
        digits = _digits(wanted)
        grouped = [*self._numbers.find(digits)] if digits else []
        for found in self._tiers(wanted, size):
            if spans := self._readable.originals(_joined(merge(found, grouped))):
                return [each for each in spans if self._in_its_case(value, each)] or spans
        return ()

    def _find_restated(self, value: str) -> Iterator[Span]:
        form = self._unmarked.text
        for writing in (value, *writings(value)):
            wanted = _folded_reading(writing)
            spans = self._unmarked.originals(_own(wanted, form))
            cased = _cased(unmarked(writing))
            yield from (
                span
                for span in spans
                if not cased or _case_allows(cased, unmarked(self._text[slice(*span)]))
            )
        if (digits := _parted(value)) is not None:
            yield from self._unmarked.originals(each.span() for each in digits.finditer(form))

    def _tiers(self, wanted: str, size: int) -> Iterator[Iterable[Span]]:
        """Where a reading is in the form, from what is surely meant to what may be."""
        form = self._readable.text
        is_number = any(map(str.isdigit, wanted)) and not any(map(str.isalpha, wanted))

        def inside() -> Iterator[Span]:
            return _find(wanted, form)

        def whole() -> Iterator[Span]:
            found = self._words.find(wanted) if len(form) > _LONG else inside()
            return (each for each in found if not _cuts_word(form, each))

        if size > VERY_SHORT:
            yield whole()
        else:
            yield (each for each in whole() if not _goes_on(form, each))
            if is_number:
                yield whole()
        if is_number:
            yield (each for each in inside() if not _cuts_digits(form, each))
        if size > SHORT:
            yield inside()
        elif size > VERY_SHORT:
            yield (each for each in inside() if not _is_amid_word(form, each))

    def _in_its_case(self, value: str, span: Span) -> bool:
        shown = self._text[slice(*span)]
        return shown == value or _case_allows(_cased(value), shown)


@lru_cache(maxsize=1 << 12)
def locator_of(text: str) -> Locator:
    """The locator of a description, which many systems mask."""
    return Locator(text)


@lru_cache(maxsize=1 << 16)
def _folded_reading(text: str) -> str:
    return _Form.of(text, _folded).text.strip()


@lru_cache(maxsize=1 << 16)
def reading(text: str) -> str:
    """The form in which all writings of a value are equal, but for the rules on case."""
    written = _written(text)
    return _digits(written) or written


@lru_cache(maxsize=1 << 16)
def _written(text: str) -> str:
    return _Form.of(text, _readable).text.strip()


def _digits(written: str) -> str:
    """The digits of a long number; empty where it is none."""
    digits = "".join(filter(str.isdecimal, written))
    return digits if len(digits) >= LONG_NUMBER and not any(map(str.isalpha, written)) else ""


def typewritten(text: str) -> str:
    """A text of the same length with plain quotes and hyphens for typographic ones."""
    return text.translate(_TYPEWRITTEN)


def overlap(spans: Iterable[Span], others: Sequence[Span]) -> bool:
    """Whether any span shares a code point with any other."""
    return any(a < d and c < b for a, b in spans for c, d in others)


def place(
    text: str, entities: Iterable[tuple[str, str]]
) -> tuple[list[tuple[int, int, str]], list[tuple[str, str]]]:
    """Where entities that come without places are: each wherever it is (`PLACED`).

    Longer values go first, then those named first; no character is of two.

    Returns:
        Spans with their labels, in order; and the pairs whose value is nowhere in the text:
        invented ones.
    """
    locator = locator_of(text)
    taken = bytearray(len(text))
    placed: list[tuple[int, int, str]] = []
    invented: list[tuple[str, str]] = []
    # A stable sort: values of one length stay in order.
    for value, label in sorted(dict.fromkeys(entities), key=lambda pair: -len(pair[0])):
        spans = locator.spans(value, Strictness.PLACED)
        if not spans:
            invented.append((value, label))
        for start, end in spans:
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                placed.append((start, end, label))
    return sorted(placed), invented


class Claim(NamedTuple):
    """A span that is to be masked as a label; of claims to one span the lowest rank is granted."""

    start: int
    end: int
    rank: int
    label: str


def settle(text: str, claims: Iterable[Claim], kept: Iterable[Sequence[Span]]) -> list[Claim]:
    """Give every character of a text to one claim at most; the order of claims changes nothing.

    - A kept value stays wherever it is, also inside or across a claim, with one exception: inside
      a claim it stays only if it is nowhere else. So the age 32 does not show two digits of a
      masked number.
    - Of claims that overlap the longest is granted whole; of two of one length the earlier, of
      two to one span the one of lower rank, then of the first label.
    - What is left of a claim adjacent to a kept value or a longer claim is granted as well.

    `kept` holds the spans of each value that stays. The claims that are returned are in order,
    none overlaps another, and none has white space at its ends.
    """
    wanted = sorted(set(claims))
    taken = bytearray(len(text))
    for start, end in _staying(kept, wanted):
        taken[start:end] = b"\1" * (end - start)
    granted: list[Claim] = []
    # A stable sort: claims of one length stay in order.
    for claim in sorted(wanted, key=lambda claim: claim.start - claim.end):
        start, end, rank, label = claim
        free = _free(text, (start, end), taken)
        granted += [Claim(*span, rank, label) for span in free]
        taken[start:end] = b"\1" * (end - start)
    return sorted(granted)


def _staying(kept: Iterable[Sequence[Span]], claims: Sequence[Claim]) -> Iterator[Span]:
    starts = [claim.start for claim in claims]
    furthest = [*accumulate((claim.end for claim in claims), max)]

    def is_inside(span: Span) -> bool:
        before = bisect_right(starts, span[0])
        return before > 0 and furthest[before - 1] >= span[1]

    for spans in kept:
        yield from [span for span in spans if not is_inside(span)] or spans


def _free(text: str, span: Span, taken: bytearray) -> list[Span]:
    """The parts of a span that are not taken, without white space at their ends."""
    first, last = span
    found: list[Span] = []
    start = taken.find(0, first, last)
    while start != -1:
        next_taken = taken.find(1, start, last)
        end = last if next_taken == -1 else next_taken
        piece = text[start:end]
        if visible := piece.strip():
            begin = start + len(piece) - len(piece.lstrip())
            found.append((begin, begin + len(visible)))
        start = taken.find(0, end, last)
    return found


class _Form:
    """A text in a form in which different writings are equal, and the way back.

    Almost every character of the text is one of the form. The others (runs of white space,
    letters with marks, ligatures) are stretches: where they are in the form, and where in the
    text. No match may begin or end inside one.
    """

    def __init__(self, text: str, stretches: Sequence[array[int]]) -> None:
        self.text = text
        self._begins, self._ends, self._firsts, self._lasts = stretches

    @classmethod
    def of(cls, text: str, form: Callable[[str], str]) -> _Form:
        """Bring a text into a form, given for a character with all that continues it."""
        present = set(text)
        table = {ord(character): form(character) for character in present}
        pieces: list[str] = []
        begins, ends, firsts, lasts = stretches = tuple(array("L") for _ in range(4))
        place = length = 0
        for match in _stretches(present, table).finditer(text):
            first, last = match.span()
            pieces += [text[place:first].translate(table), form(match[0])]
            begins.append(length + first - place)
            length += first - place + len(pieces[-1])
            ends.append(length)
            firsts.append(first)
            lasts.append(last)
            place = last
        return cls("".join([*pieces, text[place:].translate(table)]), stretches)

    def find(self, wanted: str) -> list[Span]:
        """Where a piece of the form is in the text."""
        return self.originals(_find(wanted, self.text))

    def originals(self, found: Iterable[Span]) -> list[Span]:
        """The spans of the text that spans of the form come from; those that have one."""
        ends = ((self._start(start), self._end(end)) for start, end in found)
        return [(start, end) for start, end in ends if start is not None and end is not None]

    def _start(self, place: int) -> int | None:
        number = bisect_right(self._begins, place) - 1
        if number < 0:
            return place
        if self._begins[number] == place < self._ends[number]:
            return self._firsts[number]
        return self._behind(number, place)

    def _end(self, place: int) -> int | None:
        number = bisect_left(self._begins, place) - 1
        return place if number < 0 else self._behind(number, place)

    def _behind(self, number: int, place: int) -> int | None:
        beyond = place - self._ends[number]
        return None if beyond < 0 else self._lasts[number] + beyond


class _WordIndex:
    """Where each word of a long text is: a value of words is then found without a search."""

    def __init__(self, text: str) -> None:
        self._text = text
        alone = "".join(re.escape(c) for c in set(text) if c.isalnum() and not _is_joined(c + c))
        self._word = re.compile(rf"[{alone}]|[^\W_{alone}]+" if alone else r"[^\W_]+")
        self._starts: dict[str, array[int]] = {}
        for match in self._word.finditer(text):
            starts = self._starts.get(match[0])
            if starts is None:
                starts = self._starts[match[0]] = array("L")
            starts.append(match.start())

    def find(self, wanted: str) -> Iterator[Span]:
        """Where a piece of the text is, if it begins and ends with words."""
        words = [*self._word.finditer(wanted)]
        if not words:
            yield from _find(wanted, self._text)
            return
        rarest = min(words, key=lambda word: len(self._starts.get(word[0], ())))
        for place in self._starts.get(rarest[0], ()):
            start = place - rarest.start()
            if start >= 0 and self._text.startswith(wanted, start):
                yield start, start + len(wanted)


class _Numbers:
    """The long numbers of a text without what groups their digits."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = array("L")
        self._groups: set[int] = set()
        parts: list[str] = []
        for match in _GROUPED.finditer(text):
            for group in _DIGITS.finditer(text, *match.span()):
                self._groups.add(len(self._places))
                self._places.extend(range(*group.span()))
                parts.append(group[0])
            self._places.append(match.end())
            parts.append("\n")
        self._digits = "".join(parts)

    def find(self, digits: str) -> Iterator[Span]:
        """Where the digits of a number follow each other, and the number does not go on."""
        for first, end in _find(digits, self._digits):
            span = self._places[first], self._places[end - 1] + 1
            if first in self._groups and not _cuts_word(self._text, span):
                yield span


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, those that overlap made one."""
    start = end = 0
    for first, last in spans:
        if first >= end:
            if end:
                yield start, end
            start = first
        end = max(end, last)
    if end:
        yield start, end


def _find(wanted: str, text: str) -> Iterator[Span]:
    """Where a text is, also where it overlaps itself; an empty one is nowhere."""
    start = text.find(wanted) if wanted else -1
    # Each search costs as much as the value is long: too much for one that repeats itself.
    period = _period(wanted) if start != -1 and len(wanted) > _SELDOM_REPEATED else 0
    repeated = wanted[-period:] if period else ""
    while start != -1:
        end = start + len(wanted)
        yield start, end
        goes_on = repeated and text.startswith(repeated, end)
        start = start + period if goes_on else text.find(wanted, start + 1)


def _period(text: str) -> int:
    """The least number of characters after which a text repeats itself, to its end.

    The prefix function of Knuth, Morris and Pratt (1977).
    """
    borders = array("L", [0])
    border = 0
    for character in text[1:]:
        while border and text[border] != character:
            border = borders[border - 1]
        border += text[border] == character
        borders.append(border)
    return len(text) - border


def _verbatim(value: str, text: str) -> Iterator[Span]:
    for span in _find(value, text) if value.strip() else ():
        if not _cuts_word(text, span, underscore=True) and not _cuts_number(text, span):
            yield span


def _stretches(present: set[str], table: dict[int, str]) -> re.Pattern[str]:
    """Finds what does not become one character of a form, in a text of these characters."""
    longer = [c for c in present if len(table[ord(c)]) != 1]
    silent = "".join(re.escape(c) for c in longer if not table[ord(c)])
    joining = silent + "".join(re.escape(c) for c in present if _continues(c))
    if not longer and not joining:
        return _SPACES
    patterns = [rf"\s[\s{silent}]+"]
    patterns += [rf"\S[{joining}]+"] if joining else []
    patterns += [f"[{''.join(map(re.escape, longer))}]"] if longer else []
    return re.compile("|".join(patterns))


@lru_cache(maxsize=1 << 14)
def _continues(character: str) -> bool:
    """Whether it belongs to the character before it.

    To bring each such group into NFC is to bring the whole text.
    """
    marks = unicodedata.category(character).startswith("M")
    return marks or _COMPOSING.match(character) is not None


def _equal(characters: str) -> str:
    return " " if characters.isspace() else _normalised("NFC", characters)


@lru_cache(maxsize=1 << 14)
def _readable(characters: str) -> str:
    if characters[:1].isspace():
        return " "
    # What case folding takes apart is put together again.
    return _normalised("NFC", _plain(characters).casefold())


@lru_cache(maxsize=1 << 14)
def _folded(characters: str) -> str:
    return unmarked(_readable(characters))


def _plain(characters: str) -> str:
    visible = "".join(each for each in characters if not _is_silent(each)).translate(_ALIKE)
    plain = _normalised("NFKC", visible)
    # To NFKC, accents that stand alone are spaces with an accent.
    form = _normalised("NFC", visible) if " " in plain else plain
    return form.translate(_ALIKE)


def _normalised(form: Literal["NFC", "NFKC"], characters: str) -> str:
    # Its time grows with the square of the marks on one letter.
    return characters if len(characters) > _MOST_MARKS else unicodedata.normalize(form, characters)


def _is_silent(character: str) -> bool:
    """Whether it shows nothing and is no white space."""
    if unicodedata.category(character) in {"Cc", "Cf"}:
        return not character.isspace()
    return _VARIATION.match(character) is not None


@lru_cache(maxsize=1 << 16)
def _cased(value: str) -> str:
    """A value in its own case; empty where its case does not count."""
    if len(_written(value)) > SHORT:
        return ""
    plain = _plain(value).strip()
    return plain if plain.isalpha() and plain[0].isupper() else ""


def _case_allows(value: str, shown: str) -> bool:
    if not value:
        return True
    plain = _plain(shown).strip()
    return plain == value or (plain.isupper() and not value.isupper())


@lru_cache(maxsize=1 << 14)
def _is_joined(pair: str) -> bool:
    """Whether two adjacent characters are of one word."""
    return tokenize(pair) == [Token(0, 2)]


def _is_inside_word(text: str, place: int, *, underscore: bool = False) -> bool:
    if not 0 < place < len(text):
        return False
    before = place - 1
    while before > max(0, place - _MOST_MARKS) and _continues(text[before]):
        before -= 1
    pair = text[before] + text[place]
    return _is_joined(pair) and (underscore or "_" not in pair)


def _cuts_word(text: str, span: Span, *, underscore: bool = False) -> bool:
    start, end = span
    return _is_inside_word(text, start, underscore=underscore) or _is_inside_word(
        text, end, underscore=underscore
    )


def _cuts_digits(text: str, span: Span) -> bool:
    start, end = span
    return text[max(0, start - 1) : start].isdigit() or text[end : end + 1].isdigit()


def _is_amid_word(text: str, span: Span) -> bool:
    return _is_inside_word(text, span[0]) and _is_inside_word(text, span[1])


def _goes_on(text: str, span: Span) -> bool:
    """Whether a number or an abbreviation goes on beyond a span: `m` in `p.m.` or `I'm`."""
    return _cuts(text, span, str.isalpha, _IN_ABBREVIATIONS) or _cuts_number(text, span)


def _cuts_number(text: str, span: Span) -> bool:
    """Whether a number goes on beyond a span: 32 is none of its own in 1,320.32 or 2024-10-32."""
    return _cuts(text, span, str.isdigit, _IN_NUMBERS)


def _own(wanted: str, text: str) -> Iterator[Span]:
    """Where a text is as words of its own; a number may be next to letters (`25yo`)."""
    is_number = wanted.isdigit()
    short = len(_LETTER_OR_DIGIT.findall(wanted)) <= VERY_SHORT
    goes_on = _goes_on if short else _cuts_number
    spelled = NUMBER_WORDS.search(wanted) is not None
    for span in _find(wanted, text):
        cut = _cuts_word(text, span) and not (is_number and not _cuts_digits(text, span))
        if not cut and not goes_on(text, span) and not (spelled and _cuts_spelled(text, span)):
            yield span


def _cuts_spelled(text: str, span: Span) -> bool:
    """Whether a number in words goes on beyond a span: "thirty" in "thirty-two"."""
    start, end = span
    return any(
        number.start() < start < number.end() or number.start() < end < number.end()
        for number in NUMBER_WORDS.finditer(text, max(0, start - 100), end + 100)
    )


@lru_cache(maxsize=1 << 14)
def _parted(value: str) -> re.Pattern[str] | None:
    """The digits of a long number with whatever parts them; None for another value."""
    plain = reading(value)
    digits = re.sub(r"[\s+().,/'-]", "", plain)
    if not (digits.isascii() and digits.isdigit() and len(digits) >= LONG_NUMBER):
        return None
    between = r"[\s().,/'-]{0,3}"
    return re.compile(rf"(?<![0-9])(?<![0-9][.,]){between.join(digits)}(?![0-9])")


def _cuts(text: str, span: Span, is_part: Callable[[str], bool], between: str) -> bool:
    start, end = span
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    begins = len(before) == 2 and before[1] in between and is_part(before[0])
    ends = len(after) == 2 and after[0] in between and is_part(after[1])
    return (begins and is_part(text[start])) or (ends and is_part(text[end - 1]))
