"""What the best system leaves readable, and three samples that show how it masks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.masking.masked import plan_of
from pii_bench.runs.evaluation import gold_texts
from pii_bench.scorer import normalise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction

_CATEGORIES: Final = 6


@dataclass(frozen=True, slots=True)
class Leaks:
    """What can still be read after a system's masking of a dataset.

    Attributes:
        system: its name as the samples have it.
        title: its name in words.
        dataset: likewise.
        categories: name, how many of its texts that no query needs can be read, and of how
            many; those with the most first.
        examples: what a sample shows, and its id.
    """

    system: str
    title: str
    dataset: str
    categories: tuple[tuple[str, int, int], ...]
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Case:
    """One sample: how many texts leak and are hidden in vain."""

    sample: Sample
    leaked: int
    hidden: int

    def order(self, count: int) -> tuple[int, int]:
        """The clearest first, then the shortest."""
        return -min(count, 2), len(self.sample.description)


def find_leaks(
    system: str,
    title: str,
    dataset: str,
    samples: Sequence[Sample],
    masking: Mapping[str, Prediction],
) -> Leaks:
    """Judge the masked texts as the scorer does: by what is really masked.

    Args:
        system: who masked.
        title: its name in words.
        dataset: its name.
        samples: gold.
        masking: sample id to the answers to both tasks.
    """
    unneeded, leaked = Counter[str](), Counter[str]()
    cases = []
    for sample in samples:
        answer = masking.get(sample.id)
        plan = answer and plan_of(sample.description, answer.subjects, answer.related)
        if not plan:
            continue
        gold = gold_texts(sample)
        judgement = gold.judge(plan.spans)
        categories = {normalise(each.text): each.category or each.type for each in sample.entities}
        leaks = hides = 0
        for each, masked, readable in zip(
            gold.texts, judgement.hidden, judgement.readable, strict=True
        ):
            if each.needed:
                hides += bool(each.spans) and readable == 0
            elif each.spans:
                category = categories[each.text]
                unneeded[category] += 1
                if masked < len(each.spans):
                    leaked[category] += 1
                    leaks += 1
        cases.append(_Case(sample, leaks, hides))
    return Leaks(
        system,
        title,
        dataset,
        tuple((name, many, unneeded[name]) for name, many in leaked.most_common(_CATEGORIES)),
        _examples(cases),
    )


def _examples(cases: Sequence[_Case]) -> tuple[tuple[str, str], ...]:
    """A sample that is right, one that leaks, and one that hides what the query needs."""
    right = [each for each in cases if not each.leaked and not each.hidden and each.sample.related]
    leaking = [each for each in cases if each.leaked and not each.hidden]
    hiding = [each for each in cases if each.hidden and not each.leaked]
    found = []
    if right:
        best = min(right, key=lambda each: each.order(len(each.sample.related)))
        found.append(("Masked as it should be", best.sample.id))
    if leaking:
        worst = min(leaking, key=lambda each: each.order(each.leaked))
        found.append(("Leaks what the query does not need", worst.sample.id))
    if hiding:
        worst = min(hiding, key=lambda each: each.order(each.hidden))
        found.append(("Hides what the query needs", worst.sample.id))
    return tuple(found)
