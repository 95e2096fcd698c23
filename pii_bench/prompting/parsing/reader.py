"""A tolerant reader of lists and objects, in one pass with an explicit stack.

Lists, objects, tuples and sets become a `Group`, whose entries may have keys. The parsers interpret
the groups.

A quote inside a quoted text ends it only if the next characters could follow a text in a list or
an object (`_closes`). So 'St. Brendan's Hospital' and "the "old" mill" are each read as one text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pii_bench.files import encodable

_CLOSERS = {
    '"': '"', "'": "'", "`": "`", "“": "”“\"", "”": "”\"", "„": "“”\"", "‘": "’‘'", "’": "’'",
    "‚": "‘’'", "«": "»", "»": "«", "「": "」", "『": "』", "＂": "＂",
}  # fmt: skip
_RUNS = {
    mark: re.compile(rf"\\[\s\S]|[{re.escape(closers)}]++") for mark, closers in _CLOSERS.items()
}
_DELIMITERS = frozenset(",;:]})\n，；：、］｝）】*`=→")
_NOTE_STARTS = frozenset("(-–—#/[|（")
_SPACE = re.compile(r"\s++")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])")
_ESCAPED = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip

_MAX_DEPTH: Final = 16
_WIDE = str.maketrans("［］【】｛｝（），、；：", "[][]{}(),,;:")
_PAIRS = {"[": "]", "{": "}", "(": ")"}
_COMMENT = re.compile(r"(?://|#[ \t])[^\n]*+")
_ARROW = re.compile(r"=>|->|→|=")
# A comma between a digit and three more is part of a number: $2,180.
_THOUSANDS = r"(?<=\d),(?=\d{3}(?!\d))"
_BARE_STOP = r",;，；、\n\[\]{}［］｛｝【】"


def _opens_quote(text: str, at: int) -> bool:
    """Return True if a quote or an escaped quote is at this index."""
    return text[at] in _CLOSERS or (text[at] == "\\" and text[at + 1 : at + 2] in {'"', "'"})


def _read_quoted(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Read the quoted text that starts at `start`, and the index after its closing quote.

    None if it is not closed. The time is linear in the length of the text.
    """
    if text[start] == "\\":
        return _read_escaped(text, start, end)
    mark = text[start]
    body = start + 1
    while mark in "\"'" and body < end and text[body] == mark:
        body += 1
    width = body - start
    if width > 1 and (body >= end or text[body].isspace() or text[body] in _DELIMITERS):
        return "", body
    doubled = False
    for run in _RUNS[mark].finditer(text, body, end):
        if run[0][0] == "\\":
            continue
        length = run.end() - run.start()
        if _closes(text, run.end(), end):
            content, after = text[body : run.start() + max(length - width, 0)], run.end()
        elif length == 2 and width == 1 and _between_words(text, run.start(), run.end(), end):
            content, after = text[body : run.start()], run.start() + 1
        else:
            doubled |= length == 2 and width == 1
            continue
        return _unescape(content.replace(mark * 2, mark) if doubled else content), after
    return None


def _read_escaped(text: str, start: int, end: int) -> tuple[str, int] | None:
    mark, body = text[start + 1], start + 2
    for escape in _ESCAPE.finditer(text, body, end):
        if escape[1] == mark and _closes(text, escape.end(), end):
            return _unescape(text[body : escape.start()]), escape.end()
    return None


def _between_words(text: str, before: int, after: int, end: int) -> bool:
    return text[before - 1].isalnum() and after < end and text[after].isalnum()


def _closes(text: str, after: int, end: int) -> bool:
    space = _SPACE.match(text, after, end)
    following = space.end() if space else after
    if following >= end or text[following] in _DELIMITERS or "\n" in text[after:following]:
        return True
    if following == after:
        return False
    return text[following] in _NOTE_STARTS or _opens_quote(text, following)


def _unescape(content: str) -> str:
    """Replace escapes; unknown ones and raw control characters stay as written."""

    def meant(escape: re.Match[str]) -> str:
        name = escape[1]
        return chr(int(name[1:], 16)) if len(name) > 1 else _ESCAPED.get(name, escape[0])

    return encodable(_ESCAPE.sub(meant, content))


def _bare(stop: str, colon: str = "") -> re.Pattern[str]:
    """Compile a pattern for text up to a character of `stop`, except colons that match `colon`.

    No possessive groups: Python 3.11.0 to 3.11.4 match them wrongly (python/cpython#106052).
    """
    part = rf"[^{stop}]+"
    if colon:
        part = rf"(?=[^{stop}]|{colon})[^{stop}]*(?:{colon}[^{stop}]*)*"
    return re.compile(rf"{part}(?:{_THOUSANDS}{part})*")


_BARE = {
    "[": _bare(_BARE_STOP),
    "(": _bare(_BARE_STOP + ")）"),
    # In an object a colon ends a key, but the one of 10:30 does not.
    "{": _bare(_BARE_STOP + ":：", r":(?=[^\s\"'“‘\[{])"),
}
_NULL = frozenset({"null", "None", "none", "N/A", "n/a", "...", "…"})
OPENERS: Final = "[{［｛【"
QUOTES: Final = ('"', "'", "“", "`")
"""Quotation marks that begin an item outside brackets."""


@dataclass(slots=True)
class Leaf:
    """A text, and whether it was quoted."""

    text: str
    quoted: bool


@dataclass(slots=True)
class Entry:
    """An item: a value, its key if any, and the first note after it."""

    key: Leaf | None
    value: Node
    note: str = ""


@dataclass(slots=True)
class Group:
    """The entries between two brackets; `opener` is `[`, `{` or `(`."""

    opener: str
    entries: list[Entry] = field(default_factory=list)


Node: TypeAlias = Leaf | Group


def texts_of(node: Node) -> list[str]:
    """Return the texts of a node without keys; the reader limits its depth."""
    if isinstance(node, Leaf):
        return [node.text]
    return [text for entry in node.entries for text in texts_of(entry.value)]


@dataclass(slots=True)
class Literal:
    """The outermost group, the index after it, and whether its last bracket was found."""

    group: Group
    end: int
    closed: bool


@dataclass(slots=True)
class _Frame:
    group: Group
    key: Leaf | None = None
    value: Node | None = None
    note: str = ""
    new_line: bool = False


def read_literal(text: str, start: int, end: int) -> Literal:
    """Read the group that opens at `start`, with one of `OPENERS` or a round bracket."""
    return _Reader(text, start, end).read()


def read_bare(text: str) -> Literal:
    """Read a text as the inside of a list whose brackets are missing."""
    return _Reader(text, 0, len(text), bare=True).read()


class _Reader:
    def __init__(self, text: str, start: int, end: int, *, bare: bool = False) -> None:
        self.text, self.at, self.end, self.bare = text, start, end, bare
        self.frames = [_Frame(Group("["))] if bare else []
        self.too_deep = 0
        self.cut = False

    def read(self) -> Literal:
        if not self.bare:
            self._open(self.text[self.at].translate(_WIDE))
        outermost = self.frames[0].group
        while self.frames and self.at < self.end:
            self._step(self.frames[-1])
        closed = not self.cut and len(self.frames) == int(self.bare)
        for frame in reversed(self.frames):
            if _is_whole(frame):
                self._flush(frame)
        return Literal(outermost, self.at, closed)

    def _step(self, frame: _Frame) -> None:
        """Read one token; the order of the cases is the grammar."""
        if space := _SPACE.match(self.text, self.at, self.end):
            frame.new_line |= "\n" in space[0]
            self.at = space.end()
            return
        if comment := _COMMENT.match(self.text, self.at, self.end):
            self.at = comment.end()
            return
        mark = self.text[self.at].translate(_WIDE)
        if mark in "[{" or (mark == "(" and frame.value is None):
            self._open(mark)
        elif mark in "]}" or (mark == ")" and frame.group.opener == "("):
            self._close(mark)
        elif mark in ",;":
            self.at += 1
            self._flush(frame)
        elif mark == ":":
            self._colon(frame, self.at + 1)
        elif frame.value is not None and (arrow := _ARROW.match(self.text, self.at, self.end)):
            self._colon(frame, arrow.end())
        elif _opens_quote(self.text, self.at):
            self._quoted(frame)
        else:
            self._unquoted(frame)

    def _open(self, mark: str) -> None:
        self.at += 1
        if len(self.frames) >= _MAX_DEPTH:
            self.too_deep += 1
            return
        group = Group(mark)
        if self.frames:
            self._put(self.frames[-1], group)
        self.frames.append(_Frame(group))

    def _close(self, mark: str) -> None:
        self.at += 1
        if self.too_deep:
            self.too_deep -= 1
            return
        if self.bare and len(self.frames) == 1:
            return
        innermost = len(self.frames) - 1
        depth = innermost
        while depth >= self.bare and _PAIRS[self.frames[depth].group.opener] != mark:
            depth -= 1
        if depth < self.bare:
            depth = innermost
        while len(self.frames) > depth:
            self._flush(self.frames.pop())

    def _colon(self, frame: _Frame, to: int) -> None:
        self.at = to
        if frame.key is None and isinstance(frame.value, Leaf):
            frame.key, frame.value, frame.note, frame.new_line = frame.value, None, "", False

    def _quoted(self, frame: _Frame) -> None:
        quoted = _read_quoted(self.text, self.at, self.end)
        if quoted is None:
            self._abandon(frame)
        else:
            content, self.at = quoted
            self._put(frame, Leaf(content, quoted=True))

    def _unquoted(self, frame: _Frame) -> None:
        found = _BARE[frame.group.opener].match(self.text, self.at, self.end)
        to = found.end() if found else self.at + 1
        if to >= self.end and not (self.bare and len(self.frames) == 1):
            self._abandon(frame)
            return
        leaf = Leaf(self.text[self.at : to].strip(), quoted=False)
        self.at = to
        if frame.value is None or frame.new_line:
            self._put(frame, leaf)
        else:
            frame.note = frame.note or leaf.text

    def _abandon(self, frame: _Frame) -> None:
        """Drop an item that the end of the text cuts off, with its key."""
        self.at, self.cut = self.end, True
        if frame.value is None:
            frame.key = None

    def _put(self, frame: _Frame, value: Node) -> None:
        held = frame.value
        if isinstance(held, Leaf) and not held.quoted and isinstance(value, Group):
            frame.key = held
        elif held is not None:
            self._flush(frame)
        frame.value, frame.new_line = value, False

    def _flush(self, frame: _Frame) -> None:
        """Move the pending item of a frame into its group; a key without a value is the value."""
        key, value = (frame.key, frame.value) if frame.value is not None else (None, frame.key)
        null = isinstance(value, Leaf) and not value.quoted and value.text in _NULL
        if value is not None and not null:
            frame.group.entries.append(Entry(key, value, frame.note))
        frame.key, frame.value, frame.note, frame.new_line = None, None, "", False


def _is_whole(frame: _Frame) -> bool:
    """Return True if the pending item of a frame is complete at the end of the text."""
    if frame.key is not None:
        return frame.value is not None
    return frame.group.opener != "{" or isinstance(frame.value, Group)
