"""Perturbed versions of samples, with their annotations.

A kind changes the values of a text, the words between them, or both. Each version is checked by the
rules of `data check`, and drawn again if it breaks one that the original does not.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pii_bench.construction.pools import VALUES, load_pools, read_values
from pii_bench.datasets.check.run import sample_problems
from pii_bench.datasets.value_formats import parse_amount, parse_percentage
from pii_bench.datasets.variants import (
    cut,
    in_capitals,
    in_small_letters,
    misread,
    with_typos,
    without_punctuation,
)
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Entity, Sample

    Noise = Callable[[str, Random, float], str]
    Rewrite = Callable[[str, Entity | None], str]
    """Another text for a piece, given the entity that it is part of."""

TRIES: Final = 20
"""Draws of a version before its sample is left out."""

# Where streets have English names.
_ENGLISH: Final = frozenset(
    {"United States", "United Kingdom", "Ireland", "Canada", "Australia", "New Zealand"}
    | {"India", "Nigeria", "Kenya", "Ghana", "South Africa", "Philippines"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of perturbation.

    Attributes:
        what: it does, for people.
        rate: the share that it changes, where none is asked for.
        prepare: from a sample, a draw and a rate, what rewrites its pieces.
        values: whether values are rewritten: those of entities, and of `meta.public`.
        words: whether what is between them is rewritten too. Where it is not, a value is
            rewritten only as a whole.
        query: whether the query's own words are; what it quotes of a value always is.
    """

    what: str
    rate: float
    prepare: Callable[[Sample, Random, float], Rewrite]
    values: bool = True
    words: bool = False
    query: bool = False


class Unfit(StrEnum):
    """The reason why a sample has no version."""

    UNCHANGED = "unchanged"
    """The kind finds nothing in it, or draws leave all as it is."""
    FAULTY = "faulty"
    """Each of `TRIES` draws breaks a rule that the original does not."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one kind, and the number of samples without one by reason."""

    samples: tuple[Sample, ...]
    unfit: Mapping[Unfit, int]


def versions(
    samples: Sequence[Sample],
    kind: str,
    *,
    of: str,
    seed: int,
    rate: float | None = None,
    limit: int | None = None,
) -> Versions:
    """Return the versions of one kind, in the order of the samples.

    Args:
        samples: of a dataset.
        kind: of `KINDS`.
        of: the dataset's name, for `meta`.
        seed: decides about every draw; of the same samples in the same order for all kinds.
        rate: the share of letters, words, marks or values that is changed; None for the kind's.
        limit: stop at so many versions.
    """
    order = list(range(len(samples)))
    Random(seed).shuffle(order)
    found: dict[int, Sample] = {}
    unfit: Counter[Unfit] = Counter()
    for place in order:
        if limit is not None and len(found) >= limit:
            break
        made = version(samples[place], kind, of=of, seed=seed, rate=rate)
        if isinstance(made, Unfit):
            unfit[made] += 1
        else:
            found[place] = made
    return Versions(tuple(found[place] for place in sorted(found)), unfit)


def version(
    sample: Sample, kind: str, *, of: str, seed: int, rate: float | None = None
) -> Sample | Unfit:
    """Return the version of one sample; the arguments are those of `versions`."""
    known = Counter(problem.rule for problem in sample_problems(sample))
    share = KINDS[kind].rate if rate is None else rate
    facts = {"kind": kind, "rate": share, "seed": seed, "dataset": of, "source": sample.id}
    unfit = Unfit.UNCHANGED
    for attempt in range(TRIES):
        # A text as the seed: its numbers are the same everywhere.
        made = _made(sample, KINDS[kind], Random(f"{seed} {kind} {sample.id} {attempt}"), share)
        if made is not None and made.description == sample.description:
            continue
        unfit = Unfit.FAULTY
        if made is None or len(_texts(made)) < len(_texts(sample)):
            continue
        marked = replace(made, id=f"{sample.id}.{kind}", meta={**made.meta, "perturbation": facts})
        if Counter(problem.rule for problem in sample_problems(marked)) <= known:
            return marked
    return unfit


def _made(sample: Sample, kind: Kind, random: Random, rate: float) -> Sample | None:
    whole = cut(sample, public=True)
    rewrite = kind.prepare(sample, random, rate)
    # A value is the same wherever it is.
    values: dict[str, str] = {}
    texts = []
    for piece in whole.pieces:
        if not piece.inside:
            texts.append(rewrite(piece.text, None) if kind.words else piece.text)
        elif not kind.values or not (kind.words or piece.whole):
            texts.append(piece.text)
        else:
            if piece.text not in values:
                values[piece.text] = rewrite(piece.text, whole.entity(piece))
            texts.append(values[piece.text])
    made = whole.with_texts(texts)
    if made is None or made.query is None:
        return made
    pairs = zip(sample.entities, made.entities, strict=True)
    renamed = values | {before.text: after.text for before, after in pairs}
    return replace(made, query=_asked(made.query, renamed, rewrite if kind.query else None))


def _asked(query: str, renamed: Mapping[str, str], rewrite: Rewrite | None) -> str:
    """Return a query with its quoted values replaced and its own words changed."""
    quoted = "|".join(re.escape(text) for text in sorted(renamed, key=len, reverse=True))
    # What is caught takes every second place.
    parts = re.split(rf"(?<!\w)({quoted})(?!\w)", query) if quoted else [query]
    return "".join(
        renamed[part] if place % 2 else rewrite(part, None) if rewrite else part
        for place, part in enumerate(parts)
    )


def _texts(sample: Sample) -> set[str]:
    return {entity.text for entity in sample.entities}


def _noise(noise: Noise) -> Callable[[Sample, Random, float], Rewrite]:
    return lambda _, random, rate: lambda text, __: noise(text, random, rate)


def _reformed(other: Callable[[str, Random], str]) -> Callable[[Sample, Random, float], Rewrite]:
    return lambda _, random, rate: (
        lambda text, __: other(text, random) if random.random() < rate else text
    )


def _with_unusual_names(sample: Sample, random: Random, rate: float) -> Rewrite:
    pronoun = _pronoun(sample.description)

    def rewrite(text: str, entity: Entity | None) -> str:
        is_name = entity is not None and entity.type == PiiType.PER
        if not is_name or " " not in text or random.random() >= rate:
            return text
        return _unusual_name(random, pronoun)

    return rewrite


def _pronoun(text: str) -> str:
    """Return the pronoun that names must fit; `they` if the text has both or none of the others."""
    found = {
        pronoun
        for pronoun, words in (("she", "she|her|hers"), ("he", "he|him|his"))
        if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE)
    }
    return found.pop() if len(found) == 1 else "they"


def _unusual_name(random: Random, pronoun: str) -> str:
    names = _table()["names"]
    cultures = load_pools("test").cultures
    culture, other = (cultures[random.choice(sorted(cultures))] for _ in range(2))
    first, last = random.choice(culture.first[pronoun]), random.choice(culture.last)
    match random.choice(("rare", "joined", "particle", "initials", "words", "script")):
        case "joined":
            return f"{first} {last}-{random.choice(other.last)}"
        case "particle":
            return f"{first} {random.choice(names['particles'])} {last}"
        case "initials":
            return f"{first[0]}. {random.choice('ABDEHJKLMNRST')}. {last}"
        case "words":
            words = random.choice(names["first_words"]), random.choice(names["last_words"])
            return " ".join(words)
        case "script":
            return str(random.choice(names["scripts"]))
        case _:
            return f"{first} {last}"


def _elsewhere(_: Sample, random: Random, rate: float) -> Rewrite:
    """Return streets and cities of a country where English is not spoken."""
    countries = load_pools("test").countries
    country = countries[random.choice(sorted(countries.keys() - _ENGLISH))]
    # Two places stay two.
    taken: set[str] = set()

    def rewrite(text: str, entity: Entity | None) -> str:
        if entity is None or entity.type != PiiType.LOC or random.random() >= rate:
            return text
        has_number = re.search(r"\d", text) is not None
        match entity.category:
            case "Street Address":
                is_street = True
            case "City/Region":
                is_street = False
            case None:
                is_street = has_number
            case _:
                return text
        left = sorted({*(country.streets if is_street else country.cities)} - taken)
        if not left:
            return text
        chosen: str = random.choice(left)
        taken.add(chosen)
        return chosen.format(n=random.randrange(2, 190))

    return rewrite


def _with_foreign_words(_: Sample, random: Random, rate: float) -> Rewrite:
    words = _table()["words"]
    language = random.randrange(len(words["languages"]))
    pattern = re.compile(rf"\b(?:{'|'.join(words['same'])})\b", re.IGNORECASE)

    def told(found: re.Match[str]) -> str:
        word: str = words["same"][found[0].lower()][language]
        if random.random() >= rate:
            return found[0]
        return word[0].upper() + word[1:] if found[0][0].isupper() else word

    return lambda text, __: pattern.sub(told, text)


@cache
def _table() -> Mapping[str, Any]:
    return read_values(VALUES / "perturbation.toml")


_DATES_READ: Final = ("%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%Y")
_DATES_WRITTEN: Final[tuple[Callable[[dt.date], str], ...]] = (
    dt.date.isoformat,
    lambda day: f"{day.day} {day:%B} {day.year}",
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day:%d.%m.%Y}",
    lambda day: f"{day:%d/%m/%Y}",
    lambda day: f"{day:%Y/%m/%d}",
    lambda day: f"{day:%a} {day.day} {day:%b} {day.year}",
    lambda day: f"{day.day}{_ending(day.day)} of {day:%B} {day.year}",
)
_TIMES_READ: Final = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M:%S %p", "%I %p")
_TIMES_WRITTEN: Final[tuple[Callable[[dt.time], str], ...]] = (
    lambda at: f"{at:%H:%M:%S}",
    lambda at: f"{at:%H.%M.%S}",
    lambda at: f"{int(f'{at:%I}')}:{at:%M:%S} {at:%p}".lower(),
)
_FULL_MINUTES_WRITTEN: Final[tuple[Callable[[dt.time], str], ...]] = (
    lambda at: f"{at:%H:%M}",
    lambda at: f"{at:%H.%M}",
    lambda at: f"{at:%H}h{at:%M}",
    lambda at: f"{at:%H%M} hrs",
    lambda at: f"{int(f'{at:%I}')}:{at:%M} {at:%p}".lower(),
)
# From the separators of "1,234.50".
_SEPARATORS: Final = tuple(
    str.maketrans(each)
    for each in ({",": ".", ".": ","}, {",": " ", ".": ","}, {",": "'"}, {",": ""})
)
_DIGITS: Final = re.compile(r"(?P<code>\+\d{1,3}[ -])?\(?\d[\d ()-]{6,}\d")


def other_date(text: str, random: Random) -> str:
    """Return the same date or time in another format; other texts unchanged."""
    if (day := read_date(text)) is not None:
        return _other(text, (write(day) for write in _DATES_WRITTEN), random)
    if (at := read_time(text)) is not None:
        writers = _TIMES_WRITTEN if at.second else (_TIMES_WRITTEN[0], *_FULL_MINUTES_WRITTEN)
        return _other(text, (write(at) for write in writers), random)
    return text


def other_number(text: str, random: Random) -> str:
    """Return the same amount, percentage or long number in another format.

    Words and short numbers stay: "five euros", "32".
    """
    if (amount := parse_amount(text)) is not None:
        # "Rs.50" has no cents.
        cents = 2 if re.search(r"(?<=\d)\.\d{1,2}\D*$", text) else 0
        whole = f"{amount.value:,.{cents}f}"
        numbers = [whole.translate(each) for each in _SEPARATORS]
        sign = amount.currency
        forms = [form for n in numbers for form in (f"{n} {sign}", f"{sign} {n}", f"{sign}{n}")]
        return _other(text, forms, random)
    if parse_percentage(text) is not None:
        share = text[:-1]
        comma = share.replace(".", ",")
        return _other(text, (f"{comma} %", f"{comma}%", f"{share} percent"), random)
    found = _DIGITS.fullmatch(text)
    if found is None or read_date(text) is not None:
        return text
    code = (found["code"] or "")[:-1]
    digits = re.sub(r"\D", "", text[len(code) :])
    groups = [
        joint.join(digits[place : place + size] for place in range(0, len(digits), size))
        for size in (2, 3, 4)
        for joint in (" ", ".", "-")
    ]
    return _other(text, (f"{code} {each}".strip() for each in (*groups, digits)), random)


def read_date(text: str) -> dt.date | None:
    """Return the date of a text in a supported format; None for other texts."""
    read = _read(text, _DATES_READ)
    return None if read is None else dt.date(*read[:3])


def read_time(text: str) -> dt.time | None:
    """Return the time of a text in a supported format; None for other texts."""
    read = _read(text.replace("p.m.", "pm").replace("a.m.", "am"), _TIMES_READ)
    return None if read is None else dt.time(*read[3:6])


def _read(text: str, formats: Iterable[str]) -> time.struct_time | None:
    for each in formats:
        try:
            return time.strptime(text, each)
        except ValueError:
            continue
    return None


def _other(text: str, forms: Iterable[str], random: Random) -> str:
    return random.choice(sorted({*forms} - {text}))


def _ending(day: int) -> str:
    return "th" if day in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "names": Kind(
            "unusual names: rare, joined, of words, other scripts", 1, _with_unusual_names
        ),
        "addresses": Kind("streets and cities of another language", 1, _elsewhere),
        "dates": Kind("dates and times in another format", 1, _reformed(other_date)),
        "numbers": Kind("amounts and long numbers in another format", 1, _reformed(other_number)),
        "foreign-words": Kind(
            "common words of another language",
            0.5,
            _with_foreign_words,
            values=False,
            words=True,
            query=True,
        ),
        "lower-case": Kind("no capitals", 1, _noise(in_small_letters), words=True, query=True),
        "upper-case": Kind("capitals alone", 1, _noise(in_capitals), words=True, query=True),
        "typos": Kind("letters mistyped", 0.03, _noise(with_typos), words=True, query=True),
        "ocr": Kind("letters and digits misread", 0.05, _noise(misread), words=True),
        "punctuation": Kind(
            "no marks at the end of words", 1, _noise(without_punctuation), words=True, query=True
        ),
    }
)
"""Every kind by name."""
