"""Perturbed versions of samples, with their annotations.

A kind changes the values of a text, the words between them, or both. Each version is checked by the
rules of `data check`, and is drawn again if it breaks a rule that the original does not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from random import Random
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
from pii_bench.scorer.writings import ordinal_suffix
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.datasets.value_formats import Amount

    Change = Callable[[str, Random, float], str]
    """Returns another text for a text, given the source of randomness and the rate."""
    Rewrite = Callable[[str, Entity | None], str]
    """Returns another text for a piece of a sample, given the entity that contains it, if any."""

TRIES: Final = 20
"""The number of draws of a version before its sample is left out."""

# Countries where streets have English names.
_ENGLISH: Final = frozenset(
    {"United States", "United Kingdom", "Ireland", "Canada", "Australia", "New Zealand"}
    | {"India", "Nigeria", "Kenya", "Ghana", "South Africa", "Philippines"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of perturbation.

    Attributes:
        description: what the kind does, for help texts.
        rate: the default share of letters, words, marks or values that it changes.
        start: returns what rewrites the pieces of one sample, given the source of randomness and
            the rate.
        values: True if it changes values: those of entities and of `meta.public`.
        words: True if it changes the text between values too. Otherwise it changes a value only
            if no other annotation overlaps it.
        query: True if it changes the words of the query; quoted values always follow the text.
    """

    description: str
    rate: float
    start: Callable[[Sample, Random, float], Rewrite]
    values: bool = True
    words: bool = False
    query: bool = False


class Unfit(StrEnum):
    """The reason why a sample has no version."""

    UNCHANGED = "unchanged"
    """The kind has nothing to change, or every draw leaves the text as it is."""
    FAULTY = "faulty"
    """No draw keeps the rules that the original keeps, with annotations that follow the text."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one kind, and the number of samples without one by reason."""

    samples: tuple[Sample, ...]
    unfit: Mapping[Unfit, int]


def versions(
    samples: Sequence[Sample],
    kind: str,
    *,
    dataset: str,
    seed: int,
    rate: float | None = None,
    limit: int | None = None,
) -> Versions:
    """Return at most `limit` versions of one kind, in the order of the samples.

    With a limit, every kind tries the samples in the same random order. `dataset` is the name for
    `meta`; without a rate, the kind's default holds.
    """
    order = list(range(len(samples)))
    Random(seed).shuffle(order)
    version_of: dict[int, Sample] = {}
    unfit: Counter[Unfit] = Counter()
    for index in order:
        if limit is not None and len(version_of) >= limit:
            break
        result = version(samples[index], kind, dataset=dataset, seed=seed, rate=rate)
        if isinstance(result, Unfit):
            unfit[result] += 1
        else:
            version_of[index] = result
    return Versions(tuple(version_of[index] for index in sorted(version_of)), unfit)


def version(
    sample: Sample, kind: str, *, dataset: str, seed: int, rate: float | None = None
) -> Sample | Unfit:
    """Return the version of one sample; the arguments are those of `versions`."""
    if rate is None:
        rate = KINDS[kind].rate
    perturbation = {
        "kind": kind,
        "rate": rate,
        "seed": seed,
        "dataset": dataset,
        "source": sample.id,
    }
    tolerated = Counter(problem.rule for problem in sample_problems(sample))
    unfit = Unfit.UNCHANGED
    for attempt in range(TRIES):
        # A string as seed gives the same numbers on every machine.
        random = Random(f"{seed} {kind} {sample.id} {attempt}")
        changed = _perturb(sample, kind, random, rate)
        if changed is not None and changed.description == sample.description:
            continue
        unfit = Unfit.FAULTY
        if changed is None or len(_entity_texts(changed)) < len(_entity_texts(sample)):
            continue
        changed = replace(
            changed,
            id=f"{sample.id}.{kind}",
            meta={**changed.meta, "perturbation": perturbation},
        )
        if Counter(problem.rule for problem in sample_problems(changed)) <= tolerated:
            return changed
    return unfit


def _entity_texts(sample: Sample) -> set[str]:
    return {entity.text for entity in sample.entities}


def _perturb(sample: Sample, kind_name: str, random: Random, rate: float) -> Sample | None:
    """Draw one version; None if the annotations cannot follow the text."""
    kind = KINDS[kind_name]
    rewrite = kind.start(sample, random, rate)
    cut_sample = cut(sample, public=True)
    # A value that occurs twice gets the same new text.
    new_values: dict[str, str] = {}
    texts: list[str] = []
    for piece in cut_sample.pieces:
        text = piece.text
        if not piece.inside:
            texts.append(rewrite(text, None) if kind.words else text)
        elif kind.values and (kind.words or piece.whole):
            if text not in new_values:
                new_values[text] = rewrite(text, cut_sample.entity(piece))
            texts.append(new_values[text])
        else:
            texts.append(text)
    changed = cut_sample.with_texts(texts)
    if changed is None or changed.query is None:
        return changed
    for before, after in zip(sample.entities, changed.entities, strict=True):
        new_values[before.text] = after.text
    query = _rewrite_query(changed.query, new_values, rewrite if kind.query else None)
    return replace(changed, query=query)


def _rewrite_query(query: str, new_values: Mapping[str, str], rewrite: Rewrite | None) -> str:
    """Replace the values that a query quotes, and rewrite its other words if asked to."""
    # The longest first, so that a value that contains another is replaced as a whole.
    values = "|".join(re.escape(text) for text in sorted(new_values, key=len, reverse=True))
    parts = re.split(rf"(?<!\w)({values})(?!\w)", query) if values else [query]
    new = ""
    for place, part in enumerate(parts):
        # Every second part is a value.
        if place % 2:
            new += new_values[part]
        else:
            new += rewrite(part, None) if rewrite else part
    return new


def _each_piece(change: Change) -> Callable[[Sample, Random, float], Rewrite]:
    """Change every piece in the same way."""

    def start(_: Sample, random: Random, rate: float) -> Rewrite:
        return lambda text, _: change(text, random, rate)

    return start


def _unusual_names(sample: Sample, random: Random, rate: float) -> Rewrite:
    """Replace full names by unusual ones that fit the pronouns of the text."""
    pronoun = _pronoun(sample.description)

    def rewrite(text: str, entity: Entity | None) -> str:
        is_name = entity is not None and entity.type == PiiType.PER
        if not is_name or " " not in text or random.random() >= rate:
            return text
        return _unusual_name(random, pronoun)

    return rewrite


def _pronoun(text: str) -> str:
    """Return the pronoun that names must fit; `they` if the text has both or none of the others."""
    has_she = re.search(r"\b(?:she|her|hers)\b", text, re.IGNORECASE) is not None
    has_he = re.search(r"\b(?:he|him|his)\b", text, re.IGNORECASE) is not None
    if has_she == has_he:
        return "they"
    return "she" if has_she else "he"


def _unusual_name(random: Random, pronoun: str) -> str:
    names = _table()["names"]
    cultures = load_pools("test").cultures
    culture = cultures[random.choice(sorted(cultures))]
    second_culture = cultures[random.choice(sorted(cultures))]
    first = random.choice(culture.first[pronoun])
    last = random.choice(culture.last)
    match random.choice(("rare", "joined", "particle", "initials", "words", "script")):
        case "joined":
            return f"{first} {last}-{random.choice(second_culture.last)}"
        case "particle":
            return f"{first} {random.choice(names['particles'])} {last}"
        case "initials":
            return f"{first[0]}. {random.choice('ABDEHJKLMNRST')}. {last}"
        case "words":
            return f"{random.choice(names['first_words'])} {random.choice(names['last_words'])}"
        case "script":
            return str(random.choice(names["scripts"]))
        case _:
            return f"{first} {last}"


def _foreign_places(_: Sample, random: Random, rate: float) -> Rewrite:
    """Replace streets and cities by those of a country where English is not spoken."""
    countries = load_pools("test").countries
    country = countries[random.choice(sorted(countries.keys() - _ENGLISH))]
    # So that two places stay different.
    used: set[str] = set()

    def rewrite(text: str, entity: Entity | None) -> str:
        if entity is None or entity.type != PiiType.LOC or random.random() >= rate:
            return text
        if entity.category not in {None, "Street Address", "City/Region"}:
            return text
        has_number = re.search(r"\d", text) is not None
        is_street = entity.category == "Street Address" or (has_number and not entity.category)
        places = set(country.streets if is_street else country.cities)
        unused = sorted(places - used)
        if not unused:
            return text
        place = random.choice(unused)
        used.add(place)
        return place.format(n=random.randrange(2, 190))

    return rewrite


def _foreign_words(_: Sample, random: Random, rate: float) -> Rewrite:
    """Replace common words by those of another language."""
    words = _table()["words"]
    common = re.compile(rf"\b(?:{'|'.join(words['same'])})\b", re.IGNORECASE)
    language = random.randrange(len(words["languages"]))

    def translate(match: re.Match[str]) -> str:
        word = match[0]
        if random.random() >= rate:
            return word
        translation: str = words["same"][word.lower()][language]
        if word[0].isupper():
            return translation[0].upper() + translation[1:]
        return translation

    return lambda text, _: common.sub(translate, text)


@cache
def _table() -> Mapping[str, Any]:
    return read_values(VALUES / "perturbation.toml")


_DATE_FORMATS: Final = ("%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%Y")
_TIME_FORMATS: Final = ("%H:%M:%S", "%H:%M", "%I:%M %p", "%I:%M:%S %p", "%I %p")
_LONG_NUMBER: Final = re.compile(r"(?P<code>\+\d{1,3}[ -])?\(?\d[\d ()-]{6,}\d")


def other_date(text: str, random: Random, rate: float) -> str:
    """Return a share of the dates and times in another format; other texts unchanged."""
    if random.random() >= rate:
        return text
    if (day := read_date(text)) is not None:
        return _choose_other(text, _date_forms(day), random)
    if (at := read_time(text)) is not None:
        return _choose_other(text, _time_forms(at), random)
    return text


def other_number(text: str, random: Random, rate: float) -> str:
    """Return a share of the amounts, percentages and long numbers in another format.

    Amounts in words and short numbers, such as "five euros" and "32", are unchanged.
    """
    if random.random() >= rate:
        return text
    if (amount := parse_amount(text)) is not None:
        # "Rs.50" has no cents.
        has_cents = re.search(r"(?<=\d)\.\d{1,2}\D*$", text) is not None
        return _choose_other(text, _amount_forms(amount, 2 if has_cents else 0), random)
    if parse_percentage(text) is not None:
        share = text.removesuffix("%")
        comma = share.replace(".", ",")
        return _choose_other(text, (f"{comma} %", f"{comma}%", f"{share} percent"), random)
    match = _LONG_NUMBER.fullmatch(text)
    if match is None or read_date(text) is not None:
        return text
    code = (match["code"] or "")[:-1]
    digits = re.sub(r"\D", "", text[len(code) :])
    return _choose_other(text, _long_number_forms(code, digits), random)


def _date_forms(day: dt.date) -> Sequence[str]:
    return (
        day.isoformat(),
        f"{day.day} {day:%B} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day:%d.%m.%Y}",
        f"{day:%d/%m/%Y}",
        f"{day:%Y/%m/%d}",
        f"{day:%a} {day.day} {day:%b} {day.year}",
        f"{day.day}{ordinal_suffix(day.day)} of {day:%B} {day.year}",
    )


def _time_forms(at: dt.time) -> Sequence[str]:
    hour = at.hour % 12 or 12
    half_day = f"{at:%p}".lower()
    if at.second:
        return (f"{at:%H:%M:%S}", f"{at:%H.%M.%S}", f"{hour}:{at:%M:%S} {half_day}")
    return (
        f"{at:%H:%M:%S}",
        f"{at:%H:%M}",
        f"{at:%H.%M}",
        f"{at:%H}h{at:%M}",
        f"{at:%H%M} hrs",
        f"{hour}:{at:%M} {half_day}",
    )


def _amount_forms(amount: Amount, decimals: int) -> Sequence[str]:
    whole, _, cents = f"{amount.value:,.{decimals}f}".partition(".")
    currency = amount.currency
    forms: list[str] = []
    # Other separators than those of "1,234.50".
    for thousands, decimal in ((".", ","), (" ", ","), ("'", "."), ("", ".")):
        number = whole.replace(",", thousands)
        if cents:
            number += decimal + cents
        forms += [f"{number} {currency}", f"{currency} {number}", f"{currency}{number}"]
    return forms


def _long_number_forms(code: str, digits: str) -> Sequence[str]:
    """Return a number after its country code, with its digits in groups or together."""
    forms = [digits]
    for size in (2, 3, 4):
        groups = [digits[start : start + size] for start in range(0, len(digits), size)]
        forms += [separator.join(groups) for separator in (" ", ".", "-")]
    return [f"{code} {form}".strip() for form in forms]


def _choose_other(text: str, forms: Iterable[str], random: Random) -> str:
    return random.choice(sorted(set(forms) - {text}))


def read_date(text: str) -> dt.date | None:
    """Return the date of a text in a supported format; None for other texts."""
    parsed = _parse(text, _DATE_FORMATS)
    return None if parsed is None else parsed.date()


def read_time(text: str) -> dt.time | None:
    """Return the time of a text in a supported format; None for other texts."""
    parsed = _parse(text.replace("p.m.", "pm").replace("a.m.", "am"), _TIME_FORMATS)
    return None if parsed is None else parsed.time()


def _parse(text: str, formats: Iterable[str]) -> dt.datetime | None:
    for form in formats:
        with suppress(ValueError):
            return dt.datetime.strptime(text, form)  # noqa: DTZ007 -- the texts name no time zone
    return None


KINDS: Final[Mapping[str, Kind]] = {
    "names": Kind(
        "unusual names: rare, hyphenated, made of words, other scripts", 1, _unusual_names
    ),
    "addresses": Kind("streets and cities of another language", 1, _foreign_places),
    "dates": Kind("dates and times in another format", 1, _each_piece(other_date)),
    "numbers": Kind("amounts and long numbers in another format", 1, _each_piece(other_number)),
    "foreign-words": Kind(
        "common words of another language",
        0.5,
        _foreign_words,
        values=False,
        words=True,
        query=True,
    ),
    "lower-case": Kind("no capitals", 1, _each_piece(in_small_letters), words=True, query=True),
    "upper-case": Kind("only capitals", 1, _each_piece(in_capitals), words=True, query=True),
    "typos": Kind("mistyped letters", 0.03, _each_piece(with_typos), words=True, query=True),
    "ocr": Kind("misread letters and digits", 0.05, _each_piece(misread), words=True),
    "punctuation": Kind(
        "no punctuation at the end of words",
        1,
        _each_piece(without_punctuation),
        words=True,
        query=True,
    ),
}
"""Every kind by name."""
