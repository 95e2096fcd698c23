"""Checks of the annotations, the query and the related entities of a sample."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.text import Problem, annotated_spans, listed_spans, occurrences
from pii_bench.datasets.sample import perturbation_of, public_texts, reasons_of
from pii_bench.datasets.value_formats import AMOUNT, fits, is_ip_address
from pii_bench.scorer.locate import within_one_of
from pii_bench.scorer.writings import MONTH_NAMES
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span


# A part of a name, without particles ("van", "al") and initials.
_NAME_PART: Final = re.compile(r"[^\W\d_]\S+")

_RELATED_COUNT: Final = range(1, 4)
# The query of a conversation is about three of the descriptions that it joins.
_RELATED_COUNT_JOINED: Final = range(3, 10)

_MONTH_NAME: Final = rf"(?:{MONTH_NAMES})\b"
_MONTH: Final = rf"{_MONTH_NAME}\.?"
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,? \d{4}\b)?"

_IP_V6: Final = "IPv6 address"

# From specific to general: if two patterns match, the first one names the leak.
_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "e-mail address": re.compile(r"[\w.+-]+@\w[\w-]*(?:\.[\w-]+)+"),
    "handle": re.compile(r"(?<![\w.])@\w{2,}"),
    "IPv4 address": re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)"),
    _IP_V6: re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,}[0-9A-Fa-f]{0,4}(?![\w:])"),
    "hexadecimal string": re.compile(r"\b[0-9A-Fa-f]{32,}\b"),
    "date": re.compile(
        r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b"
        # After a day and a month without a year, a full stop ends the sentence.
        rf"|\b{_DAY} (?:of )?{_MONTH_NAME}(?:\.(?= \d{{4}}))?{_YEAR}|\b{_MONTH} {_DAY}\b{_YEAR}"
    ),
    "time": re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b"),
    "currency amount": AMOUNT,
    "percentage": re.compile(r"(?<![\d.])\d+\.\d{2} ?%"),
    "phone number": re.compile(
        r"\+\d[\d ().-]{6,}\d|(?<![\d-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\d-])"
    ),
    "social security number": re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
    "number in groups": re.compile(r"(?<!\d)\d{4}(?:[ -]\d{4}){2,}(?!\d)"),
    "run of digits": re.compile(r"\d{5,}"),
}


def format_problems(sample: Sample) -> Iterator[Problem]:
    """Check the categories and formats of entities.

    Rules:
    - `category`: the category is one of the 55 and belongs to the entity's type.
    - `format`: the text has a format of the category.

    Foreign entities without a category pass. `format` does not apply to samples whose difficulty
    is their formats (`meta.reasons`) and to perturbed ones (`meta.perturbation`).
    """
    has_forms = "forms" in reasons_of(sample) or perturbation_of(sample) is not None
    for entity in sample.entities:
        category, text = entity.category, entity.text
        if category is None:
            continue
        pii_type = TYPE_OF_CATEGORY.get(category)
        if pii_type is None:
            yield Problem(sample.id, "category", f"{category!r} is none of the 55")
            continue
        if entity.type != pii_type:
            reason = f"{text!r}: {category} is of type {pii_type}, not {entity.type}"
            yield Problem(sample.id, "category", reason)
        if not has_forms and not fits(text, category):
            yield Problem(sample.id, "format", f"{text!r} is no {category}")


def _name_parts(sample: Sample) -> list[str]:
    """Return the distinct words of full names, and handles without their sign.

    A person entity of several words without a category counts as a full name.
    """
    parts: list[str] = []
    for entity in sample.entities:
        words = entity.text.split()
        if entity.type != PiiType.PER:
            continue
        if entity.text.startswith("@"):
            parts.append(entity.text[1:])
        elif len(words) > 1 and entity.category in {"Full Name", None}:
            parts += [word for word in words if _NAME_PART.fullmatch(word) and not word.islower()]
    return list(dict.fromkeys(parts))


def span_problems(sample: Sample) -> Iterator[Problem]:
    """Check the spans of a sample.

    Rules:
    - `span-exact`: a span holds its entity's text and is listed once.
    - `span-complete`: an entity occurs in the description, and each whole-word occurrence is
      inside an annotated span.
    - `span-overlap`: of two overlapping spans one contains the other. One report per span.
    - `entity-repeated`: a subject has an entity of one text and type once.
    """
    for entity in sample.entities:
        yield from _exact(sample, entity)
    yield from _complete(sample)
    for first, second in _crossing(annotated_spans(sample)):
        text, other = (sample.description[start:end] for start, end in (first, second))
        reason = f"{text!r} and {other!r} overlap at {second[0]}"
        yield Problem(sample.id, "span-overlap", reason)
    for subject in sample.subjects:
        seen: set[tuple[str, str]] = set()
        for entity in subject.entities:
            if (key := (entity.text, entity.type)) in seen:
                reason = f"subject {subject.id} has {entity.text!r} twice as {entity.type}"
                yield Problem(sample.id, "entity-repeated", reason)
            seen.add(key)


def _exact(sample: Sample, entity: Entity) -> Iterator[Problem]:
    seen: set[Span] = set()
    for start, end in listed_spans(entity):
        if start < 0 or sample.description[start:end] != entity.text:
            reason = f"[{start}, {end}] does not hold {entity.text!r}"
            yield Problem(sample.id, "span-exact", reason)
        if (start, end) in seen:
            reason = f"[{start}, {end}] of {entity.text!r} is listed twice"
            yield Problem(sample.id, "span-exact", reason)
        seen.add((start, end))


def _complete(sample: Sample) -> Iterator[Problem]:
    is_annotated = within_one_of(annotated_spans(sample))
    unlisted = [entity.text for entity in sample.entities if not listed_spans(entity)]
    for text in dict.fromkeys(unlisted):
        if not occurrences(text, sample.description):
            yield Problem(sample.id, "span-complete", f"{text!r} is nowhere in the text")
    for text in dict.fromkeys(entity.text for entity in sample.entities):
        for start, end in occurrences(text, sample.description):
            if not is_annotated((start, end)):
                reason = f"{text!r} at [{start}, {end}] is not annotated"
                yield Problem(sample.id, "span-complete", reason)


def _crossing(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    """Yield (first, second) for each span that starts inside an earlier one and ends after it.

    `first` is the one of the earlier spans that ends first.
    """
    earlier: list[Span] = []
    for start, end in sorted(spans):
        earlier = [span for span in earlier if start < span[1]]
        crossed = [span for span in earlier if span[0] < start and span[1] < end]
        if crossed:
            yield min(crossed, key=lambda span: (span[1], span[0])), (start, end)
        earlier.append((start, end))


def query_problems(sample: Sample) -> Iterator[Problem]:
    """Check the query and the related entities of a sample; one without query passes.

    Rules:
    - `query-empty`: the query has text.
    - `query-value`: the query contains no entity's text, in any case.
    - `query-name`: the query contains no part of a person's name.
    - `related-outside`: a related entity is a gold entity.
    - `related-person`: a related entity is no name.
    - `related-repeated`: a related entity is listed once.
    - `related-count`: one to three entities are related, three to nine in a conversation
      (`meta.joined`), any number if `meta.reasons` says why the sample is difficult.
    """
    if sample.query is None:
        return
    if not sample.query.strip():
        yield Problem(sample.id, "query-empty", "the query has no text")
    yield from _related_problems(sample)
    yield from _wording_problems(sample, sample.query)


def _related_problems(sample: Sample) -> Iterator[Problem]:
    types: dict[tuple[str, str], set[str]] = {}
    for subject in sample.subjects:
        for entity in subject.entities:
            types.setdefault((subject.id, entity.text), set()).add(entity.type)
    needed = Counter((related.subject, related.text) for related in sample.related)
    for (subject_id, text), times in needed.items():
        entity_types = types.get((subject_id, text))
        if entity_types is None:
            reason = f"{text!r} is no entity of subject {subject_id}"
            yield Problem(sample.id, "related-outside", reason)
        elif entity_types == {PiiType.PER}:
            yield Problem(sample.id, "related-person", f"{text!r} is a person's name")
        if times > 1:
            reason = f"{text!r} of subject {subject_id} is listed {times} times"
            yield Problem(sample.id, "related-repeated", reason)
    allowed = _RELATED_COUNT_JOINED if "joined" in sample.meta else _RELATED_COUNT
    # In `frontier` some queries need nothing, and some nearly everything.
    if "reasons" not in sample.meta and len(needed) not in allowed:
        reason = f"{len(needed)} entities are needed, not {allowed[0]} to {allowed[-1]}"
        yield Problem(sample.id, "related-count", reason)


def _wording_problems(sample: Sample, query: str) -> Iterator[Problem]:
    texts = dict.fromkeys(entity.text for entity in sample.entities)
    folded = query.casefold()
    quoted = [text for text in texts if occurrences(text.casefold(), folded)]
    for text in quoted:
        yield Problem(sample.id, "query-value", f"the query holds {text!r}")
    for part in _name_parts(sample):
        # Case counts: "will" and "grace" are names only with a capital.
        if part not in quoted and occurrences(part, query):
            yield Problem(sample.id, "query-name", f"the query holds {part!r}, of a name")


def leak_problems(sample: Sample) -> Iterator[Problem]:
    """Check for PII outside the annotated spans.

    Rules:
    - `leak`: a piece of text looks like an address, number, amount, date or time.
    - `name-leak`: a part of a person's name occurs alone.

    What `meta.public` lists (the price of a loaf, the day of a public event) concerns no person
    of the sample and is no leak.
    """
    known = set(annotated_spans(sample))
    for text in public_texts(sample):
        known.update(occurrences(text, sample.description))
    annotated = {offset for span in known for offset in range(*span)}
    for what, pattern in _PATTERNS.items():
        is_known = within_one_of(known)
        for match in pattern.finditer(sample.description):
            span = match.span()
            if annotated.issuperset(range(*span)) or is_known(span):
                continue
            # "::" is an address, but also punctuation.
            is_sign = not any(map(str.isalnum, match[0]))
            if what == _IP_V6 and (is_sign or not is_ip_address(match[0])):
                continue
            known.add(span)
            reason = f"{what} {match[0]!r} at {span[0]} is not annotated"
            yield Problem(sample.id, "leak", reason)
    is_known = within_one_of(known)
    for part in _name_parts(sample):
        for span in occurrences(part, sample.description):
            if not is_known(span):
                reason = f"part {part!r} of a person's name at {span[0]} is not annotated"
                yield Problem(sample.id, "name-leak", reason)
