"""Every error of `query-related` and `masking`, put into one of eight classes.

The errors of a sample are the false positives and false negatives of the scorer's sets: the
classes of a sample add up to them, whatever the answer was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.diagnosis.places import Description, overlap
from pii_bench.scorer import normalise, normalise_type
from pii_bench.scorer.text import text_set
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.diagnosis.places import Span
    from pii_bench.predictions.prediction import Prediction


class ErrorClass(StrEnum):
    """Why a text is wrongly in an answer, or wrongly not in it.

    Words used below. *Detected*: among the texts of the detection answer. *Chosen*: among the
    texts of the query-related answer. *Annotated*: among the texts of E; *needed*: of E_q. A
    *stray* is a text of an answer that is not annotated though it stands in the description. A
    stray *touches* an annotated text if a place of the one shares a character with a place of
    the other (`Description.places`). Texts and types are equal as the scorer has it.

    False positives are texts chosen though not needed (query-related) or masked though not to
    be masked (masking); false negatives are the reverse. An error gets the first class of its
    list that applies.

    A sample without an answer (the model's failure): `failed`, for every error of it.

    A text that is needed but not chosen (so masked, if detected):
        1. `wrong-span`: a chosen stray touches it, or it is not detected but a detected stray
           touches it;
        2. `missed`: not detected;
        3. `wrong-type`: detected, but with none of the types that it has;
        4. `not-chosen`: all others, found but not taken as relevant.

    An annotated text that is chosen but not needed (so not masked):
        1. `wrong-person`: a needed entity of one person is not chosen, and the text is no
           entity of theirs but one of somebody else, of the same category (of the same type
           where one of the two has no category);
        2. `wrong-type`: detected, but with none of the types that it has;
        3. `not-relevant`: all others.

    An annotated text that is neither needed nor chosen nor detected (so not masked):
        1. `wrong-span`: a detected stray touches it;
        2. `missed`: all others.

    A text that is chosen or masked but not annotated:
        1. `hallucinated`: it does not stand in the description, as the leaderboard counts it;
        2. `wrong-span`: it touches an annotated text;
        3. `wrong-type`: detected, so taken for PII, which it is not;
        4. `not-relevant`: all others.

    Where there is no detection answer, nothing counts as missed or wrong type
    (`NEED_DETECTION`): those errors stand under `not-chosen` and `not-relevant`.
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
"""The classes that cannot occur where a query-related answer has no detection answer beside."""


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
    needed = text_set(related.text for related in sample.related)
    chosen = None if answer.related is None else text_set(answer.related)
    detected = None if answer.subjects is None else _types(answer.subjects)
    gold, predicted = needed, chosen
    if task is Task.MASKING:
        gold = text_set(entity.text for entity in sample.entities) - needed
        predicted = None
        if chosen is not None and detected is not None:
            predicted = frozenset(detected) - chosen
    if chosen is None or predicted is None:
        return Counter({(ErrorClass.FAILED, Side.FALSE_NEGATIVE): len(gold)} if gold else {})
    reading = _Reading(sample, needed, chosen, detected)
    return Counter(
        (reading.explain(text), side)
        for side, texts in (
            (Side.FALSE_POSITIVE, predicted - gold),
            (Side.FALSE_NEGATIVE, gold - predicted),
        )
        for text in texts
    )


class _Reading:
    """What answers and annotation say of the texts of one sample; all texts are normalised.

    Args:
        sample: gold.
        needed: E_q.
        chosen: the query-related answer.
        detected: the detection answer, text to types; None where there is none.
    """

    def __init__(
        self,
        sample: Sample,
        needed: frozenset[str],
        chosen: frozenset[str],
        detected: Mapping[str, frozenset[str]] | None,
    ) -> None:
        self._needed = needed
        self._chosen = chosen
        self._detected = detected
        self._description = Description(sample.description)
        self._owners = _owners(sample)
        self._unchosen_needs = [
            (person, entity)
            for related in sample.related
            if (text := normalise(related.text)) not in chosen
            for person, entity in self._owners[text]
            if person == related.subject
        ]

    def explain(self, text: str) -> ErrorClass:
        """The class of an error."""
        if text not in self._owners:
            return self._explain_stray(text)
        if text in self._needed:
            return self._explain_unchosen(text)
        if text in self._chosen:
            return self._explain_chosen(text)
        return self._explain_undetected(text)

    def _explain_stray(self, text: str) -> ErrorClass:
        if text not in self._description.normalised:
            return ErrorClass.HALLUCINATED
        if self._touched_by([text]):
            return ErrorClass.WRONG_SPAN
        if self._detected is not None and text in self._detected:
            return ErrorClass.WRONG_TYPE
        return ErrorClass.NOT_RELEVANT

    def _explain_unchosen(self, text: str) -> ErrorClass:
        if text in self._touched_by_chosen:
            return ErrorClass.WRONG_SPAN
        if self._detected is not None and text not in self._detected:
            return self._explain_undetected(text)
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_CHOSEN

    def _explain_chosen(self, text: str) -> ErrorClass:
        if self._of_wrong_person(text):
            return ErrorClass.WRONG_PERSON
        return ErrorClass.WRONG_TYPE if self._mistyped(text) else ErrorClass.NOT_RELEVANT

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
        strays = [self._description.places(text) for text in texts if text not in self._owners]
        return {
            annotated
            for annotated, places in self._places.items()
            if any(overlap(stray, places) for stray in strays)
        }

    @cached_property
    def _touched_by_chosen(self) -> set[str]:
        return self._touched_by(self._chosen)

    @cached_property
    def _touched_by_detected(self) -> set[str]:
        return self._touched_by(self._detected or ())

    @cached_property
    def _places(self) -> Mapping[str, tuple[Span, ...]]:
        """The places of each annotated text."""
        place = self._description.entity_places
        return {
            text: tuple(chain.from_iterable(place(entity) for _, entity in owned))
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
