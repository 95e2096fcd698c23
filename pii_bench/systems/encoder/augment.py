"""Further samples to train on: the same texts, written otherwise or about other values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import Related
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from faker import Faker

    from pii_bench.datasets.sample import Entity, Sample

    Rewrite = Callable[[str, Random], str]

# Latin letters, and names, cities and firms of many countries in them.
_LOCALES: Final = ("en_US", "en_GB", "de_DE", "fr_FR", "es_MX", "it_IT", "pl_PL", "sv_SE", "tr_TR")
_NAMES_OF_VALUES: Final = frozenset({PiiType.PER, PiiType.LOC, PiiType.ORG})
_NUMBERED: Final = frozenset({PiiType.CODE, PiiType.QUANTITY})
_TYPED_AMISS: Final = 0.03
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_READ_AMISS: Final = {"l": "1", "o": "0", "rn": "m", "m": "rn", "e": "c", "I": "l", "S": "5"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text: of one entity, or between entities.

    Attributes:
        entity: (subject, text) of the entities that stand here; empty between them.
    """

    text: str
    entity: tuple[tuple[str, str], ...]


def augmented(sample: Sample, kinds: Sequence[str], random: Random) -> Sample | None:
    """A sample rewritten by some of the kinds, its annotations carried along.

    Args:
        sample: with spans; what it needs stays needed.
        kinds: of `KINDS`, or "values", of which one or two are drawn.
        random: draws.

    Returns:
        None where entities overlap, so that no text can be put together again.
    """
    pieces = list(_pieces(sample))
    if not pieces:
        return None
    chosen = random.sample(list(kinds), min(len(kinds), random.choice((1, 2))))
    swapped = _other_values(sample, random) if "values" in chosen else {}
    rewrites = [KINDS[kind] for kind in chosen if kind != "values"]
    text = ""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    texts: dict[tuple[str, str], str] = {}
    for piece in pieces:
        if piece.entity:
            told = swapped.get(piece.entity[0][1], piece.text)
            told = told.lower() if "small letters" in chosen else told
        else:
            told = piece.text
            for rewrite in rewrites:
                told = rewrite(told, random)
        for key in piece.entity:
            spans.setdefault(key, []).append((len(text), len(text) + len(told)))
            texts[key] = told
        text += told
    return _put_together(sample, text, spans, texts)


def _put_together(
    sample: Sample,
    text: str,
    spans: dict[tuple[str, str], list[tuple[int, int]]],
    texts: dict[tuple[str, str], str],
) -> Sample:
    subjects = tuple(
        replace(
            subject,
            entities=tuple(
                replace(
                    entity,
                    text=texts[subject.id, entity.text],
                    spans=tuple(spans[subject.id, entity.text]),
                )
                for entity in subject.entities
                if (subject.id, entity.text) in spans
            ),
        )
        for subject in sample.subjects
    )
    related = tuple(
        Related(need.subject, texts[need.subject, need.text])
        for need in sample.related
        if (need.subject, need.text) in texts
    )
    return replace(sample, description=text, subjects=subjects, related=related)


def _pieces(sample: Sample) -> Iterator[Piece]:
    """The text cut at its entities; nothing where two of them overlap without being one."""
    owners: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for subject in sample.subjects:
        for entity in subject.entities:
            for span in entity.spans:
                owners.setdefault(span, []).append((subject.id, entity.text))
    place = 0
    pieces = []
    for start, end in sorted(owners):
        if start < place:
            return
        pieces.append(Piece(sample.description[place:start], ()))
        pieces.append(Piece(sample.description[start:end], tuple(owners[start, end])))
        place = end
    pieces.append(Piece(sample.description[place:], ()))
    yield from pieces


def _other_values(sample: Sample, random: Random) -> dict[str, str]:
    """Another value for each entity that the query does not quote: text to text."""
    from faker import Faker

    faker = Faker(random.choice(_LOCALES))
    faker.seed_instance(random.random())
    query = (sample.query or "").lower()
    return {
        entity.text: _other_value(entity, faker, random)
        for entity in sample.entities
        if entity.text.lower() not in query
    }


def _other_value(entity: Entity, faker: Faker, random: Random) -> str:
    pii_type = PiiType(entity.type)
    if pii_type in _NUMBERED:
        return _other_digits(entity.text, random)
    if pii_type not in _NAMES_OF_VALUES or not entity.text[:1].isupper():
        return entity.text
    if pii_type is PiiType.PER:
        return f"{faker.first_name()} {faker.last_name()}" if " " in entity.text else entity.text
    if pii_type is PiiType.LOC:
        has_number = re.search(r"\d", entity.text)
        return str(faker.street_address()).replace("\n", " ") if has_number else str(faker.city())
    return entity.text if entity.text.isupper() else str(faker.company())


def _other_digits(text: str, random: Random) -> str:
    """The same form with other digits; the first of a number stays, and with it its size."""
    return re.sub(r"(?<=\d)\d", lambda _: str(random.randrange(10)), text)


def _typos(text: str, random: Random) -> str:
    """Neighbouring keys, swapped and missing letters."""
    told = []
    letters = list(text)
    place = 0
    while place < len(letters):
        letter = letters[place]
        following = letters[place + 1] if place + 1 < len(letters) else ""
        if not letter.isalpha() or random.random() >= _TYPED_AMISS:
            told.append(letter)
        elif (fault := random.randrange(3)) == 0:
            told.append(_neighbour(letter, random))
        elif fault == 1 and following.isalpha():
            told += [following, letter]
            place += 1
        place += 1
    return "".join(told)


def _neighbour(letter: str, random: Random) -> str:
    for row in _ROWS:
        place = row.find(letter.lower())
        if place >= 0:
            return row[max(place + random.choice((-1, 1)), 0) :][:1] or letter
    return letter


def _scanned(text: str, random: Random) -> str:
    """What is misread when a page is scanned."""
    pattern = "|".join(_READ_AMISS)
    return re.sub(
        pattern,
        lambda match: _READ_AMISS[match[0]] if random.random() < _TYPED_AMISS else match[0],
        text,
    )


def _unpunctuated(text: str, _: Random) -> str:
    return re.sub(r"[,;:!?.]+(?=\s)", "", text)


KINDS: Final[dict[str, Rewrite]] = {
    "typos": _typos,
    "scanned": _scanned,
    "no punctuation": _unpunctuated,
    "small letters": lambda text, _: text.lower(),
}
"""Ways to rewrite what is between entities."""

ALL: Final = (*KINDS, "values")
