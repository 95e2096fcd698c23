"""Leak against over-masking: what a masked text still shows, and what it hides in vain.

Both are judged on the text that is left, not on the sets that are scored: an entity that was
cut out as a part of something longer does not leak, though its span was wrong.

The units are the annotated texts, as for the scorer: one text is needed if any of its entities
is, for no masker can hide and show the same words. It stands at all places of its entities. One
that has no place (foreign data) is left out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.diagnosis.places import Description
from pii_bench.scorer import normalise
from pii_bench.scorer.text import text_set
from pii_bench.taxonomy import sensitivity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.diagnosis.places import Span
    from pii_bench.predictions.prediction import Prediction

TIERS: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What masking did, in numbers that can be summed over samples.

    Attributes:
        unneeded: texts that the query does not need, one number per tier (`TIERS`).
        leaked: those of them that are not masked: a part of an occurrence can be read. A text
            is masked only if every occurrence is.
        needed: texts that the query needs.
        needed_masked: those of them of which no occurrence can be read in full.
        other: characters that are neither white space nor part of an annotated text.
        other_masked: those of them that are masked.
        repeated: unneeded texts with more than one occurrence.
        repeated_in_part: those of them of which some occurrences are masked and some are not.
        repeated_open: those of them of which no occurrence is masked.
    """

    unneeded: tuple[int, ...] = (0, 0, 0)
    leaked: tuple[int, ...] = (0, 0, 0)
    needed: int = 0
    needed_masked: int = 0
    other: int = 0
    other_masked: int = 0
    repeated: int = 0
    repeated_in_part: int = 0
    repeated_open: int = 0

    def __add__(self, other: Exposure) -> Exposure:
        return Exposure(
            unneeded=_add(self.unneeded, other.unneeded),
            leaked=_add(self.leaked, other.leaked),
            **{name: getattr(self, name) + getattr(other, name) for name in _NUMBERS},
        )

    @property
    def leak(self) -> float | None:
        """Leaked of unneeded texts, each weighted by its tier; None where there are none."""
        return _rate(_weigh(self.leaked), _weigh(self.unneeded))

    @property
    def plain_leak(self) -> float | None:
        """Leaked of unneeded texts, all alike; None where there are none."""
        return _rate(sum(self.leaked), sum(self.unneeded))

    def leak_of(self, tier: int) -> float | None:
        """Leaked of unneeded texts of one tier; None where there are none."""
        return _rate(self.leaked[tier - 1], self.unneeded[tier - 1])

    @property
    def over_masking(self) -> float | None:
        """Masked of needed texts; None where there are none."""
        return _rate(self.needed_masked, self.needed)

    @property
    def text_over_masking(self) -> float | None:
        """Masked of the characters that are no PII; None where there are none."""
        return _rate(self.other_masked, self.other)


_NUMBERS: Final = tuple(
    field.name for field in fields(Exposure) if field.name not in {"unneeded", "leaked"}
)


class Judge:
    """Judges masked versions of one sample's description.

    Args:
        sample: gold, with a query.
    """

    def __init__(self, sample: Sample) -> None:
        self._description = Description(sample.description)
        needed = text_set(related.text for related in sample.related)
        tiers: defaultdict[str, int] = defaultdict(int)
        places: defaultdict[str, set[Span]] = defaultdict(set)
        for entity in sample.entities:
            text = normalise(entity.text)
            tiers[text] = max(tiers[text], sensitivity(entity.category, entity.type))
            places[text].update(self._description.entity_places(entity))
        held = [text for text in places if places[text]]
        spans = [(start, end, row) for row, text in enumerate(held) for start, end in places[text]]
        self._starts, self._ends, self._rows = np.array(spans, dtype=np.intp).reshape(-1, 3).T
        self._occurrences = np.bincount(self._rows, minlength=len(held))
        # 0 for a needed text.
        self._tiers = np.array([0 if t in needed else tiers[t] for t in held], dtype=np.intp)
        self._blank = np.array([char.isspace() for char in sample.description], dtype=np.bool_)
        annotated = _paint(len(self._blank), [(start, end) for start, end, _ in spans])
        self._other = ~(annotated | self._blank)

    @property
    def everything(self) -> list[Span]:
        """The one span that masks the whole description."""
        return [(0, len(self._blank))]

    def spans_masked_by(self, masked: Iterable[str], kept: Iterable[str]) -> list[Span]:
        """What a masker covers that is told texts, not places.

        It covers every place of every masked text (`Description.places`). Where it would cut
        into a place of a text that it is to keep, the longer place decides, the later of two
        of one length: `Boston` stays in a kept `University of Boston`.

        Args:
            masked: texts to mask.
            kept: texts to keep, such as the query-related answer; none of those to mask.
        """
        found = [
            *((span, True) for text in masked for span in self._description.places(text)),
            *((span, False) for text in kept for span in self._description.places(text)),
        ]
        covered = np.zeros(len(self._blank), dtype=np.bool_)
        for (start, end), hides in sorted(found, key=lambda each: (each[0][1] - each[0][0], each)):
            covered[start:end] = hides
        edges = np.flatnonzero(np.diff(covered, prepend=False, append=False)).tolist()
        return [*zip(edges[::2], edges[1::2], strict=True)]

    def judge(self, masked: Sequence[Span]) -> Exposure:
        """What the description shows and hides with these spans masked; they may overlap."""
        hidden = _paint(len(self._blank), masked) | self._blank
        masked_in_full = self._count(hidden)
        readable = self._count(~hidden | self._blank)
        needed = self._tiers == 0
        leaks = masked_in_full < self._occurrences
        repeated = ~needed & (self._occurrences > 1)
        return Exposure(
            unneeded=self._by_tier(~needed),
            leaked=self._by_tier(~needed & leaks),
            needed=int(np.count_nonzero(needed)),
            needed_masked=int(np.count_nonzero(needed & (readable == 0))),
            other=int(np.count_nonzero(self._other)),
            other_masked=int(np.count_nonzero(self._other & hidden)),
            repeated=int(np.count_nonzero(repeated)),
            repeated_in_part=int(np.count_nonzero(repeated & leaks & (masked_in_full > 0))),
            repeated_open=int(np.count_nonzero(repeated & (masked_in_full == 0))),
        )

    def _count(self, characters: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Of each text, the occurrences all of whose characters are among these."""
        before = np.concatenate([[0], np.cumsum(characters)])
        whole = before[self._ends] - before[self._starts] == self._ends - self._starts
        return np.bincount(self._rows[whole], minlength=len(self._tiers))

    def _by_tier(self, chosen: NDArray[np.bool_]) -> tuple[int, ...]:
        counts = np.bincount(self._tiers[chosen], minlength=len(TIERS) + 1)
        return tuple(counts[1:].tolist())


def judge_answer(sample: Sample, answer: Prediction) -> Exposure:
    """Judge a sample as masked by the texts of a masking prediction.

    Raises:
        ValueError: there is no answer; what a guard does then is its own choice (`account`).
    """
    if answer.subjects is None or answer.related is None:
        raise ValueError(f"sample {sample.id!r} has no answer ({answer.status})")
    judge = Judge(sample)
    detected = text_set(text for subject in answer.subjects for text, _ in subject)
    kept = text_set(answer.related)
    return judge.judge(judge.spans_masked_by(detected - kept, kept))


@dataclass(frozen=True, slots=True)
class Account:
    """Leak and over-masking over a dataset, and what the failures make of them.

    A guard that gets no answer for a text either lets it pass as it is (it fails open) or
    blocks it, which hides all of it (it fails closed).

    Attributes:
        samples: gold samples with a query.
        answered: samples with an answer.
        failed: samples that the model failed; the rest was never scored.
        of_answered: over the answered samples alone.
        open: over answered and failed samples, where failed ones pass unmasked.
        closed: over the same, where failed ones are hidden.
    """

    samples: int
    answered: int
    failed: int
    of_answered: Exposure
    open: Exposure
    closed: Exposure


def account(samples: Sequence[Sample], answers: Mapping[str, Prediction]) -> Account:
    """Account for masking predictions (sample id to prediction).

    Samples that were never answered for want of the network or of money are not failures of
    the model: they stand in `samples` alone.
    """
    asked = [sample for sample in samples if sample.query is not None]
    answered = failed = 0
    of_answered = passed = blocked = Exposure()
    for sample in asked:
        answer = answers.get(sample.id)
        if answer is None or not answer.status.scored:
            continue
        if answer.status.answered:
            answered += 1
            of_answered += judge_answer(sample, answer)
        else:
            failed += 1
            judge = Judge(sample)
            passed += judge.judge([])
            blocked += judge.judge(judge.everything)
    return Account(
        samples=len(asked),
        answered=answered,
        failed=failed,
        of_answered=of_answered,
        open=of_answered + passed,
        closed=of_answered + blocked,
    )


def _paint(length: int, spans: Iterable[Span]) -> NDArray[np.bool_]:
    painted = np.zeros(length, dtype=np.bool_)
    for start, end in spans:
        painted[start:end] = True
    return painted


def _weigh(counts: tuple[int, ...]) -> int:
    return sum(tier * count for tier, count in zip(TIERS, counts, strict=True))


def _add(counts: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(counts, others, strict=True))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
