"""Scores of a masked text: what it hides and what it still says (spec, "on the text that is left").

Judged are the characters that were really masked, not the texts that a system named. The units are
the distinct gold texts of a sample, each with all its spans; one is needed if any entity with that
text is that of a related entity, for no masker can hide and show the same words.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, TypeAlias

from pii_bench.errors import PiiBenchError
from pii_bench.scorer.counts import harmonic_mean
from pii_bench.scorer.text import normalise, text_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Span: TypeAlias = tuple[int, int]
"""Code points of a description, end exclusive."""


@dataclass(frozen=True, slots=True)
class MaskedTextScore:
    """Scores of one sample, each from 0 to 1.

    Attributes:
        protection: share of the unneeded texts of which no occurrence has a readable character;
            1 where there are none.
        retention: share of the needed texts of which at least one occurrence is readable in full;
            1 where there are none.
        collateral: share of the characters outside all gold spans, white space aside, that are
            masked; None where there are none, and for a failure, which leaves no text.
    """

    protection: float
    retention: float
    collateral: float | None


@dataclass(frozen=True, slots=True)
class GoldText:
    """A distinct text of E.

    Attributes:
        text: normalised.
        needed: whether any entity with that text is a related one.
        spans: its occurrences, sorted; none where the text does not occur (foreign data).
    """

    text: str
    needed: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is left of the gold texts, in their order, and of all other characters.

    Attributes:
        hidden: of each text the occurrences without a readable character.
        readable: of each text the occurrences that are readable in full.
        other: characters that are neither white space nor part of a gold text.
        other_masked: those of them that are masked.
    """

    hidden: tuple[int, ...]
    readable: tuple[int, ...]
    other: int
    other_masked: int


class GoldTexts:
    """The gold texts of one description, against which any masking of it is judged.

    Args:
        description: as it is.
        entities: (text, spans) of E; entities of one text are one unit. Blank texts are dropped.
        related: texts of the related entities.

    Raises:
        PiiBenchError: a span outside of the description, or `related` is one string.
    """

    def __init__(
        self,
        description: str,
        entities: Iterable[tuple[str, Iterable[Span]]],
        related: Iterable[str],
    ) -> None:
        needed = text_set(related)
        spans: defaultdict[str, set[Span]] = defaultdict(set)
        for text, places in entities:
            spans[normalise(text)].update((start, end) for start, end in places)
        spans.pop("", None)
        self.texts: tuple[GoldText, ...] = tuple(
            GoldText(text, text in needed, tuple(sorted(found))) for text, found in spans.items()
        )
        self._length = len(description)
        blank = _bits(bytes(map(str.isspace, description)))
        self._ink = _bits(b"\1" * self._length) ^ blank
        gold = _painted(self._length, (span for each in self.texts for span in each.spans))
        self._other = self._ink & ~_bits(gold)

    def judge(self, masked: Iterable[Span]) -> Judgement:
        """Judge one masking.

        Args:
            masked: what is masked; spans may overlap.

        Raises:
            PiiBenchError: a span outside of the description.
        """
        covered = _bits(_painted(self._length, masked)) & self._ink
        exposed = self._ink ^ covered
        is_covered, is_exposed = (_bytes(each, self._length) for each in (covered, exposed))
        return Judgement(
            hidden=tuple(_without(is_exposed, each.spans) for each in self.texts),
            readable=tuple(_without(is_covered, each.spans) for each in self.texts),
            other=self._other.bit_count(),
            other_masked=(self._other & covered).bit_count(),
        )


def score_masked_text(
    description: str,
    masked_spans: Iterable[Span] | None,
    gold_entities: Iterable[tuple[str, Iterable[Span]]],
    gold_related: Iterable[str],
    *,
    weights: Mapping[str, float] | None = None,
) -> MaskedTextScore:
    """Score what is left of a description in which spans are masked.

    A gold text without any span occurs nowhere, so nothing can be said of it: it is left out.

    Args:
        description: as it is.
        masked_spans: what was really masked, in code points; they may overlap. None for a
            sample without a masked text: protection and retention are 0, also where there is
            nothing to protect or to retain.
        gold_entities: (text, spans) of E; every occurrence of a text is a span.
        gold_related: texts of the related entities.
        weights: gold text to its weight in protection, such as the tier of its sensitivity;
            1 where it has none. None to weigh all alike.

    Raises:
        PiiBenchError: a span outside of the description, a weight below 0, or `gold_related` is
            one string.
    """
    gold = GoldTexts(description, gold_entities, gold_related)
    return score_judgement(
        gold, None if masked_spans is None else gold.judge(masked_spans), weights
    )


def score_judgement(
    gold: GoldTexts, judgement: Judgement | None, weights: Mapping[str, float] | None = None
) -> MaskedTextScore:
    """The scores of a judgement by these gold texts; see `score_masked_text`."""
    if judgement is None:
        return MaskedTextScore(0.0, 0.0, None)
    weighed = {normalise(text): weight for text, weight in (weights or {}).items()}
    if any(weight < 0 for weight in weighed.values()):
        raise PiiBenchError("a weight is below 0; allowed: 0 and more")
    outcomes = zip(gold.texts, judgement.hidden, judgement.readable, strict=True)
    unneeded: list[tuple[float, bool]] = []
    needed: list[tuple[float, bool]] = []
    for each, hidden, readable in outcomes:
        if not each.spans:
            continue
        if each.needed:
            needed.append((1.0, readable > 0))
        else:
            unneeded.append((weighed.get(each.text, 1.0), hidden == len(each.spans)))
    collateral = judgement.other_masked / judgement.other if judgement.other else None
    return MaskedTextScore(_share(unneeded), _share(needed), collateral)


def masking_headline(scores: Sequence[MaskedTextScore]) -> float | None:
    """H = 2PR / (P + R) of the mean protection P and the mean retention R; None of no samples."""
    if not scores:
        return None
    protection = fsum(score.protection for score in scores) / len(scores)
    retention = fsum(score.retention for score in scores) / len(scores)
    return harmonic_mean(protection, retention)


def _share(outcomes: Sequence[tuple[float, bool]]) -> float:
    whole = fsum(weight for weight, _ in outcomes)
    return fsum(weight for weight, good in outcomes if good) / whole if whole else 1.0


def _without(characters: bytes, spans: Iterable[Span]) -> int:
    """How many spans have none of these characters."""
    return sum(characters.find(1, start, end) == -1 for start, end in spans)


def _painted(length: int, spans: Iterable[Span]) -> bytes:
    painted = bytearray(length)
    for start, end in spans:
        if not 0 <= start <= end <= length:
            allowed = f"0 <= start <= end <= {length}"
            raise PiiBenchError(f"a span came from {start} to {end}; allowed: {allowed}")
        painted[start:end] = b"\1" * (end - start)
    return bytes(painted)


def _bits(characters: bytes) -> int:
    """One byte per character, 0 or 1, as one number: whole texts are compared at once."""
    return int.from_bytes(characters, "little")


def _bytes(bits: int, length: int) -> bytes:
    return bits.to_bytes(length, "little")
