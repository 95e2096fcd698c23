"""Classes of the errors of `query-related` and `masking`.

Errors of `query-related` are the scorer's false positives and false negatives. Errors of `masking`
are texts that leak and texts that are masked needlessly. Each error has exactly one class.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.masking.masked import plan_of
from pii_bench.runs.evaluation import gold_texts
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.locate import Strictness, locator_of, overlap
from pii_bench.scorer.text import text_set
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.scorer.locate import Span
    from pii_bench.systems.predictions import Prediction, Subjects


class ErrorClass(StrEnum):
    """Why a text is wrongly in an answer, or wrongly missing from it.

    Terms:
        detected: among the texts of the detection answer.
        chosen: among the texts of the query-related answer.
        annotated: among the gold texts.
        needed: among the related gold texts.
        stray: a text of an answer that is in the description but not annotated.
        touch: two texts touch if a place of one shares a character with a place of the other.
            The places of a text are those annotated, else all where it can be read
            (`Strictness.READABLE`).

    Texts and types are compared as in the scorer. An error has the first class of its list that
    applies. If a sample has no answer (the model failed), every needed text (query-related) or
    every text that is not needed (masking) is `failed`.

    Needed texts that are not chosen (false negatives of query-related), or of which no
    occurrence can be read in full (false positives of masking):
        1. `wrong-span`: a chosen stray touches it, or it is not detected but a detected stray
           touches it, or it is hidden though it is chosen;
        2. `missed`: it is not detected;
        3. `wrong-type`: it is detected, but with none of its types;
        4. `not-chosen`: all others.

    Annotated texts that are chosen but not needed (false positives of query-related), or chosen,
    not needed and readable in part (false negatives of masking):
        1. `wrong-person`: a needed entity of one person is not chosen, and the text belongs only
           to others, as an entity of the same category (or type, if either has no category);
        2. `wrong-type`: it is detected, but with none of its types;
        3. `not-relevant`: all others.

    Texts that are not chosen, not needed and readable in part (false negatives of masking):
        1. `wrong-span`: a detected stray touches it, or it is detected but a chosen text touches
           it;
        2. `missed`: all others.

    Texts that are not annotated but chosen (false positives of query-related), or detected, not
    chosen and masking a character outside of all annotated places (false positives of masking):
        1. `hallucinated`: it is nowhere in the description (`Strictness.EQUAL`); in masking this
           counts though nothing is masked;
        2. `wrong-span`: it touches an annotated text;
        3. `wrong-type`: it is detected;
        4. `not-relevant`: all others.

    Without a detection answer there is no `missed` and no `wrong-type` (`NEED_DETECTION`): those
    errors are `not-chosen` and `not-relevant`.
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
    """Count the errors of one scored sample in query-related or masking by class and side.

    For query-related, the `subjects` of the answer are those of the same system's detection
    answer; None if it has none.

    Raises:
        ValueError: the task is detection, or the answer is not scored.
    """
    if task is Task.DETECTION or not answer.status.scored:
        raise ValueError(f"{task} of sample {sample.id!r} ({answer.status}) has no error classes")
    errors = _related_errors if task is Task.QUERY_RELATED else _masking_errors
    return Counter(errors(sample, answer))


def _related_errors(sample: Sample, answer: Prediction) -> Iterator[tuple[ErrorClass, Side]]:
    needed = text_set(related.text for related in sample.related)
    if answer.related is None:
        yield from [(ErrorClass.FAILED, Side.FALSE_NEGATIVE)] * len(needed)
        return
    classifier = _Classifier(sample, answer.subjects, answer.related)
    for text in needed - classifier.chosen:
        yield classifier.unchosen(text), Side.FALSE_NEGATIVE
    for text in classifier.chosen - needed:
        is_stray = text not in classifier.owners
        kind = classifier.stray(text) if is_stray else classifier.wrongly_chosen(text)
        yield kind, Side.FALSE_POSITIVE


def _masking_errors(sample: Sample, answer: Prediction) -> Iterator[tuple[ErrorClass, Side]]:
    gold = gold_texts(sample)
    plan = plan_of(sample.description, answer.subjects, answer.related)
    if plan is None or answer.related is None:
        count = sum(not text.needed for text in gold.texts if text.spans)
        yield from [(ErrorClass.FAILED, Side.FALSE_NEGATIVE)] * count
        return
    classifier = _Classifier(sample, answer.subjects, answer.related)
    judgement = gold.judge(plan.spans)
    for text, hidden, readable in zip(
        gold.texts, judgement.hidden, judgement.readable, strict=True
    ):
        if text.needed and text.spans and not readable:
            yield classifier.hidden(text.text), Side.FALSE_POSITIVE
        elif not text.needed and hidden < len(text.spans):
            yield classifier.shown(text.text), Side.FALSE_NEGATIVE
    for stray in classifier.detected.keys() - classifier.chosen - classifier.owners.keys():
        kind = classifier.stray(stray)
        masked = _intersect(classifier.places(stray), plan.spans)
        if kind is ErrorClass.HALLUCINATED or gold.judge(masked).other_masked:
            yield kind, Side.FALSE_POSITIVE


def _intersect(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    pairs = ((max(a, c), min(b, d)) for a, b in spans for c, d in others)
    return [(start, end) for start, end in pairs if start < end]


class _Classifier:
    """Finds the class of each error of one sample. All texts are normalised.

    Attributes:
        chosen: texts of the query-related answer.
        detected: the types of each text of the detection answer.
        owners: the entities of each annotated text, each with its subject's id.
    """

    def __init__(self, sample: Sample, subjects: Subjects | None, related: Iterable[str]) -> None:
        self.chosen = text_set(related)
        self.detected: dict[str, set[str]] = {}
        for subject in subjects or ():
            for text, pii_type in subject:
                types = self.detected.setdefault(normalise(text), set())
                types.add(normalise_type(pii_type))
        self.detected.pop("", None)
        self.owners: dict[str, list[tuple[str, Entity]]] = {}
        for person in sample.subjects:
            for entity in person.entities:
                owners = self.owners.setdefault(normalise(entity.text), [])
                owners.append((person.id, entity))
        self._has_detection = subjects is not None
        self._locator = locator_of(sample.description)
        self._gold_places = {
            text: [span for _, entity in owned for span in entity.spans]
            for text, owned in self.owners.items()
        }
        self._unchosen_needs = [
            (person, entity)
            for related in sample.related
            if (text := normalise(related.text)) not in self.chosen
            for person, entity in self.owners[text]
            if person == related.subject
        ]

    def places(self, text: str) -> tuple[Span, ...]:
        return self._locator.spans(text)

    def stray(self, text: str) -> ErrorClass:
        """Classify a text of an answer that is not annotated."""
        if not self._locator.spans(text, Strictness.EQUAL):
            return ErrorClass.HALLUCINATED
        if any(overlap(self.places(text), places) for places in self._gold_places.values()):
            return ErrorClass.WRONG_SPAN
        return ErrorClass.WRONG_TYPE if text in self.detected else ErrorClass.NOT_RELEVANT

    def unchosen(self, text: str) -> ErrorClass:
        """Classify a needed text that is not chosen."""
        if self._touched(text, self.chosen):
            return ErrorClass.WRONG_SPAN
        if self._has_detection and text not in self.detected:
            return self._undetected(text)
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_CHOSEN

    def wrongly_chosen(self, text: str) -> ErrorClass:
        """Classify an annotated text that is chosen but not needed."""
        if self._of_wrong_person(text):
            return ErrorClass.WRONG_PERSON
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_RELEVANT

    def hidden(self, text: str) -> ErrorClass:
        """Classify a needed text that cannot be read."""
        return ErrorClass.WRONG_SPAN if text in self.chosen else self.unchosen(text)

    def shown(self, text: str) -> ErrorClass:
        """Classify a text that can be read but is not needed."""
        if text in self.chosen:
            return self.wrongly_chosen(text)
        if text not in self.detected:
            return self._undetected(text)
        kept = [span for chosen in self.chosen for span in self.places(chosen)]
        return (
            ErrorClass.WRONG_SPAN if overlap(kept, self._gold_places[text]) else ErrorClass.MISSED
        )

    def _undetected(self, text: str) -> ErrorClass:
        touched = self._touched(text, self.detected)
        return ErrorClass.WRONG_SPAN if touched else ErrorClass.MISSED

    def _mistyped(self, text: str) -> bool:
        types = {normalise_type(entity.type) for _, entity in self.owners[text]}
        return text in self.detected and types.isdisjoint(self.detected[text])

    def _of_wrong_person(self, text: str) -> bool:
        owners = self.owners[text]
        return any(
            _same_kind(entity, needed)
            for person, needed in self._unchosen_needs
            if all(subject != person for subject, _ in owners)
            for _, entity in owners
        )

    def _touched(self, text: str, answered: Iterable[str]) -> bool:
        """Return whether any stray among the answered texts touches an annotated text."""
        places = self._gold_places[text]
        return any(overlap(self.places(s), places) for s in answered if s not in self.owners)


def _same_kind(entity: Entity, other: Entity) -> bool:
    if entity.category is None or other.category is None:
        return entity.type == other.type
    return entity.category == other.category
