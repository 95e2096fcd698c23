"""The parser for the prompt `json`: values by label of a taxonomy."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from pii_bench.datasets.span_files import Document, joined
from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    KEY,
    Parsed,
    Subject,
    is_plain,
    one_subject,
    read_completion,
    says_nothing,
    unreadable,
)
from pii_bench.prompting.parsing.reader import Group, Literal, read_literal, texts_of
from pii_bench.scorer.locate import place_entities
from pii_bench.tasks import Status
from pii_bench.taxonomy import name_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pii_bench.taxonomy import Meaning


def parse_labelled(
    completion_text: str, labels: Mapping[str, Meaning], finish: Finish = Finish.UNKNOWN
) -> Parsed[tuple[Subject, ...]]:
    """Read `{"PII": {"LABEL": ["value", ...]}}` as (value, label) pairs of one subject.

    An answer in the expected form is only decoded; others are repaired. Of several objects
    the last one with an answer counts. A label in another case or with a number is replaced by
    that of the taxonomy; an unknown label stays, in upper case. No text raises an error.
    """
    expected, tolerant = partial(_expected_form, labels), partial(_tolerant_form, labels)
    return read_completion(completion_text, finish, expected, tolerant)


def whole_values(
    pairs: Iterable[tuple[str, str]], labels: Mapping[str, Meaning], text: str
) -> list[tuple[str, str]]:
    """Return (value, label) pairs; parts that are adjacent in the text are joined, as in gold."""
    parts = {pair: pair[1] in labels and labels[pair[1]].part is not None for pair in pairs}
    placed, invented = place_entities(text, [pair for pair, is_part in parts.items() if is_part])
    spans = joined(Document("", text, tuple(placed)), labels)
    whole = [pair for pair, is_part in parts.items() if not is_part]
    whole += [(text[start:end], label) for start, end, label in spans]
    return list(dict.fromkeys([*whole, *invented]))


def _expected_form(labels: Mapping[str, Meaning], text: str) -> tuple[Subject, ...] | None:
    """Read one JSON object with lists of texts by label; its other keys have texts."""
    try:
        # Objects as pairs: a label may occur twice.
        value = json.loads(text.strip(), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, tuple):
        return None
    fields = {key.strip().upper(): found for key, found in value}
    found = fields.pop(KEY, None)
    # An empty list says the same as an empty object.
    if not isinstance(found, tuple) and found != []:
        return None
    if not all(isinstance(other, str) for other in fields.values()):
        return None
    for label, values in found:
        if label not in labels or not isinstance(values, list) or not all(map(is_plain, values)):
            return None
    return one_subject([(text, label) for label, values in found for text in values])


def _tolerant_form(
    labels: Mapping[str, Meaning], text: str, finish: Finish
) -> Parsed[tuple[Subject, ...]]:
    answers = []
    for literal in _objects(text):
        group = _answer_in(literal.group, labels)
        if group is not None:
            answers.append((literal, group))
    if not answers:
        if "{" not in text and "\n" not in text.strip() and says_nothing(text.strip()):
            return Parsed((), Status.REPAIRED)
        return Parsed(None, unreadable(text, finish))
    closed = [answer for answer in answers if answer[0].closed]
    literal, group = (closed or answers)[-1]
    if finish is Finish.LENGTH and not literal.closed:
        return Parsed(None, Status.TRUNCATED)
    return Parsed(one_subject(_pairs(group, labels)), Status.REPAIRED, cut=not literal.closed)


def _objects(text: str) -> Iterator[Literal]:
    start = text.find("{")
    while start != -1:
        literal = read_literal(text, start, len(text))
        yield literal
        start = text.find("{", literal.end)


def _answer_in(group: Group, labels: Mapping[str, Meaning]) -> Group | None:
    """Return the group under the key `PII`, or the group itself if it has labels as keys."""
    keys = [entry.key.text.strip() for entry in group.entries if entry.key is not None]
    for entry in group.entries:
        if entry.key is not None and entry.key.text.strip().upper() == KEY:
            return entry.value if isinstance(entry.value, Group) else None
    return group if any(name_in(labels, key) for key in keys) or not group.entries else None


def _pairs(group: Group, labels: Mapping[str, Meaning]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for entry in group.entries:
        if entry.key is not None:
            written = entry.key.text.strip()
            label = name_in(labels, written) or written.upper()
            pairs += [(value, label) for value in texts_of(entry.value) if value.strip()]
    return pairs
