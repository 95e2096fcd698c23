"""The parser for the detection prompt: lines of `Subject1{"text": "TYPE", ...}`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.answers import (
    DECORATION,
    TYPES,
    Parsed,
    Subject,
    bullet_item,
    is_plain,
    read_completion,
    says_nothing,
    type_of,
    unreadable,
)
from pii_bench.prompting.parsing.reader import (
    OPENERS,
    QUOTES,
    Entry,
    Group,
    Leaf,
    Node,
    read_bare,
    read_literal,
    texts_of,
)
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

_Pairs: TypeAlias = list[tuple[str, str]]
_Labelled: TypeAlias = tuple[str | None, _Pairs]

_LABEL_PATTERN: Final = (
    r"\bsubject[ \t]*+[_#-]?[ \t]*+(?:\{[ \t]*+(\d{1,6})[ \t]*+\}|(\d{1,6})(?!\w))"
)
_LABEL = re.compile(_LABEL_PATTERN, re.IGNORECASE)

# Tuples rather than sets: the first key that is present counts.
_SUBJECT_KEYS = ("subjects", "people", "persons", "result", "results", "answer", "output")
_ENTITY_KEYS = ("entities", "pii", "pii_entities", "items", "annotations", "spans")
_TEXT_KEYS = ("text", "entity", "value", "span", "entity_text")
_TYPE_KEYS = ("type", "entity_type", "label", "tag", "category")

_SEPARATOR = re.compile(r"[:：|\t→=—–(\[（]|[-=]>| - ")
_AROUND_TYPE: Final = " \t\r\n*_`\"'“”.,;()[]（）>-"

_EXPECTED_SUBJECT = re.compile(r"Subject(?:\{(\d+)\}|(\d+))(\{.*\})\s*", re.DOTALL)

_LINE_LABEL = re.compile(
    rf"^[ \t>#*_-]*+(?:\d{{1,3}}[.)][ \t]*+)?{_LABEL_PATTERN}", re.IGNORECASE | re.MULTILINE
)
_LABEL_OR_OPENER = re.compile(f"{_LABEL_PATTERN}|[{re.escape(OPENERS)}]", re.IGNORECASE)
_BETWEEN = DECORATION + ",;:，；：|-—=()[]{}［］｛｝\"'\\"


@dataclass(slots=True)
class _Piece:
    """A part of the answer: a label with its content, or brackets without a label.

    Attributes:
        label: the number of the subject, if the piece has one; it then has at most one subject.
        start: the index of the label or the bracket.
        end: the index after the piece.
        subjects: the subjects found.
        closed: False if the text may have been cut off inside the piece.
        cut: True if the text was cut off inside brackets or quotes that hold the last pair.
    """

    label: str | None
    start: int
    end: int
    subjects: list[_Labelled] = field(default_factory=list)
    closed: bool = True
    cut: bool = False


def parse_detection(
    completion_text: str, finish: Finish = Finish.UNKNOWN
) -> Parsed[tuple[Subject, ...]]:
    """Read the subjects and their entities from the raw answer of a model.

    An answer in the expected form is only decoded; others are repaired. If a draft and a later
    version both start at the first label, with text between them, the last complete one counts. No
    text raises an error, and the time is linear in its length.
    """
    return read_completion(completion_text, finish, _expected_form, _tolerant_form)


def _expected_form(text: str) -> tuple[Subject, ...] | None:
    """Read labels at the start of a line, each with a JSON object of texts and types.

    The objects are on the line of their label, which may be indented, or pretty-printed.
    """
    subjects = _expected_subjects(line.strip(" \t\r") for line in text.split("\n"))
    if subjects is None:
        subjects = _expected_subjects(re.split(r"\n(?=Subject)", text))
    return subjects


def _expected_subjects(parts: Iterable[str]) -> tuple[Subject, ...] | None:
    subjects: dict[str, Subject] = {}
    for part in parts:
        if not part.strip():
            continue
        found = _EXPECTED_SUBJECT.fullmatch(part)
        subject = _expected_object(found[3]) if found else None
        if found is None or subject is None or (found[1] or found[2]) in subjects:
            return None
        subjects[found[1] or found[2]] = subject
    return tuple(subjects.values())


def _expected_object(text: str) -> Subject | None:
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    for key, value in pairs:
        if not (isinstance(value, str) and value in TYPES and is_plain(key)):
            return None
    return tuple(pairs)


def _tolerant_form(text: str, finish: Finish) -> Parsed[tuple[Subject, ...]]:
    pieces = _pieces(text)
    if finish is Finish.LENGTH and pieces and not pieces[-1].closed:
        return Parsed(None, Status.TRUNCATED)
    filled = [piece for piece in pieces if piece.subjects]
    if filled:
        chosen = _chosen(text, filled)
        return Parsed(_merged(chosen), Status.REPAIRED, any(piece.cut for piece in chosen))
    if _is_empty(text, pieces):
        return Parsed((), Status.REPAIRED)
    # Without brackets one cannot see whether the last line was cut off.
    pairs, _, cut = ([], 0, False) if finish is Finish.LENGTH else _read_lines(text)
    if not pairs:
        return Parsed(None, unreadable(text, finish))
    return Parsed((tuple(pairs),), Status.REPAIRED, cut)


def _pieces(text: str) -> list[_Piece]:
    """Split the text at labels and brackets and read each piece once.

    A label at the start of a line ends any bracket that is still open.
    """
    limits = [label.start() for label in _LINE_LABEL.finditer(text)] + [len(text)]
    return [
        piece
        for start, limit in pairwise([0, *limits])
        for piece in _pieces_between(text, start, limit)
    ]


def _pieces_between(text: str, start: int, limit: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = start
    while found := _LABEL_OR_OPENER.search(text, at, limit):
        if found[0] in OPENERS:
            at = _read_brackets(text, found.start(), limit, pieces)
            continue
        at = found.end()
        pieces.append(_Piece(_label_of(found), found.start(), at))
    ends = [piece.start for piece in pieces[1:]] + [limit]
    for piece, end in zip(pieces, ends, strict=False):
        if piece.label is not None and not piece.subjects and piece.closed:
            _fill_from_lines(piece, text, end)
    return pieces


def _read_brackets(text: str, start: int, limit: int, pieces: list[_Piece]) -> int:
    """Read the brackets at `start` into the label before them or a new piece; return their end."""
    literal = read_literal(text, start, limit)
    subjects = _subjects_of(literal.group)
    if not pieces or pieces[-1].label is None or any(label for label, _ in subjects):
        filled = [(label, pairs) for label, pairs in subjects if label or pairs]
        closed = literal.closed
        pieces.append(_Piece(None, start, literal.end, filled, closed, cut=not closed))
        return literal.end
    piece = pieces[-1]
    piece.closed = literal.closed
    pairs = [pair for _, pairs in subjects for pair in pairs]
    if pairs or (literal.closed and not literal.group.entries):
        piece.end = literal.end
        piece.cut = not literal.closed
        if not piece.subjects:
            piece.subjects = [(piece.label, [])]
        piece.subjects[0][1].extend(pairs)
    return literal.end


def _fill_from_lines(piece: _Piece, text: str, end: int) -> None:
    """Read the lines of a labelled piece without a subject in brackets."""
    body = text[piece.end : end]
    if says_nothing(body.strip(_BETWEEN)):
        piece.subjects, piece.end = [(piece.label, [])], end
        return
    pairs, length, cut = _read_lines(body)
    # One cannot see whether the last line, or a label without content, was cut off.
    piece.closed = bool(body.strip(_BETWEEN)) and not (pairs and end == len(text))
    if pairs:
        piece.subjects, piece.end = [(piece.label, pairs)], piece.end + length
        piece.cut = cut


def _read_lines(body: str) -> tuple[_Pairs, int, bool]:
    """Return the pairs in lines, the index after the last line with pairs, and if one is cut."""
    pairs: _Pairs = []
    at = end = 0
    cut = False
    for line in body.splitlines(keepends=True):
        at += len(line)
        found, line_cut = _read_line(line.strip())
        if found:
            pairs += found
            end = at
            cut |= line_cut
    return pairs, end, cut


def _read_line(line: str) -> tuple[_Pairs, bool]:
    """Read the pairs of a line such as `"Ann Lee" (PER), 32 (DEM)`, and whether it is cut off.

    A line without a bullet and without a type in capitals is prose and has none.
    """
    item = bullet_item(line)
    body = (item or line).replace("**", "").strip(" \t\r,;|:：")
    capitals = [word for word in re.findall(r"[A-Z]+", body) if word in TYPES]
    if item is None and not capitals:
        return [], False
    if body[:1] not in QUOTES and len(capitals) <= 1:
        return _split(body), False
    literal = read_bare(body)
    pairs = [
        pair
        for entry in literal.group.entries
        if entry.key or entry.note or (isinstance(entry.value, Leaf) and not entry.value.quoted)
        for pair in _pairs_of_entry(entry)
    ]
    return pairs, not literal.closed


def _chosen(text: str, filled: list[_Piece]) -> list[_Piece]:
    """Return the pieces that are the answer: the labelled ones, and of versions the last."""
    labelled = [piece for piece in filled if any(label for label, _ in piece.subjects)]
    groups = _groups(text, labelled or filled)
    complete = [group for group in groups if all(piece.closed for piece in group)]
    return (complete or groups)[-1]


def _groups(text: str, pieces: list[_Piece]) -> list[list[_Piece]]:
    """Group pieces by version: a new one starts where the first label comes again after text."""
    groups = [[pieces[0]]]
    for piece in pieces[1:]:
        label, first = piece.subjects[0][0], groups[-1][0].subjects[0][0]
        between = text[groups[-1][-1].end : piece.start].strip(_BETWEEN)
        if label is not None and label == first and between:
            groups.append([piece])
        else:
            groups[-1].append(piece)
    return groups


def _merged(pieces: list[_Piece]) -> tuple[Subject, ...]:
    """Return the subjects of pieces; those with the same label are one."""
    merged: dict[str, _Pairs] = {}
    for index, piece in enumerate(pieces):
        for number, (label, pairs) in enumerate(piece.subjects):
            merged.setdefault(label or f"{index}.{number}", []).extend(pairs)
    return tuple(tuple(pairs) for pairs in merged.values())


def _is_empty(text: str, pieces: list[_Piece]) -> bool:
    """Return True if an answer says that there are no subjects: `[]`, None, no PII."""
    stripped = text.strip()
    if len(pieces) == 1 and pieces[0].label is None and pieces[0].closed:
        return not stripped.strip("[]{} \t\n")
    return "\n" not in stripped and says_nothing(stripped)


def _subjects_of(group: Group) -> list[_Labelled]:
    """Read subjects, as label (if any) and pairs, from an object or list of any shape.

    The reader limits the depth.
    """
    keyed = [(entry.key.text.strip(), entry.value) for entry in group.entries if entry.key]
    labelled = [(_LABEL.fullmatch(key), value) for key, value in keyed]
    if any(label for label, _ in labelled):
        return [(_label_of(label), _pairs_of(value)) for label, value in labelled if label]
    listed = _under(group, _SUBJECT_KEYS)
    if isinstance(listed, Group):
        return _subjects_of(listed)
    children = [entry.value for entry in group.entries if isinstance(entry.value, Group)]
    if (
        children
        and not keyed
        and len(children) == len(group.entries)
        and not any(_is_entity(child) for child in children)
    ):
        return [subject for child in children for subject in _subjects_of(child)]
    return [(None, _pairs_of(group))]


def _label_of(match: re.Match[str]) -> str:
    """Return the number in a match of `_LABEL_PATTERN`, without leading zeros."""
    return (match[1] or match[2]).lstrip("0") or "0"


def _pairs_of(node: Node) -> _Pairs:
    """Read the pairs of one subject from a group or a text."""
    if isinstance(node, Leaf):
        return _unkeyed(node)
    listed = _under(node, _ENTITY_KEYS)
    if isinstance(listed, Group):
        return _pairs_of(listed)
    if _is_entity(node):
        return _entity(node)
    if _is_type_first(node):
        return [
            pair
            for entry in node.entries
            if entry.key
            for text in texts_of(entry.value)
            for pair in _pair(text, entry.key.text)
        ]
    return [pair for entry in node.entries for pair in _pairs_of_entry(entry)]


def _pairs_of_entry(entry: Entry) -> _Pairs:
    key, value = entry.key, entry.value
    if key is None:
        return _unkeyed(value, entry.note) if isinstance(value, Leaf) else _pairs_of(value)
    if isinstance(value, Group):
        value = _under(value, _TYPE_KEYS) or value
    return _pair(key.text, _first_text(value))


def _is_entity(group: Group) -> bool:
    """Return True if a group is an entity: a record with text and type, or a pair of both."""
    if any(entry.key for entry in group.entries):
        return bool(_under(group, _TEXT_KEYS) and _under(group, _TYPE_KEYS))
    leaves = [entry.value for entry in group.entries if isinstance(entry.value, Leaf)]
    return len(leaves) == len(group.entries) == 2 and any(type_of(leaf.text) for leaf in leaves)


def _entity(group: Group) -> _Pairs:
    text, kind = _under(group, _TEXT_KEYS), _under(group, _TYPE_KEYS)
    if text is None or kind is None:
        return _typed(*texts_of(group))
    pii_type = _first_text(kind)
    return [pair for value in texts_of(text) for pair in _pair(value, pii_type)]


def _is_type_first(group: Group) -> bool:
    keys = [entry.key.text for entry in group.entries if entry.key]
    if not keys or len(keys) < len(group.entries) or not all(type_of(key) for key in keys):
        return False
    return not all(
        isinstance(entry.value, Leaf) and type_of(entry.value.text) for entry in group.entries
    )


def _under(group: Group, names: tuple[str, ...]) -> Node | None:
    """Return the value of the first name that is a key."""
    fields = {entry.key.text.strip().lower(): entry.value for entry in group.entries if entry.key}
    return next((fields[name] for name in names if name in fields), None)


def _first_text(node: Node) -> str:
    return next(iter(texts_of(node)), "")


def _unkeyed(leaf: Leaf, note: str = "") -> _Pairs:
    """Read a text without a key; its type may be in its note or in the text itself."""
    if type_of(note):
        return _pair(leaf.text, note.strip(_AROUND_TYPE))
    return _pair(leaf.text, "") if leaf.quoted else _split(leaf.text)


def _split(text: str) -> _Pairs:
    """Split at the last separator before a type, or at the first one after a type."""
    marks = list(_SEPARATOR.finditer(text))
    if not marks:
        return []
    before, after = text[: marks[-1].start()], text[marks[-1].end() :]
    kind = after.strip(_AROUND_TYPE)
    if type_of(kind):
        return _typed(_bare(before), kind)
    first = text[: marks[0].start()].strip(_AROUND_TYPE)
    if type_of(first):
        return _typed(first, _bare(text[marks[0].end() :]))
    # A type outside the seven.
    return _typed(_bare(before), kind) if re.fullmatch(r"[A-Z][A-Z_]{1,20}", kind) else []


def _bare(text: str) -> str:
    plain = text.strip(DECORATION)
    if len(plain) > 1 and plain[0] in "\"'“" and plain[-1] in "\"'”":
        return plain[1:-1]
    return plain


def _typed(first: str, second: str) -> _Pairs:
    """Read a text and its type, which may be the first."""
    if type_of(first) and not type_of(second):
        return _pair(second, first)
    return _pair(first, second)


def _pair(text: str, written: str) -> _Pairs:
    """Pair a text with its type; one outside the seven stays as written, in upper case."""
    return [(text, type_of(written) or written.strip().upper())] if text.strip() else []
