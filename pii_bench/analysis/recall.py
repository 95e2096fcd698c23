"""Recall, precision and F1 of each type and category, from counts summed over samples."""

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
    """When a gold entity counts as found.

    `STRICT`: its text and type are predicted for the matched subject, as in Strict-F1.
    `TYPED`: its text and type are predicted for any subject.
    `TEXT`: its text is predicted; answers to a query have no types.
    """

    STRICT = "strict"
    TYPED = "typed"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Share:
    """The counts and rates of one type or category in one run.

    Precision and F1 are None for categories and for answers to a query, because predictions name
    no categories and those answers no types. A rate whose denominator is 0 is None too.

    Attributes:
        name: of a type or category.
        type: `name`, or the type of the category.
        found: number of gold entities found.
        predicted: number of entities predicted with the type; None if unknown.
        gold: number of gold entities. A text with two categories counts in both.
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
    """Return the shares of every detection and query-related run.

    Detection has shares by `TYPED`, and by `STRICT` if it names subjects. Types come in
    the order of the taxonomy, then its categories; those without any entity, gold or
    predicted, are left out.
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
        answers, groups = _compared(sample, run.predictions[sample.id], rule)
        predicted.update(("type", kind) for subject in answers for _, kind in subject)
        for entities, answer in groups:
            for pair, level, name in _named(entities):
                gold[level, name] += 1
                found[level, name] += pair in answer
    for level, name in _in_order(gold.keys() | predicted.keys()):
        has_types = level == "type" and rule is not Rule.TEXT
        yield Share(
            run=run.name,
            rule=rule,
            level=level,
            name=name,
            type=name if level == "type" else TYPE_OF_CATEGORY.get(name, ""),
            found=found[level, name],
            predicted=predicted[level, name] if has_types else None,
            gold=gold[level, name],
        )


def _compared(
    sample: Sample, prediction: Prediction, rule: Rule
) -> tuple[list[frozenset[_Pair]], list[tuple[Iterable[Entity], AbstractSet[_Pair]]]]:
    """Return predicted (text, type) pairs, and groups of gold entities with those that find them.

    `STRICT` has a group for each subject, the other rules one for the whole sample. With `TEXT`
    no pairs are predicted, since answers to a query have no types.
    """
    if rule is Rule.TEXT:
        needed = {(related.subject, normalise(related.text)) for related in sample.related}
        entities = [
            entity
            for subject in sample.subjects
            for entity in subject.entities
            if (subject.id, normalise(entity.text)) in needed
        ]
        texts = text_set(prediction.related or ())
        return [], [(entities, {pair for pair in map(_pair, entities) if pair[0] in texts})]
    predicted = [entity_set(subject) for subject in prediction.subjects or ()]
    if rule is Rule.TYPED:
        everything = frozenset[_Pair]().union(*predicted)
        return [everything], [(sample.entities, everything)]
    matching = score_detection(prediction.subjects, sample.gold_subjects).matching
    answers = {theirs: predicted[ours] for ours, theirs in matching}
    return predicted, [
        (subject.entities, answers.get(place, frozenset()))
        for place, subject in enumerate(sample.subjects)
    ]


def _pair(entity: Entity) -> _Pair:
    return normalise(entity.text), normalise_type(entity.type)


def _named(entities: Iterable[Entity]) -> set[tuple[_Pair, Level, str]]:
    """Return the distinct pairs, each under its type and under its category."""
    named: set[tuple[_Pair, Level, str]] = set()
    for entity in entities:
        pair = _pair(entity)
        named.add((pair, "type", pair[1]))
        if entity.category is not None:
            named.add((pair, "category", entity.category))
    return named


def _in_order(names: Iterable[_Name]) -> list[_Name]:
    known: list[_Name] = [("type", str(kind)) for kind in CATEGORIES]
    known += [("category", name) for name in TYPE_OF_CATEGORY]
    place = {name: number for number, name in enumerate(known)}
    # Names of foreign data that the taxonomy does not have come last.
    return sorted(names, key=lambda n: (n[0] == "category", place.get(n, len(place)), n[1]))
