"""Relevance by words: those that name a category, and those shared with the description."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.systems.relevance.candidates import relative_scores
from pii_bench.systems.relevance.context import clauses_around
from pii_bench.systems.relevance.keywords import KEYWORDS, KEYWORDS_SHA256
from pii_bench.taxonomy import CATEGORIES, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.systems.relevance.base import Candidate

_NAMED_IN_CLAUSE: Final = 0.5
_SHARED_WORD: Final = 0.1

_WORD: Final = re.compile(r"[^\W_]+")
_FUNCTION_WORDS: Final = frozenset(
    """
    a about above after again against all also am an and another any are as at be because been
    before being below between both but by can cannot could did do does doing done down during each
    either else even ever every few for from further get had has have having he her here hers
    herself him himself his how however i if in into is it its itself just least less let like
    many may me might mine more most much must my myself neither no nor not now of off on once
    one only onto or other others our ours out over own per quite rather same shall she should
    since so some somebody someone something still such than that the their theirs them
    themselves then there these they this those though through to too two under until up upon us
    very was we were what whatever when where whether which while who whom whose why will with
    within without would yes yet you your yours
    """.split()  # noqa: SIM905
)

_WORDS_SHA256: Final = hashlib.sha256(
    " ".join([KEYWORDS_SHA256, *sorted(_FUNCTION_WORDS)]).encode()
).hexdigest()

_NAMES: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        category: re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", re.IGNORECASE)
        for category, words in KEYWORDS.items()
    }
)


@dataclass(frozen=True, slots=True)
class KeywordRelevance:
    """Scores a candidate by words (`Relevance`).

    A candidate gets 1 where the query names a category of its type
    (`quality.keywords.KEYWORDS`), half of that again where the clause around it names the
    same category, and 0.1 for each word of meaning that the query shares with the clause.
    Scores are relative to their mean over the candidates.
    """

    threshold: float
    name: str = "keyword"

    @property
    def identity(self) -> Mapping[str, str]:
        """The word lists, and the threshold."""
        return {"words": _WORDS_SHA256, "threshold": repr(self.threshold)}

    def scores(self, query: str, description: str, candidates: Sequence[Candidate]) -> list[float]:
        """One score per candidate."""
        named = {category for category, names in _NAMES.items() if names.search(query)}
        words = words_of_meaning(query)

        def score(candidate: Candidate, clause: str) -> float:
            asked = named.intersection(CATEGORIES[PiiType(candidate.type)])
            in_clause = any(_NAMES[category].search(clause) for category in asked)
            shared = len(words & words_of_meaning(clause))
            return bool(asked) + _NAMED_IN_CLAUSE * in_clause + _SHARED_WORD * shared

        return relative_scores(
            candidates, lambda others: [*map(score, others, clauses_around(description, others))]
        )


def words_of_meaning(text: str) -> frozenset[str]:
    """Words of two letters or more without function words, in lower case, no plural s."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(
        _singular(word) for word in words if len(word) > 1 and word not in _FUNCTION_WORDS
    )


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if is_plural else word
