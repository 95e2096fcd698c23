"""Further samples to train on: the same texts, written otherwise or about other values."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.variants import (
    MISREAD,
    cut,
    in_small_letters,
    misread,
    with_typos,
    without_punctuation,
)
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from faker import Faker

    from pii_bench.datasets.sample import Entity, Sample

    Rewrite = Callable[[str, Random], str]

# Latin letters, and names, cities and firms of many countries in them.
_LOCALES: Final = ("en_US", "en_GB", "de_DE", "fr_FR", "es_MX", "it_IT", "pl_PL", "sv_SE", "tr_TR")
_NAMES_OF_VALUES: Final = frozenset({PiiType.PER, PiiType.LOC, PiiType.ORG})
_NUMBERED: Final = frozenset({PiiType.CODE, PiiType.QUANTITY})
_TYPED_AMISS: Final = 0.03
_FIRST_NAME_ALONE: Final = 0.3


def augmented(sample: Sample, kinds: Sequence[str], random: Random) -> Sample | None:
    """A sample rewritten by some of the kinds, its annotations carried along.

    Args:
        sample: with spans; what it needs stays needed.
        kinds: of `KINDS`, or "values", of which one or two are drawn.
        random: draws.

    Returns:
        None where entities overlap, so that no text can be put together again.
    """
    whole = cut(sample)
    if not all(piece.whole for piece in whole.pieces):
        return None
    chosen = random.sample(list(kinds), min(len(kinds), random.choice((1, 2))))
    rewrites = [KINDS[kind] for kind in chosen if kind != "values"]
    slips = [KINDS[kind] for kind in chosen if kind in _WITHIN_ENTITIES]
    values = {entity.text: entity.text for entity in sample.entities}
    if "values" in chosen:
        values |= _other_values(sample, random)
    # Every mention of an entity is written alike: its annotation has one text.
    values = {text: _rewritten(value, slips, random) or value for text, value in values.items()}
    texts = [
        _rewritten(piece.text, rewrites, random) if entity is None else values[entity.text]
        for piece in whole.pieces
        for entity in (whole.entity(piece),)
    ]
    new = whole.with_texts(texts)
    return new and replace(new, query=_rewritten(sample.query or "", rewrites, random) or None)


def _rewritten(text: str, rewrites: Sequence[Rewrite], random: Random) -> str:
    for rewrite in rewrites:
        text = rewrite(text, random)
    return text


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
        whole = " " in entity.text and random.random() >= _FIRST_NAME_ALONE
        return f"{faker.first_name()} {faker.last_name()}" if whole else str(faker.first_name())
    if pii_type is PiiType.LOC:
        has_number = re.search(r"\d", entity.text)
        return str(faker.street_address()).replace("\n", " ") if has_number else str(faker.city())
    return entity.text if entity.text.isupper() else str(faker.company())


def _other_digits(text: str, random: Random) -> str:
    """The same form with other digits; the first of a number stays, and with it its size."""
    return re.sub(r"(?<=\d)\d", lambda _: str(random.randrange(10)), text)


KINDS: Final[dict[str, Rewrite]] = {
    "typos": lambda text, random: with_typos(text, random, _TYPED_AMISS),
    "scanned": lambda text, random: misread(text, random, _TYPED_AMISS, MISREAD),
    "no punctuation": lambda text, random: without_punctuation(text, random, 1),
    "small letters": lambda text, random: in_small_letters(text, random, 1),
}
"""Ways to rewrite a text and its query."""

_WITHIN_ENTITIES: Final = frozenset(KINDS) - {"no punctuation"}

ALL: Final = (*KINDS, "values")
