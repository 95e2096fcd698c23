"""Every error of `query-related` and `masking`, put into one of eight classes.

Errors of `query-related` are the false positives and false negatives of the scorer's sets. Errors
of `masking` are those of the masked text: what leaks, what is hidden in vain. The classes of a
sample add up to them, whatever the answer was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.datasets.sample import spans_of
from pii_bench.masking.masked import plan_of
from pii_bench.runs.evaluation import gold_texts
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import Strictness, locator_of, overlap
from pii_bench.scorer.text import text_set
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.predictions import Prediction


class ErrorClass(StrEnum):
    """Why a text is wrongly in an answer, or wrongly not in it.

    Words used below. *Detected*: among the texts of the detection answer. *Chosen*: among the texts
    of the query-related answer. *Annotated*: among the gold texts; *needed*: among the related
    ones. A *stray* is a text of an answer that is not annotated though it is in the description.
    Two texts *touch* if a place of the one shares a character with a place of the other; places are
    those annotated, else wherever the text can be read (`Strictness.READABLE`). Texts and types are
    equal as the scorer has it.

    An error gets the first class of its list that applies. A sample without an answer (the
    model's failure): `failed`, for every text needed (query-related) or not needed (masking).

    False negatives of query-related: texts that are needed but not chosen. False positives of
    masking: texts that are needed and of which no occurrence can be read in full.
        1. `wrong-span`: a chosen stray touches it, or it is not detected but a detected stray
           touches it, or it is hidden though it is chosen;
        2. `missed`: not detected;
        3. `wrong-type`: detected, but with none of the types that it has;
        4. `not-chosen`: all others, found but not taken as relevant.

    False positives of query-related: annotated texts that are chosen but not needed. False
    negatives of masking, where chosen: texts that are not needed and of which a character of some
    occurrence can be read.
        1. `wrong-person`: a needed entity of one person is not chosen, and the text is no
           entity of theirs but one of somebody else, of the same category (of the same type
           where one of the two has no category);
        2. `wrong-type`: detected, but with none of the types that it has;
        3. `not-relevant`: all others.

    False negatives of masking, where not chosen:
        1. `wrong-span`: a detected stray touches it, or it is detected but a chosen text touches
           it;
        2. `missed`: all others.

    False positives that are not annotated: texts that are chosen (query-related), or that are
    detected, not chosen and mask a visible character outside of all annotated places (masking).
        1. `hallucinated`: it is nowhere in the description (`Strictness.EQUAL`), as the
           leaderboard counts it; this counts in masking too, though it masks nothing;
        2. `wrong-span`: it touches an annotated text;
        3. `wrong-type`: detected, so taken for PII, which it is not;
        4. `not-relevant`: all others.

    Where there is no detection answer, nothing counts as missed or wrong type
    (`NEED_DETECTION`): those errors are listed under `not-chosen` and `not-relevant`.
    """

    MISSED = "missed"
    WRONG_SPAN = "wrong-span"
    WRONG_TYPE = "wrong-type"
    NOT_CHOSEN = "not-chosen"
    NOT_RELEVANT = "not-relevant"
    WRONG_PERSON = "wrong-person"
    HALLUCINATED = "hallucinated"
    FAILED = "failed"


NEED_DETECTION: Final = frozenset({ErrorClass.MISSED, ErrorClass.WRONG_TYPE})
"""The classes that cannot occur without an answer to detection for the same sample."""


class Side(StrEnum):
    """How an error counts in the score."""

    FALSE_POSITIVE = "false-positive"
    FALSE_NEGATIVE = "false-negative"


ErrorCounts: TypeAlias = Counter[tuple[ErrorClass, Side]]


def classify(task: Task, sample: Sample, answer: Prediction) -> ErrorCounts:
    """Count the errors of one sample by class and side.

    Args:
        task: query-related or masking.
        sample: gold.
        answer: for masking, the composed prediction. For query-related, the prediction with
            the `subjects` of the same system's detection answer, None where it has none.

    Raises:
        ValueError: the task is detection, or the sample was never answered, so never scored.
    """
    if task is Task.DETECTION:
        raise ValueError("errors of detection have no classes (allowed: query-related, masking)")
    if not answer.status.scored:
        raise ValueError(f"sample {sample.id!r} is {answer.status}: it is not scored")
    errors = _related_errors if task is Task.QUERY_RELATED else _masking_errors
    return Counter(errors(sample, answer))


def _related_errors(sample: Sample, answer: Prediction) -> Iterator[tuple[ErrorClass, Side]]:
    needed = text_set(related.text for related in sample.related)
    if answer.related is None:
        yield from [(ErrorClass.FAILED, Side.FALSE_NEGATIVE)] * len(needed)
        return
    reading = _Reading(sample, answer, answer.related)
    for text in needed - reading.chosen:
        yield reading.explain_unchosen(text), Side.FALSE_NEGATIVE
    for text in reading.chosen - needed:
        explain = reading.explain_chosen if reading.annotates(text) else reading.explain_stray
        yield explain(text), Side.FALSE_POSITIVE


def _masking_errors(sample: Sample, answer: Prediction) -> Iterator[tuple[ErrorClass, Side]]:
    gold, plan = gold_texts(sample), plan_of(sample.description, answer.subjects, answer.related)
    if plan is None or answer.related is None:
        lost = sum(not each.needed for each in gold.texts if each.spans)
        yield from [(ErrorClass.FAILED, Side.FALSE_NEGATIVE)] * lost
        return
    reading = _Reading(sample, answer, answer.related)
    judgement = gold.judge(plan.spans)
    outcomes = zip(gold.texts, judgement.hidden, judgement.readable, strict=True)
    for each, hidden, readable in outcomes:
        if each.needed and each.spans and not readable:
            yield reading.explain_hidden(each.text), Side.FALSE_POSITIVE
        elif not each.needed and hidden < len(each.spans):
            yield reading.explain_shown(each.text), Side.FALSE_NEGATIVE
    for text in reading.strays_masked:
        kind = reading.explain_stray(text)
        hides = _shared(reading.places(text), plan.spans)
        if kind is ErrorClass.HALLUCINATED or gold.judge(hides).other_masked:
            yield kind, Side.FALSE_POSITIVE


def _shared(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    """What two lists of spans have in common."""
    both = ((max(a, c), min(b, d)) for a, b in spans for c, d in others)
    return [(start, end) for start, end in both if start < end]


class _Reading:
    """What answers and annotation say of the texts of one sample; all texts are normalised.

    Args:
        sample: gold.
        answer: with `subjects` None where there is no detection answer.
        related: its texts for the query.
    """

    def __init__(self, sample: Sample, answer: Prediction, related: Iterable[str]) -> None:
        self.chosen = text_set(related)
        self._detected = None if answer.subjects is None else _types(answer.subjects)
        self._text = sample.description
        self._locator = locator_of(sample.description)
        self._owners = _owners(sample)
        self._unchosen_needs = [
            (person, entity)
            for related in sample.related
            if (text := normalise(related.text)) not in self.chosen
            for person, entity in self._owners[text]
            if person == related.subject
        ]

    def annotates(self, text: str) -> bool:
        """Whether it is a text of E."""
        return text in self._owners

    @property
    def strays_masked(self) -> set[str]:
        """The texts that are detected, not chosen and not annotated."""
        return set(self._detected or ()) - self.chosen - self._owners.keys()

    def places(self, text: str) -> tuple[Span, ...]:
        """Where a text can be read."""
        return self._locator.spans(text)

    def explain_stray(self, text: str) -> ErrorClass:
        """Why a text that is not annotated is in an answer."""
        if not self._locator.spans(text, Strictness.EQUAL):
            return ErrorClass.HALLUCINATED
        if self._touched_by([text]):
            return ErrorClass.WRONG_SPAN
        if self._detected is not None and text in self._detected:
            return ErrorClass.WRONG_TYPE
        return ErrorClass.NOT_RELEVANT

    def explain_unchosen(self, text: str) -> ErrorClass:
        """Why a needed text is not chosen."""
        if text in self._touched_by_chosen:
            return ErrorClass.WRONG_SPAN
        if self._detected is not None and text not in self._detected:
            return self._explain_undetected(text)
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_CHOSEN

    def explain_chosen(self, text: str) -> ErrorClass:
        """Why an annotated text is chosen that is not needed."""
        if self._of_wrong_person(text):
            return ErrorClass.WRONG_PERSON
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_RELEVANT

    def explain_hidden(self, text: str) -> ErrorClass:
        """Why a needed text cannot be read."""
        return ErrorClass.WRONG_SPAN if text in self.chosen else self.explain_unchosen(text)

    def explain_shown(self, text: str) -> ErrorClass:
        """Why a text can be read that is not needed."""
        if text in self.chosen:
            return self.explain_chosen(text)
        if text not in (self._detected or {}):
            return self._explain_undetected(text)
        kept = [span for each in self.chosen for span in self.places(each)]
        return ErrorClass.WRONG_SPAN if overlap(kept, self._places[text]) else ErrorClass.MISSED

    def _explain_undetected(self, text: str) -> ErrorClass:
        touched = text in self._touched_by_detected
        return ErrorClass.WRONG_SPAN if touched else ErrorClass.MISSED

    def _mistyped(self, text: str) -> bool:
        given = (self._detected or {}).get(text)
        own = {normalise_type(entity.type) for _, entity in self._owners[text]}
        return given is not None and not given & own

    def _of_wrong_person(self, text: str) -> bool:
        owners = self._owners[text]
        return any(
            _alike(entity, wanted)
            for person, wanted in self._unchosen_needs
            if all(subject != person for subject, _ in owners)
            for _, entity in owners
        )

    def _touched_by(self, texts: Iterable[str]) -> set[str]:
        """The annotated texts that the strays among texts touch."""
        strays = [self.places(text) for text in texts if text not in self._owners]
        return {
            annotated
            for annotated, places in self._places.items()
            if any(overlap(stray, places) for stray in strays)
        }

    @cached_property
    def _touched_by_chosen(self) -> set[str]:
        return self._touched_by(self.chosen)

    @cached_property
    def _touched_by_detected(self) -> set[str]:
        return self._touched_by(self._detected or ())

    @cached_property
    def _places(self) -> Mapping[str, tuple[Span, ...]]:
        """The places of each annotated text."""
        return {
            text: tuple(chain.from_iterable(spans_of(entity, self._text) for _, entity in owned))
            for text, owned in self._owners.items()
        }


def _owners(sample: Sample) -> dict[str, list[tuple[str, Entity]]]:
    """Annotated text to its entities, each with its subject."""
    owners: defaultdict[str, list[tuple[str, Entity]]] = defaultdict(list)
    for subject in sample.subjects:
        for entity in subject.entities:
            owners[normalise(entity.text)].append((subject.id, entity))
    return dict(owners)


def _types(subjects: Iterable[Iterable[tuple[str, str]]]) -> dict[str, frozenset[str]]:
    types: defaultdict[str, set[str]] = defaultdict(set)
    for subject in subjects:
        for text, pii_type in subject:
            types[normalise(text)].add(normalise_type(pii_type))
    return {text: frozenset(given) for text, given in types.items() if text}


def _alike(entity: Entity, other: Entity) -> bool:
    if entity.category is None or other.category is None:
        return entity.type == other.type
    return entity.category == other.category
