"""Counterfactual twins: does a system read the query at all?

Twins are samples with one description and different queries (`construction.derived`). Answers are
compared with each other as sets of texts, as they came; whether they are right has its own columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.scorer import normalise
from pii_bench.scorer.text import text_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction


class Reaction(StrEnum):
    """What a right answer does when the query is replaced, and when it counts as done.

    `changes`: the second query needs other facts. Done if the two answers differ.

    `stays`: the paraphrase needs the same facts. Done if the two answers are equal.

    `follows`: the turned query needs the same categories of the other person. Done if, for
    every category of which the first answer holds a needed fact of the first person, the
    turned answer holds the needed fact of the other person and not that of the first. Where
    the first answer holds none, there is nothing to follow: the pair is undefined.
    """

    CHANGES = "changes"
    STAYS = "stays"
    FOLLOWS = "follows"


class Against(StrEnum):
    """What a twin is compared with.

    `original`: the sample that it was made from, in the same system's run of its dataset.
    `paraphrase`: the paraphrase of the same sample, which needs what the original needs; so
    the twins can be judged without any other run.
    """

    ORIGINAL = "original"
    PARAPHRASE = "paraphrase"


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample and what a system answered: texts, normalised; None where it has no answer."""

    sample: Sample
    answer: frozenset[str] | None

    @classmethod
    def of(cls, sample: Sample, prediction: Prediction | None) -> Asked:
        """Take the answer from a query-related prediction; None for a sample never asked."""
        related = None if prediction is None else prediction.related
        return cls(sample, None if related is None else text_set(related))

    @property
    def right(self) -> bool:
        """Whether the answer is exactly what the query needs."""
        return self.answer == text_set(related.text for related in self.sample.related)


@dataclass(frozen=True, slots=True)
class TwinRates:
    """How a system reacts to one kind of twin.

    Attributes:
        reaction: what is expected.
        against: what the twins are compared with.
        pairs: pairs in the data.
        failed: pairs of which an answer is missing or failed; they count nowhere else.
        undefined: pairs with two answers that leave the reaction open (`follows` alone).
        done: pairs that show the reaction, of those left.
        both_right: pairs whose two answers are both exactly right, of those that did not fail.
    """

    reaction: Reaction
    against: Against
    pairs: int
    failed: int
    undefined: int
    done: int
    both_right: int

    @property
    def rate(self) -> float | None:
        """Done, of the pairs that are neither failed nor undefined; None where none is."""
        defined = self.pairs - self.failed - self.undefined
        return self.done / defined if defined else None

    @property
    def right_rate(self) -> float | None:
        """Both right, of the pairs that did not fail; None where none is."""
        answered = self.pairs - self.failed
        return self.both_right / answered if answered else None


_REACTIONS: Final = {
    "second": Reaction.CHANGES,
    "paraphrase": Reaction.STAYS,
    "turned": Reaction.FOLLOWS,
}


def is_twin(sample: Sample) -> bool:
    """Whether a sample is a twin of a known kind and names its original."""
    return sample.meta.get("twin") in _REACTIONS and isinstance(sample.meta.get("twin_of"), str)


def twin_rates(twins: Iterable[Asked], originals: Mapping[str, Asked]) -> list[TwinRates]:
    """Compare twins with their originals, and with each other.

    Args:
        twins: samples for which `is_twin` holds.
        originals: id to sample and answer. A twin whose original is not there, or has another
            description, has no pair with it.

    Returns:
        One for each reaction and what it is compared with, as far as the data has pairs.
    """
    twins = list(twins)
    paraphrases = {
        twin.sample.meta["twin_of"]: twin
        for twin in twins
        if twin.sample.meta["twin"] == "paraphrase"
    }
    rates: list[TwinRates] = []
    for against, firsts in ((Against.ORIGINAL, originals), (Against.PARAPHRASE, paraphrases)):
        for kind, reaction in _REACTIONS.items():
            pairs = [
                (first, twin)
                for first, twin in _pairs(twins, firsts)
                if twin.sample.meta["twin"] == kind and first is not twin
            ]
            if pairs:
                rates.append(_rate(reaction, against, pairs))
    return rates


def _pairs(twins: Sequence[Asked], firsts: Mapping[str, Asked]) -> Iterator[tuple[Asked, Asked]]:
    for twin in twins:
        first = firsts.get(twin.sample.meta["twin_of"])
        if first is not None and first.sample.description == twin.sample.description:
            yield first, twin


def _rate(reaction: Reaction, against: Against, pairs: Sequence[tuple[Asked, Asked]]) -> TwinRates:
    answered = [
        (first, twin)
        for first, twin in pairs
        if first.answer is not None and twin.answer is not None
    ]
    shown = [_shows(reaction, first, twin) for first, twin in answered]
    return TwinRates(
        reaction=reaction,
        against=against,
        pairs=len(pairs),
        failed=len(pairs) - len(answered),
        undefined=shown.count(None),
        done=shown.count(True),
        both_right=sum(first.right and twin.right for first, twin in answered),
    )


def _shows(reaction: Reaction, first: Asked, twin: Asked) -> bool | None:
    match reaction:
        case Reaction.CHANGES:
            return first.answer != twin.answer
        case Reaction.STAYS:
            return first.answer == twin.answer
        case Reaction.FOLLOWS:
            return _follows(first, twin)


def _follows(first: Asked, turned: Asked) -> bool | None:
    before, after = first.answer or frozenset(), turned.answer or frozenset()
    theirs, others = _needed_by_category(first.sample), _needed_by_category(turned.sample)
    held = [category for category, texts in theirs.items() if texts & before]
    if not held:
        return None
    return all(
        others.get(category, frozenset()) & after and not theirs[category] & after
        for category in held
    )


def _needed_by_category(sample: Sample) -> dict[str, frozenset[str]]:
    """The related entities by category; by type where an entity has none."""
    entities = {
        (subject.id, normalise(entity.text)): entity
        for subject in sample.subjects
        for entity in subject.entities
    }
    needed: dict[str, frozenset[str]] = {}
    for related in sample.related:
        text = normalise(related.text)
        entity = entities[related.subject, text]
        category = entity.category or entity.type
        needed[category] = needed.get(category, frozenset()) | {text}
    return needed
