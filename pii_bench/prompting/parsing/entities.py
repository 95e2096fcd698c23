"""Which subjects and (text, type) pairs the groups of a detection answer hold."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from pii_bench.prompting.parsing.completion import DECORATION, bullet_item
from pii_bench.prompting.parsing.reader import Entry, Group, Leaf, Node, read_bare
from pii_bench.prompting.parsing.result import TYPES, Stage, type_of

Pairs: TypeAlias = list[tuple[str, str]]
Labelled: TypeAlias = tuple[str | None, Pairs]

LABEL_PATTERN: Final = (
    r"\bsubject[ \t]*+[_#-]?[ \t]*+(?:\{[ \t]*+(\d{1,6})[ \t]*+\}|(\d{1,6})(?!\w))"
)
_LABEL = re.compile(LABEL_PATTERN, re.IGNORECASE)
# Tuples, so that which key is looked at first does not hang on the hash of strings.
_SUBJECT_KEYS = ("subjects", "people", "persons", "result", "results", "answer", "output")
_ENTITY_KEYS = ("entities", "pii", "pii_entities", "items", "annotations", "spans")
_TEXT_KEYS = ("text", "entity", "value", "span", "entity_text")
_TYPE_KEYS = ("type", "entity_type", "label", "tag", "category")
_SEPARATOR = re.compile(r"[:：|\t→=—–(\[（]|[-=]>| - ")
_CAPITALS = re.compile(r"[A-Z]+")
_QUOTES: Final = ('"', "'", "“", "`")
_SHOUTED = re.compile(r"[A-Z][A-Z_]{1,20}")
_AROUND_TYPE: Final = " \t\r\n*_`\"'“”.,;()[]（）>-"


def label_of(match: re.Match[str]) -> str:
    """Give the number in a match of `LABEL_PATTERN`, without leading zeros."""
    return (match[1] or match[2]).lstrip("0") or "0"


def subjects_of(group: Group, repairs: set[Stage]) -> list[Labelled]:
    """Read the subjects of a group; the reader bounds its depth.

    Args:
        group: an object or a list of any of the shapes that models write.
        repairs: stages that were needed are added here.

    Returns:
        For each subject its label, where the group has labels, and its pairs.
    """
    keyed = [(entry.key.text.strip(), entry.value) for entry in group.entries if entry.key]
    labels = [_LABEL.fullmatch(key) for key, _ in keyed]
    if any(labels):
        repairs.add(Stage.OTHER_SHAPE)
        return [
            (label_of(label), pairs_of(value, repairs))
            for label, (_, value) in zip(labels, keyed, strict=True)
            if label
        ]
    listed = _under(group, _SUBJECT_KEYS)
    if isinstance(listed, Group):
        repairs.add(Stage.OTHER_SHAPE)
        return subjects_of(listed, repairs)
    children = [entry.value for entry in group.entries if isinstance(entry.value, Group)]
    if (
        children
        and not keyed
        and len(children) == len(group.entries)
        and not any(_is_entity(child) for child in children)
    ):
        repairs.add(Stage.OTHER_SHAPE)
        return [subject for child in children for subject in subjects_of(child, repairs)]
    return [(None, pairs_of(group, repairs))]


def pairs_of(node: Node, repairs: set[Stage]) -> Pairs:
    """Read the pairs of one subject from a group or a text."""
    if isinstance(node, Leaf):
        return _unkeyed(Entry(None, node), node, repairs)
    listed = _under(node, _ENTITY_KEYS)
    if node.opener != "{" or isinstance(listed, Group) or _is_entity(node):
        repairs.add(Stage.OTHER_SHAPE)
    if isinstance(listed, Group):
        return pairs_of(listed, repairs)
    if _is_entity(node):
        return _entity(node, repairs)
    if _is_type_first(node):
        repairs.add(Stage.TYPE_FIRST)
        return [
            pair
            for entry in node.entries
            if entry.key
            for text in _texts(entry.value)
            for pair in _pair(text, entry.key.text, repairs)
        ]
    return [pair for entry in node.entries for pair in _pairs_of_entry(entry, repairs)]


def pairs_of_line(line: str, repairs: set[Stage]) -> Pairs:
    """Read the pairs of a line such as `- Ann Lee: PER` or `"Ann Lee" (PER), 32 (DEM)`.

    A line without a bullet and without a type in capitals is prose and gives none.
    """
    item = bullet_item(line)
    body = (item or line).replace("**", "").strip(" \t\r,;|:：")
    capitals = [word for word in _CAPITALS.findall(body) if word in TYPES]
    if item is None and not capitals:
        return []
    found = {Stage.BULLET_LIST}
    if body[:1] in _QUOTES or len(capitals) > 1:
        literal = read_bare(body, 0, len(body))
        found |= literal.repairs
        pairs = [
            pair
            for entry in literal.group.entries
            if entry.key or entry.note or (isinstance(entry.value, Leaf) and not entry.value.quoted)
            for pair in _pairs_of_entry(entry, found)
        ]
    else:
        pair = _split(body)
        pairs = _typed(pair, found) if pair else []
    if pairs:
        repairs |= found
    return pairs


def _under(group: Group, names: tuple[str, ...]) -> Node | None:
    """Give the value of the first of the names that is a key."""
    fields = {entry.key.text.strip().lower(): entry.value for entry in group.entries if entry.key}
    return next((fields[name] for name in names if name in fields), None)


def _is_entity(group: Group) -> bool:
    """Whether a group is one entity: a record with text and type, or a pair of the two."""
    if any(entry.key for entry in group.entries):
        return bool(_under(group, _TEXT_KEYS) and _under(group, _TYPE_KEYS))
    leaves = [entry.value for entry in group.entries if isinstance(entry.value, Leaf)]
    return len(leaves) == len(group.entries) == 2 and any(type_of(leaf.text) for leaf in leaves)


def _entity(group: Group, repairs: set[Stage]) -> Pairs:
    text, kind = _under(group, _TEXT_KEYS), _under(group, _TYPE_KEYS)
    if text is None or kind is None:
        first, second = _texts(group)
        return _typed((first, second), repairs)
    return [pair for one in _texts(text) for pair in _pair(one, _first_text(kind), repairs)]


def _is_type_first(group: Group) -> bool:
    keys = [entry.key.text for entry in group.entries if entry.key]
    if not keys or len(keys) < len(group.entries) or not all(type_of(key) for key in keys):
        return False
    return not all(
        isinstance(entry.value, Leaf) and type_of(entry.value.text) for entry in group.entries
    )


def _pairs_of_entry(entry: Entry, repairs: set[Stage]) -> Pairs:
    key, value = entry.key, entry.value
    if key is None and isinstance(value, Leaf):
        return _unkeyed(entry, value, repairs)
    if entry.note:
        repairs.add(Stage.STRAY_TEXT)
    if key is None:
        return pairs_of(value, repairs)
    if isinstance(value, Group):
        kind = _under(value, _TYPE_KEYS)
        repairs.add(Stage.OTHER_SHAPE if kind else Stage.TYPE_LIST)
        value = kind or value
    return _pair(key.text, _first_text(value), repairs)


def _unkeyed(entry: Entry, leaf: Leaf, repairs: set[Stage]) -> Pairs:
    """Read a text whose type, if any, is in its note or inside it."""
    if type_of(entry.note):
        repairs.add(Stage.OTHER_SHAPE)
        return _pair(leaf.text, entry.note.strip(_AROUND_TYPE), repairs)
    if leaf.quoted:
        return _pair(leaf.text, "", repairs)
    pair = _split(leaf.text)
    if pair is None:
        repairs.add(Stage.STRAY_TEXT)
        return []
    return _typed(pair, repairs)


def _texts(node: Node) -> list[str]:
    if isinstance(node, Leaf):
        return [node.text]
    return [text for entry in node.entries for text in _texts(entry.value)]


def _first_text(node: Node) -> str:
    return next(iter(_texts(node)), "")


def _split(text: str) -> tuple[str, str] | None:
    """Split at the last mark before a type, or the first after one."""
    marks = list(_SEPARATOR.finditer(text))
    if not marks:
        return None
    before, after = text[: marks[-1].start()], text[marks[-1].end() :]
    kind = after.strip(_AROUND_TYPE)
    if type_of(kind):
        return _bare(before), kind
    first = text[: marks[0].start()].strip(_AROUND_TYPE)
    if type_of(first):
        return first, _bare(text[marks[0].end() :])
    return (_bare(before), kind) if _SHOUTED.fullmatch(kind) else None


def _bare(text: str) -> str:
    plain = text.strip(DECORATION)
    if len(plain) > 1 and plain[0] in "\"'“" and plain[-1] in "\"'”":
        return plain[1:-1]
    return plain


def _typed(pair: tuple[str, str], repairs: set[Stage]) -> Pairs:
    """Order a pair of which either half may be the type."""
    if type_of(pair[0]) and not type_of(pair[1]):
        repairs.add(Stage.TYPE_FIRST)
        return _pair(pair[1], pair[0], repairs)
    return _pair(pair[0], pair[1], repairs)


def _pair(text: str, written: str, repairs: set[Stage]) -> Pairs:
    if not text.strip():
        repairs.add(Stage.BLANK_ITEM)
        return []
    if written in TYPES:
        return [(text, written)]
    known = type_of(written)
    if known:
        repairs.add(Stage.TYPE_ALIAS)
    else:
        repairs.add(Stage.UNKNOWN_TYPE if written.strip() else Stage.MISSING_TYPE)
    return [(text, known or written.strip().upper())]
