"""Quoted texts as models write them: where they end, and what they say.

The one hard question is whether a quote inside a text ends it. It does when what
follows could follow a text in a list or an object (`_closes`); else it is part of the
text, so that 'St. Brendan's Hospital' and "the "old" mill" are read whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pii_bench.prompting.parsing.completion import mend_surrogates
from pii_bench.prompting.parsing.result import Stage

_CLOSERS = {
    '"': '"', "'": "'", "`": "`", "“": "”“\"", "”": "”\"", "„": "“”\"", "‘": "’‘'", "’": "’'",
    "‚": "‘’'", "«": "»", "»": "«", "「": "」", "『": "』", "＂": "＂",
}  # fmt: skip
_RUNS = {
    mark: re.compile(rf"\\[\s\S]|[{re.escape(closers)}]++") for mark, closers in _CLOSERS.items()
}
_ESCAPED_RUNS = {mark: re.compile(rf"\\{mark}|\\[\s\S]") for mark in "\"'"}
_DELIMITERS = frozenset(",;:]})\n，；：、］｝）】*`=→")
_NOTE_STARTS = frozenset("(-–—#/[|（")
_SPACE = re.compile(r"\s*+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])")
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPED = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


class Quoted(NamedTuple):
    """A text between quotes, and the index behind the closing quote."""

    text: str
    end: int


def opens_quote(text: str, at: int) -> bool:
    """Say whether a quoted text may start here, with a quote or an escaped one."""
    return text[at] in _CLOSERS or (text[at] == "\\" and text[at + 1 : at + 2] in {'"', "'"})


def read_quoted(text: str, start: int, end: int, repairs: set[Stage]) -> Quoted | None:
    """Read the quoted text that starts at `start`; None where it is never closed.

    Every character is looked at a bounded number of times.
    """
    if text[start] == "\\":
        return _read_escaped(text, start, end, repairs)
    mark = text[start]
    body = _run_end(text, start, end) if mark in "\"'" else start + 1
    width = body - start
    if width > 1 and (body >= end or text[body].isspace() or text[body] in _DELIMITERS):
        return Quoted("", body)
    inner: set[Stage] = set()
    for run in _RUNS[mark].finditer(text, body, end):
        if run[0][0] == "\\":
            continue
        length = run.end() - run.start()
        if _closes(text, run.end(), end):
            kept = max(length - width, 0)
            if kept:
                inner.add(Stage.NESTED_QUOTES)
            content, after = text[body : run.start() + kept], run.end()
        elif length == 2 and width == 1 and _between_words(text, run.start(), run.end(), end):
            content, after = text[body : run.start()], run.start() + 1
        else:
            inner.add(Stage.DOUBLED_QUOTES if length == 2 and width == 1 else Stage.NESTED_QUOTES)
            continue
        repairs |= inner
        _record_mark(mark, width, repairs)
        if Stage.DOUBLED_QUOTES in inner:
            content = content.replace(mark * 2, mark)
        return Quoted(_unescape(content, repairs), after)
    return None


def _read_escaped(text: str, start: int, end: int, repairs: set[Stage]) -> Quoted | None:
    mark, body = text[start + 1], start + 2
    for run in _ESCAPED_RUNS[mark].finditer(text, body, end):
        if run[0][1] == mark and _closes(text, run.end(), end):
            repairs.add(Stage.ESCAPED_QUOTES)
            return Quoted(_unescape(text[body : run.start()], repairs), run.end())
    return None


def _run_end(text: str, start: int, end: int) -> int:
    at = start
    while at < end and text[at] == text[start]:
        at += 1
    return at


def _between_words(text: str, before: int, after: int, end: int) -> bool:
    return text[before - 1].isalnum() and after < end and text[after].isalnum()


def _closes(text: str, after: int, end: int) -> bool:
    found = _SPACE.match(text, after, end)
    following = found.end() if found else after
    if following >= end or text[following] in _DELIMITERS or "\n" in text[after:following]:
        return True
    if following == after:
        return False
    return text[following] in _NOTE_STARTS or opens_quote(text, following)


def _record_mark(mark: str, width: int, repairs: set[Stage]) -> None:
    if width > 1:
        repairs.add(Stage.DOUBLED_QUOTES)
    if mark == "'":
        repairs.add(Stage.SINGLE_QUOTES)
    elif mark != '"':
        repairs.add(Stage.SMART_QUOTES)


def _unescape(content: str, repairs: set[Stage]) -> str:
    def meant(escape: re.Match[str]) -> str:
        name = escape[1]
        if len(name) > 1:
            return chr(int(name[1:], 16))
        if name not in _ESCAPED:
            repairs.add(Stage.BAD_ESCAPE)
        return _ESCAPED.get(name, escape[0])

    if _CONTROL.search(content):
        repairs.add(Stage.BAD_ESCAPE)
    plain = _ESCAPE.sub(meant, content)
    mended = mend_surrogates(plain)
    if "\ufffd" in mended and "\ufffd" not in plain:
        repairs.add(Stage.LONE_SURROGATE)
    return mended
