"""The parsers for `### Answer: ["...", "..."]` and for rewritten texts, `### Text: ...`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    DECORATION,
    Parsed,
    bullet_item,
    is_plain,
    is_refusal,
    read_completion,
    says_nothing,
    type_of,
    unreadable,
    without_thought,
)
from pii_bench.prompting.parsing.reader import (
    OPENERS,
    QUOTES,
    Entry,
    Group,
    Leaf,
    Literal,
    Node,
    read_bare,
    read_literal,
)
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPECTED: Final = "### Answer:"
_MARKER = re.compile(
    r"(?:^[ \t>#*_]*+|\#[ \t]*+|\*\*[ \t]*+)(?:the[ \t]+)?(?:final[ \t]+)?answers?"
    r"(?:[ \t]+is)?[*_ \t]*+(?:[:：][*_]*+|$|(?=[\[{［｛]))",
    re.IGNORECASE | re.MULTILINE,
)
_OPENER = re.compile(f"[{re.escape(OPENERS)}]")
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)\1")
_QUOTED_IN_PROSE = re.compile(r'"([^"\n]+)"|“([^“”\n]+)”|`([^`\n]+)`')
_CLOSERS: Final = frozenset("]})］｝】")
_LONGEST_ITEM: Final = 10
"""Most words of an unquoted text outside a list; longer ones are sentences."""

_TEXT_KEYS = frozenset({"text", "entity", "value", "span", "entity_text", "pii"})
_ANSWER_KEYS = frozenset(
    {"answer", "answers", "final_answer", "entities"}
    | {"pii_entities", "related", "result", "results"}
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The texts in a part of an answer, and whether the list is complete."""

    texts: list[str]
    closed: bool


def parse_related(completion_text: str, finish: Finish = Finish.UNKNOWN) -> Parsed[tuple[str, ...]]:
    """Read the entities that a query needs from the raw answer of a model.

    The last `### Answer:` counts. An answer in the expected form is only decoded; others are
    repaired. No text raises an error, and the time is linear in its length.
    """
    return read_completion(completion_text, finish, _expected_form, _tolerant_form)


def _tolerant_form(text: str, finish: Finish) -> Parsed[tuple[str, ...]]:
    reading = _search(text, finish)
    if reading is None or not (reading.texts or reading.closed):
        return Parsed(None, unreadable(text, finish))
    if finish is Finish.LENGTH and not reading.closed:
        return Parsed(None, Status.TRUNCATED)
    return Parsed(tuple(reading.texts), Status.REPAIRED)


def _expected_form(text: str) -> tuple[str, ...] | None:
    """Read a text whose last line marker is followed by a JSON list and nothing else.

    Tags of thought count only before the marker; after it they are parts of entities.
    """
    at = text.rfind("\n" + _EXPECTED) + 1
    if not text.startswith(_EXPECTED, at) or without_thought(text[:at]) is None:
        return None
    try:
        items = json.loads(text[at + len(_EXPECTED) :].strip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list) or not all(map(is_plain, items)):
        return None
    return tuple(items)


def _search(text: str, finish: Finish) -> _Reading | None:
    """Read what follows the last marker with a readable answer."""
    markers = list(_MARKER.finditer(text))
    if not markers:
        return _without_marker(text)
    end = len(text)
    for marker in reversed(markers):
        reading = _after_marker(text, marker.end(), end)
        if reading is not None or finish is Finish.LENGTH:
            return reading
        end = marker.start()
    return None


def _after_marker(text: str, start: int, end: int) -> _Reading | None:
    while start < end and text[start] in " \t\r\n*_=":
        start += 1
    if start >= end:
        return None
    if text[start] in OPENERS or text[start] == "(":
        return _of_literal(read_literal(text, start, end))
    first_line, *later = text[start:end].strip().split("\n")
    if says_nothing(first_line):
        return _Reading([], True)
    listed = _last_list(text, start, end) or _bullets([first_line, *later])
    if listed is not None or is_refusal(first_line):
        return listed
    quoted = list(takewhile(lambda line: line.lstrip()[:1] in QUOTES, [first_line, *later]))
    return _plain("\n".join(quoted) or first_line)


def _without_marker(text: str) -> _Reading | None:
    listed = _last_list(text, 0, len(text))
    if listed is not None:
        # Without a marker, a list with text after it may be a draft.
        ends = text.rstrip(DECORATION)[-1:] in _CLOSERS
        return _Reading(listed.texts, listed.closed and ends)
    lines = text.strip().split("\n")
    if len(lines) == 1 and says_nothing(lines[0]):
        return _Reading([], True)
    bullets = _bullets(lines)
    if bullets is None and len(lines) == 1 and lines[0][:1] in QUOTES:
        return _plain(lines[0])
    return bullets


def _last_list(text: str, start: int, end: int) -> _Reading | None:
    """Read the last list in a text with prose around it.

    A list without any quoted text, such as [PER_1], counts only on lines of its own.
    """
    found: Literal | None = None
    after = start
    while opener := _OPENER.search(text, after, end):
        literal = read_literal(text, opener.start(), end)
        before = text[after : opener.start()].rpartition("\n")[2]
        behind = text[literal.end : literal.end + 1]
        alone = not before.strip(DECORATION) and behind in {"", "\n", "\r"}
        if _quotes_any(literal.group) or alone or not literal.group.entries:
            found = literal
        after = literal.end
    return None if found is None else _of_literal(found)


def _quotes_any(node: Node) -> bool:
    if isinstance(node, Leaf):
        return node.quoted
    return any(_quotes_any(entry.value) for entry in node.entries)


def _bullets(lines: list[str]) -> _Reading | None:
    """Read a bulleted or numbered list; one line of prose may introduce it."""
    filled = [line for line in lines if line.strip()]
    intro = bool(filled) and bullet_item(filled[0]) is None
    items = filled[intro:]
    if not items or (intro and not filled[0].rstrip(" *_").endswith((":", "："))):
        return None
    texts: list[str] = []
    for line in items:
        item = bullet_item(line)
        if item is None:
            break
        texts += _texts_of_item(item)
    return _Reading(texts, False)


def _texts_of_item(item: str) -> list[str]:
    item = item.strip().rstrip(",")
    if emphasis := _EMPHASIS.match(item):
        return [emphasis[2]]
    return _bare_texts(item) if item[:1] in QUOTES else [item]


def _plain(line: str) -> _Reading | None:
    """Read a line of items without brackets, or the quoted texts in a sentence."""
    quoted = _QUOTED_IN_PROSE.findall(line)
    if quoted and line[0] not in QUOTES:
        return _Reading(["".join(groups) for groups in quoted], False)
    texts = _bare_texts(line.strip(" \t\r*_>").rstrip(".。").strip().rstrip(","))
    if not texts or any(len(text.split()) > _LONGEST_ITEM for text in texts):
        return None
    return _Reading(texts, False)


def _bare_texts(line: str) -> list[str]:
    return _texts(read_bare(line).group)


def _of_literal(literal: Literal) -> _Reading:
    return _Reading(_texts(literal.group), literal.closed)


def _texts(node: Node) -> list[str]:
    """Return the texts of a node that are not blank; the reader limits its depth."""
    if isinstance(node, Leaf):
        return [node.text] if node.text.strip() else []
    return [text for entry in _relevant(node) for text in _texts(entry.value)]


def _relevant(group: Group) -> Iterator[Entry]:
    """Yield the entries of an object that are the answer.

    These are the entries with keys such as `text` or `answer`; or else lists and objects; or else
    the keys whose values are types ("Acme": "ORG"), and other values ("employer": "Acme").
    """
    keyed = [
        (entry.key.text.strip().lower().replace(" ", "_"), entry)
        for entry in group.entries
        if entry.key is not None
    ]
    for names in (_TEXT_KEYS, _ANSWER_KEYS):
        named = [entry for name, entry in keyed if name in names]
        if named:
            yield from named
            return
    groups = [entry for _, entry in keyed if isinstance(entry.value, Group)]
    for entry in group.entries:
        if entry.key is None or isinstance(entry.value, Group):
            yield entry
        elif not groups:
            yield Entry(None, entry.key) if type_of(entry.value.text) else entry


_EXPECTED_TEXT: Final = re.compile(r"\s*### Text:[ \t]*\n?(.*)", re.DOTALL)
_TEXT_MARKER: Final = re.compile(
    r"^[ \t>#*_]*(?:the[ \t]+)?(?:new[ \t]+|re-?written[ \t]+)?text[*_ \t]*[:：][*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING: Final = re.compile(
    r"\s*(?:sure|certainly|of course|okay|here(?:'s| is| are))\b[^\n]{0,200}[:：][ \t]*\n",
    re.IGNORECASE,
)


def parse_rewriting(completion: str, finish: Finish = Finish.STOP) -> Parsed[str]:
    """Read a rewritten text, not blank, from the raw answer of a model. No text raises an error.

    A text that was cut off does not count: the missing part may have what the query needs.
    """
    if finish is Finish.LENGTH:
        return Parsed(None, Status.TRUNCATED)
    return read_completion(completion, finish, _expected_text, _tolerant_text)


def _expected_text(text: str) -> str | None:
    match = _EXPECTED_TEXT.fullmatch(text)
    rewritten = match[1].strip() if match and len(_TEXT_MARKER.findall(text)) == 1 else ""
    return rewritten if rewritten and "```" not in rewritten else None


def _tolerant_text(text: str, _: Finish) -> Parsed[str]:
    markers = list(_TEXT_MARKER.finditer(text))
    if not markers and is_refusal(text):
        return Parsed(None, Status.REFUSED)
    # The last marker counts: a repeated prompt contains the marker too.
    before = markers[-1] if markers else _OPENING.match(text)
    rewritten = text[before.end() if before else 0 :].strip()
    return Parsed(rewritten, Status.REPAIRED) if rewritten else Parsed(None, Status.EMPTY)
