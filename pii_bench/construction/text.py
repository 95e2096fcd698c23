"""From pieces to text: tidy spaces and capitals, and the spans of every entity."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.construction.people import Mention

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Mentions stand as private characters while the text around them is tidied.
_FIRST: Final = 0xE000
# After a quotation that ends in ? or ! the sentence may go on.
_SENTENCE_START: Final = re.compile(r"(?:^|(?<=[.!?…]\s)|(?<=[.…]['\"]\s))([a-zà-ÿ])")


def tidy(pieces: Iterable[str | Mention], *, capitals: bool = True) -> tuple[str | Mention, ...]:
    """Fold spaces, close up punctuation and begin sentences with a capital.

    Args:
        pieces: text and mentions in order.
        capitals: False for a chat whose writer never uses the shift key.
    """
    mentions: list[Mention] = []
    parts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Mention):
            parts.append(chr(_FIRST + len(mentions)))
            mentions.append(piece)
        else:
            parts.append(piece)
    text = re.sub(r"[ \t]+", " ", "".join(parts)).strip()
    text = re.sub(r" ([,.;:?!])", r"\1", text)
    text = re.sub(r"([,;:])[,;]", r"\1", text)
    if capitals:
        text = _SENTENCE_START.sub(lambda match: match[1].upper(), text)
    return tuple(_split(text, mentions))


def _split(text: str, mentions: Sequence[Mention]) -> Iterable[str | Mention]:
    for part in re.split(f"([{chr(_FIRST)}-{chr(_FIRST + 0x8FF)}])", text):
        if part and _FIRST <= ord(part[0]) < _FIRST + 0x900:
            yield mentions[ord(part[0]) - _FIRST]
        elif part:
            yield part


def flatten(
    pieces: Iterable[str | Mention],
) -> tuple[str, list[tuple[Mention, tuple[int, int]]]]:
    """The text, and each mention with its span in code points, end exclusive."""
    length = 0
    parts: list[str] = []
    spans: list[tuple[Mention, tuple[int, int]]] = []
    for piece in pieces:
        part = piece.fact.value if isinstance(piece, Mention) else piece
        if isinstance(piece, Mention):
            spans.append((piece, (length, length + len(part))))
        parts.append(part)
        length += len(part)
    return "".join(parts), spans


def length(pieces: Iterable[str | Mention]) -> int:
    """Characters of the text."""
    return sum(len(p.fact.value if isinstance(p, Mention) else p) for p in pieces)


def join(sentences: Sequence[Sequence[str | Mention]]) -> list[str | Mention]:
    """Sentences one after another; a message without a full stop gets one before the next."""
    joined: list[str | Mention] = []
    for number, sentence in enumerate(sentences, start=1):
        joined += sentence
        last = sentence[-1]
        ended = isinstance(last, str) and last.rstrip()[-1:] in ".!?…:;)'\""
        joined.append(" " if ended or number == len(sentences) else ". ")
    return joined


def total(sentences: Iterable[Sequence[str | Mention]]) -> int:
    """Characters of sentences, each with the space behind it."""
    return sum(length(sentence) + 1 for sentence in sentences)
