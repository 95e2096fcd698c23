"""The parsers for `### Answer: ["...", "..."]` and for rewritten texts, `### Text: ...`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pii_bench.files import encodable
from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    DECORATION,
    ParsedRelated,
    ParsedRewriting,
    Stage,
    bullet_item,
    is_refusal,
    read_completion,
    says_nothing,
    type_of,
    unreadable,
    without_thought,
)
from pii_bench.prompting.parsing.reader import (
    OPENERS,
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
_QUOTES: Final = ('"', "'", "“", "`")
_LONGEST_ITEM: Final = 10
"""Most words of an unquoted text outside a list; longer ones are sentences."""

_TEXT_KEYS = frozenset({"text", "entity", "value", "span", "entity_text", "pii"})
_ANSWER_KEYS = frozenset(
    [
        "answer",
        "answers",
        "final_answer",
        "entities",
        "pii_entities",
        "related",
        "result",
        "results",
    ]
)


@dataclass(slots=True)
class _Reading:
    """The texts in a part of an answer, and whether the list is complete."""

    texts: list[str]
    closed: bool
    repairs: set[Stage] = field(default_factory=set)


def parse_related(completion_text: str, finish: Finish = Finish.UNKNOWN) -> ParsedRelated:
    """Read the entities that a query needs from the raw answer of a model.

    The last `### Answer:` counts. An answer in the expected form is only decoded; others are
    repaired (`Stage`). No text raises an error, and the time is linear in its length.
    """
    return ParsedRelated(*read_completion(completion_text, finish, _expected_form, _tolerant_form))


def _tolerant_form(text: str, finish: Finish, repairs: set[Stage]) -> tuple[str, ...] | Status:
    reading = _search(text, finish)
    if reading is None or not (reading.texts or reading.closed):
        return unreadable(text, finish)
    if finish is Finish.LENGTH and not reading.closed:
        return Status.TRUNCATED
    repairs |= reading.repairs
    return tuple(reading.texts)


def _expected_form(text: str) -> tuple[str, ...] | None:
    """Read a text whose last line marker is followed by a JSON list and nothing else.

    Tags of thought count only before the marker; after it they are parts of entities.
    """
    at = text.rfind("\n" + _EXPECTED) + 1
    if not text.startswith(_EXPECTED, at) or without_thought(text[:at]) is None:
        return None
    try:
        items = json.loads(text[at + len(_EXPECTED) :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list):
        return None
    texts = [item for item in items if isinstance(item, str) and item.strip()]
    if len(texts) != len(items) or any(encodable(item) != item for item in texts):
        return None
    return tuple(texts)


def _search(text: str, finish: Finish) -> _Reading | None:
    """Read what follows the last marker with a readable answer."""
    markers = list(_MARKER.finditer(text))
    if not markers:
        return _without_marker(text)
    end = len(text)
    for marker in reversed(markers):
        reading = _after_marker(text, marker.end(), end)
        if reading is not None:
            if marker[0].rstrip() != _EXPECTED:
                reading.repairs.add(Stage.MARKER_VARIANT)
            if end < len(text):
                reading.repairs.add(Stage.EARLIER_ANSWER)
            return reading
        if finish is Finish.LENGTH:
            return None
        end = marker.start()
    return None


def _after_marker(text: str, start: int, end: int) -> _Reading | None:
    marked = start
    while start < end and text[start] in " \t\r\n*_=":
        start += 1
    if start >= end:
        return None
    if text[start] in OPENERS or text[start] == "(":
        literal = read_literal(text, start, end)
        around = text[marked:start].strip() or text[literal.end : end].strip()
        return _of_literal(literal, prose=around != "")
    first_line, *later = text[start:end].strip().split("\n")
    if says_nothing(first_line):
        prose = {Stage.PROSE_AROUND} if "".join(later).strip() else set()
        return _Reading([], True, {Stage.EXPLICIT_NONE, *prose})
    listed = _last_list(text, start, end) or _bullets([first_line, *later])
    if listed is not None or is_refusal(first_line):
        return listed
    quoted = list(takewhile(lambda line: line.lstrip()[:1] in _QUOTES, [first_line, *later]))
    rest = later[max(len(quoted) - 1, 0) :]
    return _plain("\n".join(quoted) or first_line, prose="".join(rest).strip() != "")


def _without_marker(text: str) -> _Reading | None:
    stripped = text.strip()
    reading = _last_list(text, 0, len(text))
    if reading is not None:
        # Without a marker, a list with text after it may be a draft.
        reading.closed &= text.rstrip(DECORATION)[-1:] in _CLOSERS
    if reading is None and says_nothing(stripped) and "\n" not in stripped:
        reading = _Reading([], True, {Stage.EXPLICIT_NONE})
    if reading is None:
        reading = _bullets(stripped.split("\n"))
    if reading is None and stripped[:1] in _QUOTES and "\n" not in stripped:
        reading = _plain(stripped, prose=False)
    if reading is not None:
        reading.repairs.add(Stage.NO_MARKER)
    return reading


def _last_list(text: str, start: int, end: int) -> _Reading | None:
    """Read the last list in a text with prose around it.

    A list without any quoted text, such as [PER_1], counts only on lines of its own.
    """
    found: tuple[int, Literal] | None = None
    after = start
    while opener := _OPENER.search(text, after, end):
        literal = read_literal(text, opener.start(), end)
        before = text[after : opener.start()].rpartition("\n")[2]
        behind = text[literal.end : literal.end + 1]
        alone = not before.strip(DECORATION) and behind in {"", "\n", "\r"}
        if _quotes_any(literal.group) or alone or not literal.group.entries:
            found = opener.start(), literal
        after = literal.end
    if found is None:
        return None
    begin, literal = found
    around = text[start:begin].strip() or text[literal.end : end].strip()
    return _of_literal(literal, prose=around != "")


def _quotes_any(node: Node) -> bool:
    if isinstance(node, Leaf):
        return node.quoted
    return any(_quotes_any(entry.value) for entry in node.entries)


def _bullets(lines: list[str]) -> _Reading | None:
    """Read a bulleted or numbered list; one line of prose may introduce it."""
    filled = [line for line in lines if line.strip()]
    intro = bool(filled) and bullet_item(filled[0]) is None
    items = [bullet_item(line) for line in filled[intro:]]
    if not items or (intro and not filled[0].rstrip(" *_").endswith((":", "："))):
        return None
    reading = _Reading([], False, {Stage.BULLET_LIST})
    for item in items:
        if item is None:
            reading.repairs.add(Stage.PROSE_AROUND)
            break
        _add_bare(item, reading, whole_line=True)
    if intro:
        reading.repairs.add(Stage.PROSE_AROUND)
    return reading


def _plain(line: str, *, prose: bool) -> _Reading | None:
    """Read a line of items without brackets, or the quoted texts in a sentence."""
    reading = _Reading([], False, {Stage.PROSE_AROUND} if prose else set())
    quoted = _QUOTED_IN_PROSE.findall(line)
    if quoted and line[0] not in _QUOTES:
        reading.texts = ["".join(groups) for groups in quoted]
        reading.repairs.add(Stage.QUOTED_IN_PROSE)
        return reading
    reading.repairs.add(Stage.PLAIN_TEXT)
    _add_bare(line.strip(" \t\r*_>").rstrip(".。"), reading, whole_line=False)
    if any(len(text.split()) > _LONGEST_ITEM for text in reading.texts):
        return None
    return reading if reading.texts else None


def _add_bare(line: str, reading: _Reading, *, whole_line: bool) -> None:
    line = line.strip().rstrip(",")
    emphasis = _EMPHASIS.match(line)
    if whole_line and emphasis:
        reading.texts.append(emphasis[2])
    elif whole_line and line[:1] not in _QUOTES:
        reading.texts.append(line)
    else:
        literal = read_bare(line, 0, len(line))
        _collect(literal.group, reading)
        reading.repairs |= literal.repairs


def _of_literal(literal: Literal, *, prose: bool) -> _Reading:
    reading = _Reading([], literal.closed, set(literal.repairs))
    if prose:
        reading.repairs.add(Stage.PROSE_AROUND)
    _collect(literal.group, reading)
    return reading


def _collect(node: Node, reading: _Reading) -> None:
    """Add the texts of a node; the reader limits its depth."""
    if isinstance(node, Leaf):
        if node.text.strip():
            reading.texts.append(node.text)
        else:
            reading.repairs.add(Stage.BLANK_ITEM)
        return
    if node.opener == "{":
        reading.repairs.add(Stage.OTHER_SHAPE)
    for entry in _relevant(node):
        if entry.note:
            reading.repairs.add(Stage.STRAY_TEXT)
        if isinstance(entry.value, Group) or entry.key is not None:
            reading.repairs.add(Stage.OTHER_SHAPE)
        _collect(entry.value, reading)


def _relevant(group: Group) -> Iterator[Entry]:
    """Yield the entries of an object that are the answer.

    These are the entries with keys such as `text` or `answer`; or else lists and objects; or else
    the keys whose values are types ("Acme": "ORG"), and other values ("employer": "Acme").
    """
    keyed = [entry for entry in group.entries if entry.key is not None]
    for names in (_TEXT_KEYS, _ANSWER_KEYS):
        named = [entry for entry in keyed if _name(entry) in names]
        if named:
            yield from named
            return
    groups = [entry for entry in keyed if isinstance(entry.value, Group)]
    for entry in group.entries:
        if entry.key is None or isinstance(entry.value, Group):
            yield entry
        elif not groups:
            yield Entry(None, entry.key) if type_of(entry.value.text) else entry


def _name(entry: Entry) -> str:
    return entry.key.text.strip().lower().replace(" ", "_") if entry.key else ""


_EXPECTED_TEXT: Final = re.compile(r"\s*### Text:[ \t]*\n?(.*)", re.DOTALL)
_TEXT_MARKER: Final = re.compile(
    r"^[ \t>#*_]*(?:the[ \t]+)?(?:new[ \t]+|re-?written[ \t]+)?text[*_ \t]*[:：][*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING: Final = re.compile(
    r"\s*(?:sure|certainly|of course|okay|here(?:'s| is| are))\b[^\n]{0,200}[:：][ \t]*\n",
    re.IGNORECASE,
)


def parse_rewriting(completion: str, finish: Finish = Finish.STOP) -> ParsedRewriting:
    """Read a rewritten text from the raw answer of a model. No text raises an error.

    A text that was cut off does not count: the missing part may have what the query needs.
    """
    if finish is Finish.LENGTH:
        return ParsedRewriting(None, Status.TRUNCATED)
    payload, status, repairs = read_completion(completion, finish, _expected_text, _tolerant_text)
    return ParsedRewriting(payload[0] if payload else None, status, repairs)


def _expected_text(text: str) -> tuple[str] | None:
    match = _EXPECTED_TEXT.fullmatch(text)
    rewritten = match[1].strip() if match and len(_TEXT_MARKER.findall(text)) == 1 else ""
    return (rewritten,) if rewritten and "```" not in rewritten else None


def _tolerant_text(text: str, _: Finish, repairs: set[Stage]) -> tuple[str] | Status:
    markers = list(_TEXT_MARKER.finditer(text))
    # The last marker counts: a repeated prompt contains the marker too.
    if markers:
        last = markers[-1]
        rewritten = text[last.end() :]
        if last[0] != "### Text:":
            repairs.add(Stage.MARKER_VARIANT)
        if text[: last.start()].strip():
            repairs.add(Stage.PROSE_AROUND)
    else:
        if is_refusal(text):
            return Status.REFUSED
        repairs.add(Stage.NO_MARKER)
        rewritten = text
        if opening := _OPENING.match(text):
            rewritten = text[opening.end() :]
            repairs.add(Stage.PROSE_AROUND)
    rewritten = rewritten.strip()
    return (rewritten,) if rewritten else Status.EMPTY
