"""Texts that every detector must bear, and how to read what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pii_bench.scorer.locate import DetectedSpan

ANY_TEXT: Final = {
    "empty": "",
    "white": " \n\t ",
    "surrogate": "Ann Lee \ud800 Berlin",
    "control": "Ann\x00Lee\u200b\ufeff",
    "chinese": "李安娜住在北京，电话是13800138000。",
    "arabic": "آنا لي تعيش في دبي منذ ٢٠١٩",
    "emoji": "👩‍👩‍👧 in 🇩🇪",
    "long word": "a" * 5_000,
    "many": "Ann Lee. " * 500,
}


def pieces(text: str, spans: Iterable[DetectedSpan]) -> list[tuple[str, str]]:
    """The texts and types of spans."""
    return [(text[span.start : span.end], str(span.type)) for span in spans]
