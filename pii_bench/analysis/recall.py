"""What is found of each type and category: counts summed over samples, then divided once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from pii_bench.scorer import normalise, normalise_type, score_detection
from pii_bench.scorer.text import entity_set, text_set
from pii_bench.tasks import Task
from pii_bench.taxonomy import CATEGORIES, TYPE_OF_CATEGORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from pii_bench.analysis.runs import EvaluatedRun, RunName
    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.systems.predictions import Prediction

Level: TypeAlias = Literal["type", "category"]


class Rule(StrEnum):
    """When a gold entity is found.

    `STRICT`: its text with its type is among those of the person matched with its own, as in
    Strict-F1. `TYPED`: its text with its type is among all predicted, of any person
    ascribed to; the one rule for systems that name no subjects. `TEXT`: its text is among
    those predicted, which is all that an answer to a query holds.
    """

    STRICT = "strict"
    TYPED = "typed"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Share:
    """What is found of one type or category in one run.

    An answer names types, never categories, and an answer to a query neither: there precision
    and F1 are None. So is each rate whose denominator is 0.

    Attributes:
        rule: when an entity counts as found.
        level: whether `name` is a type or a category.
        type: `name`, or the type of the category.
        found: gold entities found.
        predicted: entities predicted of the type; None where an answer does not tell.
        gold: gold entities in the scored samples. One whose text is under two categories
            counts in both.
    """

    run: RunName
    rule: Rule
    level: Level
    name: str
    type: str
    found: int
    predicted: int | None
    gold: int

    @property
    def precision(self) -> float | None:
        """Found of predicted."""
        return self.found / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Found of gold."""
        return self.found / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """2 * found / (predicted + gold)."""
        if self.predicted is None or not self.predicted + self.gold:
            return None
        return 2 * self.found / (self.predicted + self.gold)


def shares(runs: Iterable[EvaluatedRun]) -> list[Share]:
    """The shares of every detection and query-related run; masking and rewriting have none.

    Detection has those by `TYPED`, and by `STRICT` too where it names subjects. Types come in
    the order of the taxonomy, then its categories; those without any entity, gold or
    predicted, are absent.
    """
    return [share for run in runs for rule in _rules(run) for share in _shares(run, rule)]


def _rules(run: EvaluatedRun) -> list[Rule]:
    if run.name.task is Task.DETECTION:
        return [Rule.STRICT, Rule.TYPED] if run.names_subjects else [Rule.TYPED]
    return [Rule.TEXT] if run.name.task is Task.QUERY_RELATED else []


_Pair: TypeAlias = tuple[str, str]
_Name: TypeAlias = tuple[Level, str]


def _shares(run: EvaluatedRun, rule: Rule) -> Iterator[Share]:
    found, predicted, gold = Counter[_Name](), Counter[_Name](), Counter[_Name]()
    scored = {score.id for score in run.evaluation.scores}
    for sample in run.samples:
        if sample.id not in scored:
            continue
        prediction = run.predictions[sample.id]
        predicted.update(("type", kind) for kind in _predicted_types(prediction, rule))
        for entities, said in _groups(sample, prediction, rule):
            for pair, level, name in _named(entities):
                gold[level, name] += 1
                found[level, name] += pair in said
    for level, name in _ordered(gold.keys() | predicted.keys()):
        known = level == "type" and rule is not Rule.TEXT
        yield Share(
            run=run.name,
            rule=rule,
            level=level,
            name=name,
            type=name if level == "type" else TYPE_OF_CATEGORY.get(name, ""),
            found=found[level, name],
            predicted=predicted[level, name] if known else None,
            gold=gold[level, name],
        )


def _predicted_types(prediction: Prediction, rule: Rule) -> Iterator[str]:
    """The type of each distinct entity predicted: by `STRICT` distinct within a person."""
    subjects = prediction.subjects or ()
    if rule is Rule.STRICT:
        yield from (kind for subject in subjects for _, kind in entity_set(subject))
    elif rule is Rule.TYPED:
        yield from (kind for _, kind in entity_set(pair for each in subjects for pair in each))


def _groups(
    sample: Sample, prediction: Prediction, rule: Rule
) -> Iterator[tuple[Iterable[Entity], AbstractSet[_Pair]]]:
    """What is compared within one sample: by `STRICT` one person's entities, else all.

    Yields:
        The gold entities, and (text, type) pairs with those of theirs that are predicted.
    """
    subjects = prediction.subjects or ()
    match rule:
        case Rule.STRICT:
            gold = [[(e.text, e.type) for e in subject.entities] for subject in sample.subjects]
            matching = score_detection(subjects, gold).matching
            answer = {theirs: entity_set(subjects[ours]) for ours, theirs in matching}
            for place, subject in enumerate(sample.subjects):
                yield subject.entities, answer.get(place, frozenset())
        case Rule.TYPED:
            yield sample.entities, entity_set(pair for each in subjects for pair in each)
        case Rule.TEXT:
            needed = {(related.subject, normalise(related.text)) for related in sample.related}
            entities = [
                entity
                for subject in sample.subjects
                for entity in subject.entities
                if (subject.id, normalise(entity.text)) in needed
            ]
            texts = text_set(prediction.related or ())
            yield entities, {pair for pair in map(_pair, entities) if pair[0] in texts}


def _pair(entity: Entity) -> _Pair:
    return normalise(entity.text), normalise_type(entity.type)


def _named(entities: Iterable[Entity]) -> set[tuple[_Pair, Level, str]]:
    """The distinct pairs under the type and the category of each."""
    named: set[tuple[_Pair, Level, str]] = set()
    for entity in entities:
        pair = _pair(entity)
        named.add((pair, "type", pair[1]))
        if entity.category is not None:
            named.add((pair, "category", entity.category))
    return named


def _ordered(names: Iterable[_Name]) -> list[_Name]:
    known: list[_Name] = [("type", str(kind)) for kind in CATEGORIES]
    known += [("category", name) for name in TYPE_OF_CATEGORY]
    place = {name: number for number, name in enumerate(known)}
    # Names of foreign data that the taxonomy does not have come last.
    return sorted(names, key=lambda n: (n[0] == "category", place.get(n, len(place)), n[1]))
