"""Raw responses of the answerer and the judge, read; no response raises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.prompting.parsing.answers import without_thought

if TYPE_CHECKING:
    from pii_bench.models.base import ModelResponse

LOWEST: Final = 1
HIGHEST: Final = 10

_RATING: Final = r"[ \t]*[=:][ \t]*(\d{1,2})(?:[ \t]*/[ \t]*10)?"
_RATINGS: Final = re.compile(
    rf"\b(?:answer[ \t]+)?A{_RATING}[\s,;]+(?:and[ \t]+)?(?:answer[ \t]+)?B{_RATING}(?![.,/]?\d)",
    re.IGNORECASE,
)


_BETTER: Final = re.compile(r"\bbetter[ \t]*[:=][ \t]*(?:version[ \t]+)?(A|B|tie)\b", re.IGNORECASE)


class Preference(StrEnum):
    """What a judge says of a rewritten and a masked text, asked in both orders."""

    WIN = "win"
    """The rewritten one is better, in both."""

    LOSS = "loss"
    """The masked one is, in both."""

    TIE = "tie"
    """Neither, in both."""

    FLIP = "flip"
    """The orders disagree."""


_PREFERENCES: Final = {"A": Preference.WIN, "B": Preference.LOSS, "TIE": Preference.TIE}


@dataclass(frozen=True, slots=True)
class Ratings:
    """What a judge gives two answers, each the mean over both orders, 1 to 10."""

    masked: float
    unmasked: float

    @property
    def utility(self) -> float:
        """The share that the masked answer keeps of what the unmasked one is worth, 0 to 1.

        (masked - 1) / (unmasked - 1), for 1 is of no use; 1 where the masked answer is rated
        as high or higher. So an answer compared with itself has 1, as in the paper's figures,
        however good it is.
        """
        if self.masked >= self.unmasked:
            return 1.0
        return (self.masked - LOWEST) / (self.unmasked - LOWEST)


def read_answer(response: ModelResponse) -> str | None:
    """What the answerer said, without thought and white space around it.

    An answer that was cut off at the longest one allowed is an answer, and so is one that
    says that it cannot be given: those are what masking may lead to.

    Returns:
        None for one that is blank or that the provider filtered or refused, and for draws.
    """
    if isinstance(response, Draws) or response.finish in {Finish.FILTER, Finish.REFUSAL}:
        return None
    said = without_thought(response.text)
    return (said or "").strip() or None


def read_verdict(response: ModelResponse) -> Ratings | None:
    """The ratings of both orders, the first with the unmasked answer as A.

    Read is the last `A=..., B=...` of each, with two whole numbers from 1 to 10; `:` for `=`,
    `/10` and emphasis are let pass.

    Returns:
        None unless both orders have one.
    """
    if isinstance(response, Completion) or len(response.completions) != 2:
        return None
    unmasked_first, masked_first = map(_ratings, response.completions)
    if unmasked_first is None or masked_first is None:
        return None
    return Ratings(
        masked=(unmasked_first[1] + masked_first[0]) / 2,
        unmasked=(unmasked_first[0] + masked_first[1]) / 2,
    )


def read_preference(response: ModelResponse) -> Preference | None:
    """Which version a judge prefers in both orders, the first with the rewritten text as A.

    Read is the last `Better: A`, `B` or `tie` of each; emphasis is let pass.

    Returns:
        None unless both orders have one.
    """
    if isinstance(response, Completion) or len(response.completions) != 2:
        return None
    first, second = map(_better, response.completions)
    if first is None or second is None:
        return None
    # In the second order B is the rewritten text.
    by_order = (first, {"A": "B", "B": "A"}.get(second, second))
    if by_order[0] != by_order[1]:
        return Preference.FLIP
    return _PREFERENCES[by_order[0]]


def _better(completion: Completion) -> str | None:
    """`A`, `B` or `TIE`."""
    said = without_thought(completion.text)
    found = _BETTER.findall(re.sub(r"[*_`]+", "", said or ""))
    return found[-1].upper() if found else None


def _ratings(completion: Completion) -> tuple[int, int] | None:
    said = without_thought(completion.text)
    found = _RATINGS.findall(re.sub(r"[*_`]+", "", said or ""))
    if not found:
        return None
    a, b = map(int, found[-1])
    return (a, b) if all(LOWEST <= rating <= HIGHEST for rating in (a, b)) else None
