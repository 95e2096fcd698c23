"""Counterfactual twins, which show whether a system reads the query.

Twins are samples with one description and different queries (`construction.derived`). Their
answers are compared with each other as sets of texts; whether they are right is counted apart.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.scorer import normalise
from pii_bench.scorer.text import text_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction


class Reaction(StrEnum):
    """The expected reaction to a new query, and when a pair of answers shows it.

    `changes`: the second query needs other entities. Shown if the answers differ.

    `stays`: the paraphrase needs the same entities. Shown if the answers are equal.

    `follows`: the turned query needs the same categories of the other person. Shown if, for
    every category of which the first answer has a needed entity of the first person, the
    turned answer has the needed entity of the other person and not that of the first. If the
    first answer has none, the pair is undefined.
    """

    CHANGES = "changes"
    STAYS = "stays"
    FOLLOWS = "follows"


class Against(StrEnum):
    """The sample that a twin is compared with.

    `original`: the sample that it was made from, in the same system's run of its dataset.
    `paraphrase`: the paraphrase of the same sample, which needs what the original needs, so that
    no other run is necessary.
    """

    ORIGINAL = "original"
    PARAPHRASE = "paraphrase"


@dataclass(frozen=True, slots=True)
class Asked:
    """A sample and the answer to it: normalised texts, or None if there is none."""

    sample: Sample
    answer: frozenset[str] | None

    @classmethod
    def of(cls, sample: Sample, prediction: Prediction | None) -> Asked:
        """Take the answer from a query-related prediction, if there is one."""
        related = None if prediction is None else prediction.related
        return cls(sample, None if related is None else text_set(related))

    @property
    def right(self) -> bool:
        """Whether the answer is exactly what the query needs."""
        return self.answer == text_set(related.text for related in self.sample.related)


@dataclass(frozen=True, slots=True)
class TwinRates:
    """How often a system reacts to one kind of twin as expected.

    Attributes:
        failed: pairs with a missing or failed answer; they count nowhere else.
        undefined: pairs for which the reaction is undefined (`follows` only).
        done: pairs that show the reaction.
        both_right: pairs whose answers are both exactly right.
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
        """Done, of the pairs that are neither failed nor undefined; None if there are none."""
        defined = self.pairs - self.failed - self.undefined
        return self.done / defined if defined else None

    @property
    def right_rate(self) -> float | None:
        """Both right, of the pairs that did not fail; None if there are none."""
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
    """Compare twins (`is_twin`) with their originals, given by id, and with each other.

    A twin whose original is absent, or has another description, makes no pair with it.

    Returns:
        Rates by reaction and kind of comparison, for those with any pairs.
    """
    by_kind: dict[str, list[Asked]] = {kind: [] for kind in _REACTIONS}
    for twin in twins:
        by_kind[twin.sample.meta["twin"]].append(twin)
    paraphrases = {twin.sample.meta["twin_of"]: twin for twin in by_kind["paraphrase"]}
    rates: list[TwinRates] = []
    for against, firsts in ((Against.ORIGINAL, originals), (Against.PARAPHRASE, paraphrases)):
        for kind, reaction in _REACTIONS.items():
            pairs = []
            for twin in by_kind[kind]:
                first = firsts.get(twin.sample.meta["twin_of"])
                if first is None or first is twin:
                    continue
                if first.sample.description == twin.sample.description:
                    pairs.append((first, twin))
            if pairs:
                rates.append(_rate(reaction, against, pairs))
    return rates


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
    answered = [category for category, texts in theirs.items() if texts & before]
    if not answered:
        return None
    return all(
        after & others.get(category, set()) and not after & theirs[category]
        for category in answered
    )


def _needed_by_category(sample: Sample) -> dict[str, set[str]]:
    """Return the related texts by category, or by type if an entity has no category."""
    entities = {
        (subject.id, normalise(entity.text)): entity
        for subject in sample.subjects
        for entity in subject.entities
    }
    needed: defaultdict[str, set[str]] = defaultdict(set)
    for related in sample.related:
        text = normalise(related.text)
        entity = entities[related.subject, text]
        needed[entity.category or entity.type].add(text)
    return dict(needed)
