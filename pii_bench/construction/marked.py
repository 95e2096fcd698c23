"""Reading and writing texts with inline marks for entities, so that writers count no offsets.

A file contains one sample after another:

    === single-0001
    register: letter
    --- text
    {A1|Don Flynn} rang at {A3|08:30:00}. The bus costs {-|£2.40} now.
    --- query: A3 | implied | travel | near
    Will he still catch it?

`{A1|...}` marks an entity with a tag of the commission, `{A2+B3|...}` an entity that two people
share, and `{-|...}` a text that looks like an entity but concerns no person of the text. The header
may have further lines `key: value`; those of recorded samples give the commission. The heading of
a query lists the tags that the query needs (`-` for none), the kind of reference, the domain, and
who asks.

Twins have no text of their own, but a header line `of: single-0001`, and queries with the headings
`--- second:`, `--- paraphrase:` and `--- turned:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.sets import TWIN_KINDS
from pii_bench.datasets.check.text import occurrences
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import InputFileError
from pii_bench.files import read_text
from pii_bench.scorer.locate import within_one_of
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType, type_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    Span = tuple[int, int]

_MARK: Final = re.compile(r"\{([A-Z]\d{1,2}(?:\+[A-Z]\d{1,2})*|-)\|([^{}|]*)\}")
_STRAY: Final = re.compile(r"\{[A-Z]\d{1,2}[^}]{0,20}|\{-[^}]{0,20}|\|[^|{}]{0,20}\}")
_TAG: Final = re.compile(r"[A-Z]\d{1,2}")

OPENING: Final = re.compile(r"\{([A-Z]\d{1,2}(?:\+[A-Z]\d{1,2})*)\|")
"""The start of an entity's mark, before its text."""

KINDS: Final = ("query", *TWIN_KINDS)
"""The kinds of queries: a text's own, and those of twins."""


@dataclass(frozen=True, slots=True)
class MarkedQuery:
    """A query of a marked text, which needs the entities with some tags.

    `asker` is the id of the subject who asks, or "desk", "near" or "other".
    """

    text: str
    needs: tuple[str, ...]
    reference: str
    domain: str
    asker: str
    kind: str = "query"


@dataclass(frozen=True, slots=True)
class Marked:
    """A sample with marks in its text, which is empty for twins."""

    id: str
    header: Mapping[str, str]
    text: str
    queries: tuple[MarkedQuery, ...]

    @property
    def facts(self) -> dict[str, str]:
        """Tag to category, parsed from the header (`facts: A1 Full Name, A2 Age`, or `-`)."""
        line = self.header.get("facts", "")
        if line == "-":
            return {}
        parts = (part.strip().partition(" ") for part in line.split(", "))
        return {tag: category for tag, _, category in parts}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text without marks, and what the marks said.

    Attributes:
        spans: tag to the sorted spans of its entity.
        values: tag to its marked texts without duplicates; valid texts have one for each tag.
        public: texts in `{-|...}`.
        stray: pieces of text that look like broken marks.
    """

    text: str
    spans: Mapping[str, tuple[Span, ...]]
    values: Mapping[str, tuple[str, ...]]
    public: tuple[str, ...]
    stray: tuple[str, ...]


def read_marked(path: Path) -> tuple[Marked, ...]:
    """Read a file of marked samples.

    Raises:
        InputFileError: the file cannot be read, or a line is invalid.
    """
    return parse_marked(read_text(path).replace("\r\n", "\n"), path)


def parse_marked(text: str, path: Path) -> tuple[Marked, ...]:
    """Parse the content of a file of marked samples.

    Raises:
        InputFileError: a line is invalid.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("=== ")]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        reason = "the file must begin with a line '=== ID' of a commission"
        raise InputFileError(path, reason, line=1)
    places = pairwise([*starts, len(lines)])
    return tuple(_sample(path, start, lines[start:end]) for start, end in places)


def write_marked(samples: Iterable[Marked]) -> str:
    """Return the content of a file of samples, which `parse_marked` parses."""
    return "\n".join(map(_format_sample, samples))


def resolve(marked: str, names: frozenset[str] = frozenset()) -> Resolved:
    """Remove the marks from a text, and locate the entities.

    `names` are tags of people's names, whose spans include unmarked occurrences.
    """
    spans: dict[str, list[Span]] = {}
    values: dict[str, dict[str, None]] = {}
    public: dict[str, None] = {}
    text = ""
    place = 0
    for match in _MARK.finditer(marked):
        text += marked[place : match.start()]
        start, value = len(text), match[2]
        text += value
        place = match.end()
        if match[1] == "-":
            public[value] = None
            continue
        for tag in match[1].split("+"):
            spans.setdefault(tag, []).append((start, len(text)))
            values.setdefault(tag, {})[value] = None
    text += marked[place:]
    for tag in names & values.keys():
        is_taken = within_one_of(span for own in spans.values() for span in own)
        for name in values[tag]:
            spans[tag] += [span for span in occurrences(name, text) if not is_taken(span)]
    return Resolved(
        text=text,
        spans={tag: tuple(sorted(set(own))) for tag, own in spans.items()},
        values={tag: tuple(own) for tag, own in values.items()},
        public=tuple(public),
        stray=tuple(match[0] for match in _STRAY.finditer(text)),
    )


def to_samples(marked: Marked) -> Iterator[Sample]:
    """Yield a sample for each query of a recorded text.

    The first sample has the id of the text, the next ones end in -2, -3 and so on.
    """
    categories = marked.facts
    resolved = resolve(marked.text, names_in(categories))
    subjects = _annotate(resolved, categories)
    meta: dict[str, object] = {}
    for key in ("kind", "register", "relation", "voice", "theme", "form", "template"):
        if key in marked.header:
            meta[key] = marked.header[key]
    for key in ("joined", "reasons"):
        if key in marked.header:
            meta[key] = marked.header[key].split()
    public = {"public": list(resolved.public)} if resolved.public else {}
    for number, query in enumerate(marked.queries, start=1):
        yield Sample(
            id=marked.id if number == 1 else f"{marked.id}-{number}",
            description=resolved.text,
            query=query.text,
            subjects=subjects,
            related=_related(query, resolved),
            meta={**meta, **_meta_of(query), **public},
        )


def to_twins(marked: Marked, source: Marked) -> Iterator[Sample]:
    """Yield the twins of a recorded text: its first sample with other queries."""
    first = next(to_samples(source))
    resolved = resolve(source.text)
    for query in marked.queries:
        yield replace(
            first,
            id=f"{source.id}-{query.kind}",
            query=query.text,
            related=_related(query, resolved),
            meta={**first.meta, **_meta_of(query), "twin_of": source.id, "twin": query.kind},
        )


def _related(query: MarkedQuery, resolved: Resolved) -> tuple[Related, ...]:
    return tuple(Related(tag[0], resolved.values[tag][0]) for tag in query.needs)


def _meta_of(query: MarkedQuery) -> dict[str, object]:
    return {"domain": query.domain, "reference": query.reference, "asker": query.asker}


def _annotate(resolved: Resolved, categories: Mapping[str, str]) -> tuple[Subject, ...]:
    """Return the gold subjects of a text, with entities in text order."""
    entities: dict[str, list[Entity]] = {}
    for tag, spans in sorted(resolved.spans.items(), key=lambda item: item[1][0]):
        category = categories[tag]
        entity = Entity(
            text=resolved.values[tag][0],
            type=type_named(category),
            category=category if category in TYPE_OF_CATEGORY else None,
            spans=spans,
        )
        entities.setdefault(tag[0], []).append(entity)
    return tuple(Subject(subject, tuple(own)) for subject, own in sorted(entities.items()))


def names_in(facts: Mapping[str, str]) -> frozenset[str]:
    """Return the tags of people's names, for `resolve`."""
    return frozenset(tag for tag, name in facts.items() if type_named(name) is PiiType.PER)


def _sample(path: Path, start: int, lines: list[str]) -> Marked:
    sample_id = lines[0].removeprefix("=== ").strip()
    reason = f"{sample_id} has no line '--- text' after its header"
    no_text = InputFileError(path, reason, line=start + 1)
    sections = [n for n, line in enumerate(lines) if line.startswith("--- ")]
    if not sections:
        raise no_text
    header: dict[str, str] = {}
    for number, line in enumerate(lines[1 : sections[0]], start=start + 2):
        key, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon:
            raise InputFileError(path, f"{line!r} is no 'key: value'", line=number)
        header[key.strip()] = value.strip()
    bodies = {
        begin: "\n".join(line.rstrip() for line in lines[begin + 1 : end]).strip()
        for begin, end in pairwise([*sections, len(lines)])
    }
    text = ""
    if "of" not in header:
        first = sections.pop(0)
        if lines[first].strip() != "--- text":
            raise no_text
        text = bodies[first]
    queries = tuple(_query(path, start + n + 1, lines[n], bodies[n]) for n in sections)
    return Marked(sample_id, header, text, queries)


def _query(path: Path, line: int, heading: str, text: str) -> MarkedQuery:
    kind, _, rest = heading.removeprefix("--- ").partition(":")
    fields = [part.strip() for part in rest.split("|")]
    if kind not in KINDS or len(fields) != 4:
        wanted = "'--- query: A2 A5 | implied | travel | near' (tags, reference, domain, asker)"
        raise InputFileError(path, f"{heading!r} is not of the form {wanted}", line=line)
    needs, reference, domain, asker = fields
    tags = needs.removeprefix("-").split()
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise InputFileError(path, f"{tag!r} is no tag of a fact such as A2", line=line)
    return MarkedQuery(text, tuple(tags), reference, domain, asker, kind)


def _format_sample(sample: Marked) -> str:
    header = "".join(f"{key}: {value}\n" for key, value in sample.header.items())
    text = f"--- text\n{sample.text}\n" if "of" not in sample.header else ""
    queries = "".join(
        f"--- {q.kind}: {' '.join(q.needs) or '-'} | {q.reference} | {q.domain} | {q.asker}\n"
        f"{q.text}\n"
        for q in sample.queries
    )
    return f"=== {sample.id}\n{header}{text}{queries}"
