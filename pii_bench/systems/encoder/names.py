"""Parts of a person's full name: where one is alone, and whose it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.systems.encoder.reader import Labelled

_WORD: Final = re.compile(r"[^\W\d_]+")
_SHORTEST: Final = 3
# Capitalised words of names that mean something else when they are alone.
_NO_PARTS: Final = frozenset(
    {
        *("aunt", "auntie", "brother", "captain", "dame", "doctor", "father", "judge", "justice"),
        *(
            "king",
            "lady",
            "lord",
            "madam",
            "miss",
            "mother",
            "mrs",
            "nurse",
            "officer",
            "president",
        ),
        *("prince", "princess", "prof", "professor", "queen", "sir", "sister", "uncle"),
        *("april", "august", "june", "may"),
        *(
            "and",
            "bin",
            "das",
            "del",
            "den",
            "der",
            "dos",
            "for",
            "los",
            "the",
            "van",
            "von",
            "will",
        ),
    }
)
_BEFORE_A_NAME_GOES_ON: Final = re.compile(r"[ \t]+(?=[^\W\d_])")


def with_parts_of_names(text: str, spans: Sequence[Labelled]) -> list[Labelled]:
    """Spans of a text, in order, with the places where a part of a full name is alone.

    A part is a capitalised word of a person's name of two words or more, which the text never
    writes in small letters. In front of another capitalised word that is in no span ("Wilk
    Street") it is taken for a part of another name.
    """
    taken = bytearray(len(text))
    for start, end, _ in spans:
        taken[start:end] = b"\1" * (end - start)
    parts = {
        part
        for start, end, kind in spans
        if kind is PiiType.PER
        for part in _parts(text[start:end])
    }
    alone = [
        match
        for match in _WORD.finditer(text)
        if match[0] in parts and not any(taken[slice(*match.span())])
    ]
    if not alone:
        return [*spans]
    written = set(_WORD.findall(text))
    found = [
        (*match.span(), PiiType.PER)
        for match in alone
        if match[0].lower() not in written and not _goes_on(text, match.end(), taken)
    ]
    return sorted([*spans, *found])


def whole_names(names: Iterable[str]) -> dict[str, str]:
    """Each name of a text by the one name whose words hold all of its own, or else by itself.

    Args:
        names: normalised.
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
        if len(word) >= _SHORTEST
        and word[0].isupper()
        and word[1:].islower()
        and word.lower() not in _NO_PARTS
    ]


def _goes_on(text: str, end: int, taken: bytearray) -> bool:
    """Whether a capitalised word follows that is in no span."""
    gap = _BEFORE_A_NAME_GOES_ON.match(text, end)
    return gap is not None and text[gap.end()].isupper() and not taken[gap.end()]
