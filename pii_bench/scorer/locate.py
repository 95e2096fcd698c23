"""Find values in a text, and decide which of several overlapping spans is masked.

The whole suite finds values with this module, so that leaks are found by the same rules as
the spans to mask. `Strictness` lists the rules.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from pii_bench.scorer.text import Token, normalise, tokenize
from pii_bench.scorer.writings import NUMBER_WORDS, unmarked, writings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pii_bench.taxonomy import PiiType

Span: TypeAlias = tuple[int, int]
"""Start and end in code points of the original text, end exclusive."""


@dataclass(frozen=True, slots=True)
class DetectedSpan:
    """A span of PII in a text, in code points, end exclusive."""

    start: int
    end: int
    type: PiiType


class Strictness(StrEnum):
    """When a piece of text counts as an occurrence of a value.

    `VERBATIM`: the same code points, not inside a longer word or number. Datasets list the
    occurrences of their entities by this rule.

    `EQUAL`: equal after normalisation (Unicode NFC, runs of white space as one space, case
    counts), also inside a word. A predicted value without such an occurrence is hallucinated.

    `PLACED`: `VERBATIM` if there is such an occurrence, else `EQUAL`. Annotations and answers
    without offsets are located by this rule: `son` is not found in `person`, but `34` is found
    in `34F` if it occurs nowhere else.

    `READABLE`: anything that a reader recognises as the value. Values are masked and kept by
    this rule, and masked texts are searched for leaks by it:

    - All kinds of apostrophes, quotes and hyphens are equal, as are compatible forms of a
      character (NFKC: width variants, ligatures) and runs of white space. Invisible characters
      (soft hyphens, zero-width and directional characters) are ignored.
    - Case is ignored, except in a word of up to `SHORT` letters that begins with a capital: in
      lower case it is another word ("Will"), and an all-capitals word also differs from its
      capitalised form ("IT" and "It").
    - Numbers of `LONG_NUMBER` digits or more are equal if their digits are, however these are
      grouped: `0412 345 678`, `0412-345-678`, `(0412) 345678`. This includes dates, cards and
      amounts. Values with letters and as many digits are equal if they differ only in what is
      between a digit and the next digit or letter: `PX00451277`, `px-0045-1277`.
    - A value consists of whole words: "Ann" is not found in "Annual". A value of up to
      `VERY_SHORT` letters and digits is not found in a longer number or abbreviation either
      ("3.5", "p.m.", "I'm").
    - A value with no such occurrence is searched in any case, then inside words: a number next
      to letters (`25yo`); otherwise a value of up to `SHORT` letters and digits at the beginning
      or end of a word, and one of up to `VERY_SHORT` not at all.

    `RESTATED`: `READABLE` but never inside words, or another way to write the value
    (`pii_bench.scorer.writings`: "thirty-two" for 32, "Gothenburg" for "Göteborg"), with or
    without diacritics. Rewritten texts are searched for leaks by this rule.
    """

    VERBATIM = "verbatim"
    EQUAL = "equal"
    PLACED = "placed"
    READABLE = "readable"
    RESTATED = "restated"


SHORT: Final = 4
VERY_SHORT: Final = 2
LONG_NUMBER: Final = 7
"""Minimum number of digits of a value that is compared however it is grouped."""

_LONG_VALUE: Final = 1_000
"""Values longer than this are checked for a period, because overlapping matches are slow."""

_TYPEWRITTEN: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʹʻʼʽˈ՚＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        **dict.fromkeys("‐‑‒–—―−⁃־﹘﹣－", "-"),
    }
)
# Turkish has a capital I with a dot and a small i without one.
_ALIKE: Final = _TYPEWRITTEN | str.maketrans(dict.fromkeys("İı", "i"))
# Vowels and final consonants of Hangul, and the voiced marks of half-width kana.
_COMPOSING: Final = re.compile("[\u1160-\u11ff\uff9e\uff9f]")
_VARIATION: Final = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")
_IN_NUMBERS: Final = ".,:/-"
_GROUPING: Final = re.compile(
    r"(?<=\d)[ ().,:/+'-]{1,3}(?=[^\W_])|(?<=[^\W_])[ ().,:/+'-]{1,3}(?=\d)"
)
_IN_ABBREVIATIONS: Final = "'.-_@&"
_MOST_MARKS: Final = 30
"""Combining marks on one letter: Unicode's limit for readable text (UAX 15, section 13)."""


class Locator:
    """Finds values in one text and caches the results."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans: dict[tuple[str, Strictness], tuple[Span, ...]] = {}

    def spans(self, value: str, strictness: Strictness = Strictness.READABLE) -> tuple[Span, ...]:
        """Return the spans of a value in order; a blank value has none.

        Overlapping occurrences of a readable or restated value are joined into one span.
        """
        key = value, strictness
        if key not in self._spans:
            self._spans[key] = tuple(self._search(value, strictness))
        return self._spans[key]

    def _search(self, value: str, strictness: Strictness) -> Iterable[Span]:
        match strictness:
            case Strictness.VERBATIM:
                return _verbatim(value, self._text)
            case Strictness.EQUAL:
                return self._equal.original_spans(_find(normalise(value), self._equal.text))
            case Strictness.PLACED:
                exact = self.spans(value, Strictness.VERBATIM)
                return exact or self.spans(value, Strictness.EQUAL)
            case Strictness.READABLE:
                return self._find_readable(value)
            case Strictness.RESTATED:
                return _join(sorted(self._find_restated(value)))

    @cached_property
    def _equal(self) -> _FoldedText:
        return _FoldedText(self._text, _equal)

    @cached_property
    def _readable(self) -> _FoldedText:
        return _FoldedText(self._text, _readable)

    @cached_property
    def _unmarked(self) -> _FoldedText:
        return _FoldedText(self._text, _without_marks)

    def _find_readable(self, value: str) -> Sequence[Span]:
        folded_value = _fold_readable(value)
        regrouped = self._readable.find_ungrouped(_ungrouped(folded_value))
        for candidates in _candidates(folded_value, self._readable.text):
            joined = _join(sorted([*candidates, *regrouped]))
            if spans := self._readable.original_spans(joined):
                return [span for span in spans if self._case_matches(value, span)] or spans
        return ()

    def _find_restated(self, value: str) -> Iterator[Span]:
        folded = self._unmarked.text
        for writing in (value, *writings(value)):
            cased = _cased(unmarked(writing))
            whole_words = _find_whole_words(_fold_without_marks(writing), folded)
            for start, end in self._unmarked.original_spans(whole_words):
                if not cased or _case_allows(cased, unmarked(self._text[start:end])):
                    yield start, end
        regrouped = self._unmarked.find_ungrouped(_ungrouped(_fold_without_marks(value)))
        yield from self._unmarked.original_spans(regrouped)

    def _case_matches(self, value: str, span: Span) -> bool:
        shown = self._text[slice(*span)]
        return shown == value or _case_allows(_cased(value), shown)


def _candidates(value: str, text: str) -> Iterator[list[Span]]:
    """Yield the occurrences of a folded value, from the strictest rule to the most lenient."""
    size = len(_LETTER_OR_DIGIT.findall(value))
    spans = list(_find(value, text))
    whole_words = [span for span in spans if not _cuts_word(text, span)]
    if size > VERY_SHORT:
        yield whole_words
    else:
        yield [span for span in whole_words if not _goes_on(text, span)]
    if any(map(str.isdigit, value)) and not any(map(str.isalpha, value)):
        yield whole_words
        yield [span for span in spans if not _cuts_digits(text, span)]
    if size > SHORT:
        yield spans
    elif size > VERY_SHORT:
        yield [span for span in spans if not _is_amid_word(text, span)]


@lru_cache(maxsize=1 << 12)
def locator_of(text: str) -> Locator:
    """Return the cached locator of a description, which many systems mask."""
    return Locator(text)


@lru_cache(maxsize=1 << 16)
def reading(text: str) -> str:
    """Return a key that all readable writings of a value share, ignoring the rules on case."""
    folded = _fold_readable(text)
    return _ungrouped(folded) or folded


@lru_cache(maxsize=1 << 16)
def _fold_readable(text: str) -> str:
    return _FoldedText(text, _readable).text.strip()


@lru_cache(maxsize=1 << 16)
def _fold_without_marks(text: str) -> str:
    return _FoldedText(text, _without_marks).text.strip()


def _ungrouped(folded: str) -> str:
    """Return a value with a long number without its grouping, or "" for any other value."""
    digits = "".join(filter(str.isdecimal, folded))
    if len(digits) < LONG_NUMBER:
        return ""
    return _GROUPING.sub("", folded) if any(map(str.isalpha, folded)) else digits


def typewritten(text: str) -> str:
    """Replace typographic quotes and hyphens by ASCII ones; the length stays the same."""
    return text.translate(_TYPEWRITTEN)


def overlap(spans: Iterable[Span], others: Sequence[Span]) -> bool:
    """Return whether any of `spans` shares a code point with any of `others`."""
    return any(a < d and c < b for a, b in spans for c, d in others)


def place_entities(
    text: str, entities: Iterable[tuple[str, str]]
) -> tuple[list[tuple[int, int, str]], list[tuple[str, str]]]:
    """Locate (value, label) pairs that come without offsets, by the rule `PLACED`.

    Longer values are placed first, then those named first. Spans never overlap. Returns the
    (start, end, label) spans in order, and the pairs whose value is not in the text.
    """
    locator = locator_of(text)
    taken = bytearray(len(text))
    placed: list[tuple[int, int, str]] = []
    invented: list[tuple[str, str]] = []
    for value, label in sorted(dict.fromkeys(entities), key=lambda pair: -len(pair[0])):
        spans = locator.spans(value, Strictness.PLACED)
        if not spans:
            invented.append((value, label))
        for start, end in spans:
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                placed.append((start, end, label))
    return sorted(placed), invented


def within_one_of(spans: Iterable[Span]) -> Callable[[Span], bool]:
    """Return a function that tells whether a single one of `spans` contains all of a span."""
    ordered = sorted(spans)
    starts = [start for start, _ in ordered]
    reach = list(accumulate((end for _, end in ordered), max))

    def inside(span: Span) -> bool:
        before = bisect_right(starts, span[0])
        return before > 0 and span[1] <= reach[before - 1]

    return inside


class Claim(NamedTuple):
    """A request to mask a span with a label; of requests for the same span the lowest rank wins."""

    start: int
    end: int
    rank: int
    label: str


def resolve_claims(
    text: str, claims: Iterable[Claim], kept: Iterable[Sequence[Span]]
) -> list[Claim]:
    """Return the parts of claims to mask, in order and without overlaps.

    - The spans of a kept value stay readable, also within or across a claim, with one exception:
      a span inside a claim stays only if the value occurs nowhere else. So keeping the age 32
      does not reveal two digits of a masked number.
    - Of overlapping claims the longest wins, then the earliest, then the lowest rank, then the
      first label. The order of `claims` does not matter.
    - The rest of a claim next to a kept value or a longer claim is masked, without white space at
      its ends.
    """
    ordered = sorted(set(claims))
    is_claimed = within_one_of((claim.start, claim.end) for claim in ordered)
    taken = bytearray(len(text))
    for spans in kept:
        for start, end in [span for span in spans if not is_claimed(span)] or spans:
            taken[start:end] = b"\1" * (end - start)
    granted: list[Claim] = []
    for start, end, rank, label in sorted(ordered, key=lambda claim: claim.start - claim.end):
        granted += [Claim(*free, rank, label) for free in _free(text, (start, end), taken)]
        taken[start:end] = b"\1" * (end - start)
    return sorted(granted)


def _free(text: str, span: Span, taken: bytearray) -> Iterator[Span]:
    """Yield the free parts of a span, without white space at their ends."""
    for is_taken, part in groupby(range(*span), key=taken.__getitem__):
        visible = [offset for offset in part if not text[offset].isspace()]
        if visible and not is_taken:
            yield visible[0], visible[-1] + 1


class _FoldedText:
    """A text in a normal form, with the offsets of each of its characters in the original."""

    def __init__(self, text: str, fold: Callable[[str], str]) -> None:
        """Fold a text; `fold` maps a character and its combining marks to a normal form."""
        characters = set(text)
        table = {ord(character): fold(character) for character in characters}
        pieces: list[str] = []
        # Where each folded character starts in the original, and (one further) where it ends. No
        # match may begin or end inside an original group of characters: these have -1.
        self._starts, self._ends = array("i"), array("i", [-1])
        position = 0
        for match in _group_pattern(characters, table).finditer(text):
            first, last = match.span()
            self._add_plain(position, first)
            group = fold(match[0])
            if group:
                inside = [-1] * (len(group) - 1)
                self._starts.extend([first, *inside])
                self._ends.extend([*inside, last])
            pieces += [text[position:first].translate(table), group]
            position = last
        self._add_plain(position, len(text))
        self.text = "".join([*pieces, text[position:].translate(table)])

    def _add_plain(self, start: int, end: int) -> None:
        """Add the offsets of characters that fold one to one."""
        self._starts.extend(range(start, end))
        self._ends.extend(range(start + 1, end + 1))

    def original_spans(self, spans: Iterable[Span]) -> list[Span]:
        """Return the original spans of folded ones, without those that cut a group."""
        originals = ((self._starts[start], self._ends[end]) for start, end in spans)
        return [(start, end) for start, end in originals if start >= 0 and end >= 0]

    def find_ungrouped(self, value: str) -> list[Span]:
        """Return the spans of a number without its grouping that cut no word; none of ""."""
        if not value:
            return []
        text, offsets = self._ungrouped
        spans = ((offsets[start], offsets[end - 1] + 1) for start, end in _find(value, text))
        return [span for span in spans if not _cuts_word(self.text, span)]

    @cached_property
    def _ungrouped(self) -> tuple[str, array[int]]:
        """The text without the grouping of numbers, and the offset of each character in `text`."""
        offsets = array("i")
        parts: list[str] = []
        start = 0
        for match in _GROUPING.finditer(self.text):
            offsets.extend(range(start, match.start()))
            parts.append(self.text[start : match.start()])
            start = match.end()
        offsets.extend(range(start, len(self.text)))
        return "".join([*parts, self.text[start:]]), offsets


def _join(spans: Iterable[Span]) -> Iterator[Span]:
    """Join overlapping spans; the input is in order."""
    start = end = 0
    for first, last in spans:
        if first >= end:
            if end:
                yield start, end
            start = first
        end = max(end, last)
    if end:
        yield start, end


def _find(value: str, text: str) -> Iterator[Span]:
    """Yield all occurrences of a value, also overlapping ones; none if it is empty."""
    start = text.find(value) if value else -1
    # A search behind each match takes time proportional to the length of the value, so a long
    # value that repeats itself is compared by its period instead.
    period = _period(value) if start != -1 and len(value) > _LONG_VALUE else 0
    repeated = value[-period:] if period else ""
    while start != -1:
        end = start + len(value)
        yield start, end
        is_repeated = repeated and text.startswith(repeated, end)
        start = start + period if is_repeated else text.find(value, start + 1)


def _period(text: str) -> int:
    """Return the smallest shift by which a text matches itself.

    Computed by the prefix function of Knuth, Morris and Pratt (1977).
    """
    borders = [0]
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


def _group_pattern(characters: set[str], table: dict[int, str]) -> re.Pattern[str]:
    """Return a pattern of the groups of characters that `table` does not fold one by one.

    Characters that fold to nothing belong to what is before them.
    """
    not_single = [c for c in characters if len(table[ord(c)]) != 1]
    silent = "".join(re.escape(c) for c in not_single if not table[ord(c)])
    joining = silent + "".join(re.escape(c) for c in characters if _is_combining(c))
    patterns = [rf"\s[\s{silent}]+"]
    if joining:
        patterns.append(rf"\S[{joining}]+")
    if not_single:
        patterns.append(f"[{''.join(map(re.escape, not_single))}]")
    return re.compile("|".join(patterns))


@lru_cache(maxsize=1 << 14)
def _is_combining(character: str) -> bool:
    """Return whether a character combines with the one before it under NFC."""
    is_mark = unicodedata.category(character).startswith("M")
    return is_mark or _COMPOSING.match(character) is not None


def _equal(characters: str) -> str:
    return " " if characters.isspace() else _unicode_form("NFC", characters)


@lru_cache(maxsize=1 << 14)
def _readable(characters: str) -> str:
    if characters[:1].isspace():
        return " "
    # Case folding decomposes some characters.
    return _unicode_form("NFC", _plain(characters).casefold())


@lru_cache(maxsize=1 << 14)
def _without_marks(characters: str) -> str:
    return unmarked(_readable(characters))


def _plain(characters: str) -> str:
    visible = "".join(c for c in characters if not _is_silent(c)).translate(_ALIKE)
    plain = _unicode_form("NFKC", visible)
    # NFKC turns accents that stand alone into a space and an accent.
    form = _unicode_form("NFC", visible) if " " in plain else plain
    return form.translate(_ALIKE)


def _unicode_form(form: Literal["NFC", "NFKC"], characters: str) -> str:
    # Normalisation takes time quadratic in the number of marks on one letter.
    return characters if len(characters) > _MOST_MARKS else unicodedata.normalize(form, characters)


def _is_silent(character: str) -> bool:
    """Return whether a character is invisible and not white space."""
    if unicodedata.category(character) in {"Cc", "Cf"}:
        return not character.isspace()
    return _VARIATION.match(character) is not None


@lru_cache(maxsize=1 << 16)
def _cased(value: str) -> str:
    """Return a value in its own case, or "" if case is ignored for it."""
    if len(_fold_readable(value)) > SHORT:
        return ""
    plain = _plain(value).strip()
    return plain if plain.isalpha() and plain[0].isupper() else ""


def _case_allows(value: str, shown: str) -> bool:
    if not value:
        return True
    plain = _plain(shown).strip()
    return plain == value or (plain.isupper() and not value.isupper())


@lru_cache(maxsize=1 << 14)
def _is_same_word(pair: str) -> bool:
    """Return whether two adjacent characters belong to the same word."""
    return tokenize(pair) == [Token(0, 2)]


def _is_inside_word(text: str, position: int, *, underscore: bool = False) -> bool:
    if not 0 < position < len(text):
        return False
    before = position - 1
    while before > max(0, position - _MOST_MARKS) and _is_combining(text[before]):
        before -= 1
    pair = text[before] + text[position]
    return _is_same_word(pair) and (underscore or "_" not in pair)


def _cuts_word(text: str, span: Span, *, underscore: bool = False) -> bool:
    return any(_is_inside_word(text, position, underscore=underscore) for position in span)


def _cuts_digits(text: str, span: Span) -> bool:
    start, end = span
    return text[max(0, start - 1) : start].isdigit() or text[end : end + 1].isdigit()


def _is_amid_word(text: str, span: Span) -> bool:
    return all(_is_inside_word(text, position) for position in span)


def _goes_on(text: str, span: Span) -> bool:
    """Return whether a number or abbreviation extends beyond a span: `m` in `p.m.` or `I'm`."""
    return _cuts(text, span, str.isalpha, _IN_ABBREVIATIONS) or _cuts_number(text, span)


def _cuts_number(text: str, span: Span) -> bool:
    """Return whether a number extends beyond a span: 32 in 1,320.32 or 2024-10-32."""
    return _cuts(text, span, str.isdigit, _IN_NUMBERS)


def _find_whole_words(value: str, text: str) -> Iterator[Span]:
    """Yield the occurrences of a value as whole words; a number may touch letters (`25yo`)."""
    is_number = value.isdigit()
    is_very_short = len(_LETTER_OR_DIGIT.findall(value)) <= VERY_SHORT
    is_spelled = NUMBER_WORDS.search(value) is not None
    for span in _find(value, text):
        if _cuts_word(text, span) and (not is_number or _cuts_digits(text, span)):
            continue
        if _goes_on(text, span) if is_very_short else _cuts_number(text, span):
            continue
        if not (is_spelled and _cuts_number_words(text, span)):
            yield span


def _cuts_number_words(text: str, span: Span) -> bool:
    """Return whether a number in words extends beyond a span: "thirty" in "thirty-two"."""
    start, end = span
    return any(
        number.start() < start < number.end() or number.start() < end < number.end()
        for number in NUMBER_WORDS.finditer(text, max(0, start - 100), end + 100)
    )


def _cuts(text: str, span: Span, is_part: Callable[[str], bool], signs: str) -> bool:
    start, end = span
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    goes_on_before = len(before) == 2 and before[1] in signs and is_part(before[0])
    goes_on_after = len(after) == 2 and after[0] in signs and is_part(after[1])
    return (goes_on_before and is_part(text[start])) or (goes_on_after and is_part(text[end - 1]))
