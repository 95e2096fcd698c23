"""The text around candidates, and the parts of a query."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.systems.relevance.base import Candidate

# A mark ends a clause only before white space: 05:15:00 and example.org hold none.
_CLAUSE_END: Final = re.compile(
    r"[.,;:!?…][\"'”’»)\]]*\s+|\s*\n\s*|\s+[–—-]\s+|\s+(?=(?:and|or|but)\b)", re.IGNORECASE
)

_SENTENCE_END: Final = re.compile(r"(?<=[.?!…])\s+")
_PART_END: Final = re.compile(r"[.,;:?!…()–—]+|\b(?:and|or|but)\b", re.IGNORECASE)


def clauses_around(description: str, candidates: Sequence[Candidate]) -> list[str]:
    """For each candidate the clause in which it first occurs, the candidate included.

    A clause ends at punctuation, a line's end, or before and, or, but; never inside the
    candidate.
    """
    breaks = [match.span() for match in _CLAUSE_END.finditer(description)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(description)]
    clauses: list[str] = []
    for candidate in candidates:
        first = bisect_right(starts, candidate.start) - 1
        last = bisect_left(ends, candidate.start + len(candidate.text))
        # A candidate that is not where it claims to be may end behind the description.
        clauses.append(description[starts[first] : ends[min(last, len(breaks))]])
    return clauses


def parts_of(query: str) -> list[str]:
    """The query, its sentences and its clauses, each once."""
    parts = [query, *_SENTENCE_END.split(query), *_PART_END.split(query)]
    return [*dict.fromkeys(part.strip() for part in parts if part.strip())]
