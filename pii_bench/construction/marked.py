"""Written texts with their entities marked inline, so that a writer counts no offsets.

A file holds one sample after another:

    === single-0001
    register: letter
    --- text
    {A1|Don Flynn} rang at {A3|08:30:00}. The bus costs {-|£2.40} now.
    --- query: A3 | implied | travel | near
    Will he still catch it?

`{A1|...}` marks an entity by the tag of its commission, `{A2+B3|...}` one that two people share,
`{-|...}` something of an entity's look that is about no person of the text. The header may have
further lines `key: value`; recorded samples have there what the commission asked for. A query
names the tags that it needs (`-` for none), its way of reference, its domain and who asks.

Twins have no text of their own: a header line `of: single-0001`, and queries that are headed
`--- second:`, `--- paraphrase:` and `--- turned:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.sets import AGAIN, TWINS
from pii_bench.datasets.check.text import occurrences
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import PiiBenchError
from pii_bench.scorer.locate import Cover
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType, type_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    Span = tuple[int, int]

_MARK: Final = re.compile(r"\{([A-Z]\d{1,2}(?:\+[A-Z]\d{1,2})*|-)\|([^{}|]*)\}")
_STRAY: Final = re.compile(r"\{[A-Z]\d{1,2}[^}]{0,20}|\{-[^}]{0,20}|\|[^|{}]{0,20}\}")
_TAG: Final = re.compile(r"[A-Z]\d{1,2}")
_FIELDS: Final = 4

OPENING: Final = re.compile(r"\{([A-Z]\d{1,2}(?:\+[A-Z]\d{1,2})*)\|")
"""The beginning of an entity's mark, up to its text."""

KINDS: Final = ("query", *TWINS, *(kind + AGAIN for kind in TWINS))
"""What a query is to its text: its own, or one of the kinds of twins."""


class MarkedError(PiiBenchError):
    """A file of written texts that cannot be read.

    Args:
        path: of the file.
        line: where, from 1.
        reason: what is wrong and what is expected.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")


@dataclass(frozen=True, slots=True)
class MarkedQuery:
    """A query as written.

    Attributes:
        needs: tags of the related entities.
        kind: "query", or what kind of twin it is.
        asker: the subject that asks, or who else does ("desk", "near", "other").
    """

    text: str
    needs: tuple[str, ...]
    reference: str
    domain: str
    asker: str
    kind: str = "query"


@dataclass(frozen=True, slots=True)
class Marked:
    """A sample as written.

    Attributes:
        header: the lines before the text, key to value.
        text: with its marks.
    """

    id: str
    header: Mapping[str, str]
    text: str
    queries: tuple[MarkedQuery, ...]

    @property
    def facts(self) -> dict[str, str]:
        """Tag to category, of `A1 Full Name, A2 Age` in the header; "-" is for none."""
        line = self.header.get("facts", "")
        parts = (part.strip().partition(" ") for part in line.split(", ") if line != "-")
        return {tag: category for tag, _, category in parts}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text without its marks.

    Attributes:
        spans: tag to the places of its entity, in order.
        values: tag to the texts under its marks; more than one is a fault of the writer.
        public: texts that were marked as about no person.
        stray: what looks like a broken mark.
    """

    text: str
    spans: Mapping[str, tuple[Span, ...]]
    values: Mapping[str, tuple[str, ...]]
    public: tuple[str, ...]
    stray: tuple[str, ...]


def read_marked(path: Path) -> tuple[Marked, ...]:
    """Read a file of written samples.

    Raises:
        MarkedError: the file cannot be read, or a line is not of the format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MarkedError(path, 1, f"cannot be read: {error}") from error
    return parse_marked(text, path)


def parse_marked(text: str, path: Path) -> tuple[Marked, ...]:
    """Read written samples.

    Args:
        text: of a file.
        path: names it in errors.

    Raises:
        MarkedError: a line is not of the format.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("=== ")]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise MarkedError(path, 1, "the file must begin with a line '=== ID' of a commission")
    ends = [*starts[1:], len(lines)]
    return tuple(
        _sample(path, start, lines[start:end]) for start, end in zip(starts, ends, strict=True)
    )


def write_marked(samples: Iterable[Marked]) -> str:
    """The text of a file of samples; reading it gives them back."""
    return "\n".join(_lines(sample) for sample in samples)


def resolve(marked: str, names: frozenset[str] = frozenset()) -> Resolved:
    """Take the marks out of a text, and say where their entities are.

    Args:
        marked: the text with its marks.
        names: tags of people's names; every occurrence of a name belongs to it, marked or not.
    """
    spans: dict[str, list[Span]] = {}
    values: dict[str, dict[str, None]] = {}
    public: dict[str, None] = {}
    parts: list[str] = []
    length = place = 0
    for match in _MARK.finditer(marked):
        before = marked[place : match.start()]
        value = match[2]
        start = length + len(before)
        parts += [before, value]
        length = start + len(value)
        place = match.end()
        if match[1] == "-":
            public[value] = None
            continue
        for tag in match[1].split("+"):
            spans.setdefault(tag, []).append((start, length))
            values.setdefault(tag, {})[value] = None
    text = "".join([*parts, marked[place:]])
    for tag in names & values.keys():
        taken = Cover(span for own in spans.values() for span in own)
        for name in values[tag]:
            spans[tag] += [s for s in occurrences(name, text) if not taken.holds(s)]
    return Resolved(
        text=text,
        spans={tag: tuple(sorted(set(own))) for tag, own in spans.items()},
        values={tag: tuple(own) for tag, own in values.items()},
        public=tuple(public),
        stray=tuple(match[0] for match in _STRAY.finditer(text)),
    )


def to_samples(marked: Marked) -> Iterator[Sample]:
    """The samples of a recorded text, one for each query; ids end in -2 and so on after the first.

    The header names the categories (`facts: A1 Full Name, A2 Age`).
    """
    categories = marked.facts
    found = resolve(marked.text, names_in(categories))
    subjects = annotate(found, categories)
    meta: dict[str, object] = {
        key: marked.header[key]
        for key in ("kind", "register", "relation", "voice", "theme", "form", "template")
        if key in marked.header
    }
    meta |= {
        key: marked.header[key].split() for key in ("joined", "reasons") if key in marked.header
    }
    for number, query in enumerate(marked.queries, start=1):
        yield Sample(
            id=marked.id if number == 1 else f"{marked.id}-{number}",
            description=found.text,
            query=query.text,
            subjects=subjects,
            related=tuple(Related(tag[0], found.values[tag][0]) for tag in query.needs),
            meta={
                **meta,
                "domain": query.domain,
                "reference": query.reference,
                "asker": query.asker,
                **({"public": list(found.public)} if found.public else {}),
            },
        )


def to_twins(marked: Marked, source: Marked) -> Iterator[Sample]:
    """The twins of a recorded text: its description under other queries."""
    first = next(to_samples(source))
    values = resolve(source.text).values
    for query in marked.queries:
        yield replace(
            first,
            id=f"{source.id}-{query.kind}",
            query=query.text,
            related=tuple(Related(tag[0], values[tag][0]) for tag in query.needs),
            meta={
                **first.meta,
                "domain": query.domain,
                "reference": query.reference,
                "asker": query.asker,
                "twin_of": source.id,
                "twin": query.kind,
            },
        )


def annotate(found: Resolved, categories: Mapping[str, str]) -> tuple[Subject, ...]:
    """Gold subjects of a text, entities in the order of the text.

    Args:
        found: a text whose tags are all in `categories`.
        categories: tag to category.
    """
    owners = sorted({tag[0] for tag in found.spans})
    return tuple(
        Subject(
            owner,
            tuple(
                Entity(
                    text=found.values[tag][0],
                    type=type_named(categories[tag]),
                    category=categories[tag] if categories[tag] in TYPE_OF_CATEGORY else None,
                    spans=found.spans[tag],
                )
                for tag in sorted(
                    (tag for tag in found.spans if tag[0] == owner),
                    key=lambda tag: found.spans[tag][0],
                )
            ),
        )
        for owner in owners
    )


def names_in(facts: Mapping[str, str]) -> frozenset[str]:
    """The tags of people's names, for `resolve`."""
    return frozenset(tag for tag, name in facts.items() if type_named(name) is PiiType.PER)


def _sample(path: Path, start: int, lines: list[str]) -> Marked:
    sample_id = lines[0].removeprefix("=== ").strip()
    no_text = MarkedError(path, start + 1, f"{sample_id} has no line '--- text' behind its header")
    sections = [n for n, line in enumerate(lines) if line.startswith("--- ")]
    if not sections:
        raise no_text
    header: dict[str, str] = {}
    for number, line in enumerate(lines[1 : sections[0]], start=start + 2):
        key, colon, value = line.partition(":")
        if line.strip() and not colon:
            raise MarkedError(path, number, f"{line!r} is no 'key: value'")
        if line.strip():
            header[key.strip()] = value.strip()
    bodies = {
        begin: "\n".join(line.rstrip() for line in lines[begin + 1 : end]).strip()
        for begin, end in zip(sections, [*sections[1:], len(lines)], strict=True)
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
    if kind not in KINDS or len(fields) != _FIELDS:
        wanted = "'--- query: A2 A5 | implied | travel | near' (tags, reference, domain, asker)"
        raise MarkedError(path, line, f"{heading!r} is not of the form {wanted}")
    tags = fields[0].removeprefix("-").split()
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise MarkedError(path, line, f"{tag!r} is no tag of a fact such as A2")
    return MarkedQuery(text, tuple(tags), fields[1], fields[2], fields[3], kind)


def _lines(sample: Marked) -> str:
    header = "".join(f"{key}: {value}\n" for key, value in sample.header.items())
    text = f"--- text\n{sample.text}\n" if "of" not in sample.header else ""
    queries = "".join(
        f"--- {q.kind}: {' '.join(q.needs) or '-'} | {q.reference} | {q.domain} | {q.asker}\n"
        f"{q.text}\n"
        for q in sample.queries
    )
    return f"=== {sample.id}\n{header}{text}{queries}"
