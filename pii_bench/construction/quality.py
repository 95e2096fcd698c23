"""Quality goals of the written sets: similarity of texts, and scores of trivial systems."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.datasets.check.sets import near_earlier
from pii_bench.datasets.check.text import blanked
from pii_bench.scorer import macro, score_query_related
from pii_bench.systems.relevance.base import choose, gold_candidates
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Relevance

LIKENESS: Final = 0.3
"""Texts that share more than this of their word 5-grams, entities blanked, are too alike."""

LONG: Final = 5
"""Words of fewer letters are left out of the frequent ones."""

_OPENING: Final = 4
_OPENING_GOAL: Final = 0.005
_REGISTER_GOAL: Final = 0.15
_ORGANISATION_GOAL: Final = 2
_TRIVIAL_GOAL: Final = 0.75
_WORD: Final = re.compile(r"<[A-Z]+>|[^\W\d_]+(?:['’][^\W\d_]+)*")


class Unit(Enum):
    """The unit of a figure; the value is its format."""

    SHARE = "{:.2%}"
    SCORE = "{:.3f}"
    COUNT = "{:,.0f}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure per set.

    Attributes:
        name: what is measured.
        unit: of the figures and of the goal.
        values: figure by set.
        goal: no figure should be above it; None where nothing is asked.
        examples: by set, what the figure is about.
    """

    name: str
    unit: Unit
    values: Mapping[str, float]
    goal: float | None = None
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Return True if no figure exceeds the goal; None without a goal."""
        if self.goal is None:
            return None
        return all(value <= self.goal for value in self.values.values())


def text_measures(sets: Mapping[str, Sequence[Sample]]) -> list[Measure]:
    """Measure texts and queries, with types for entities, without case and punctuation.

    Args:
        sets: samples by name of the set, at least one each.
    """
    texts = {name: [blanked(sample) for sample in samples] for name, samples in sets.items()}
    queries = {name: [sample.query or "" for sample in sets[name]] for name in sets}
    organisations = {
        name: Counter(
            text
            for sample in samples
            for text in {e.text.casefold() for e in sample.entities if e.type == PiiType.ORG}
        )
        for name, samples in sets.items()
    }
    registers = {
        name: Counter(str(sample.meta.get("register")) for sample in samples)
        for name, samples in sets.items()
    }
    words = {name: [word for text in own for word in _words(text)] for name, own in texts.items()}
    return [
        Measure(
            f"texts that share over {LIKENESS} of their 5-grams with an earlier one",
            Unit.COUNT,
            {name: len(list(near_earlier(own, limit=LIKENESS))) for name, own in texts.items()},
            goal=0,
        ),
        _most_frequent(f"texts with one opening of {_OPENING} words", texts),
        _most_frequent(f"queries with one opening of {_OPENING} words", queries),
        Measure(
            "texts with the most frequent organisation",
            Unit.COUNT,
            {name: max(own.values(), default=0) for name, own in organisations.items()},
            goal=_ORGANISATION_GOAL,
        ),
        Measure(
            "texts of the largest register",
            Unit.SHARE,
            {name: max(own.values()) / own.total() for name, own in registers.items()},
            goal=_REGISTER_GOAL,
            examples={name: own.most_common(1)[0][0] for name, own in registers.items()},
        ),
        Measure("distinct words", Unit.COUNT, {name: len(set(own)) for name, own in words.items()}),
    ]


def trivial_measure(system: Relevance, sets: Mapping[str, Sequence[Sample]]) -> Measure:
    """Return the query-related F1 of a system over the gold entities, without names."""
    return Measure(
        f"F1 of `{system.name}` on gold entities",
        Unit.SCORE,
        {name: _f1(system, samples) for name, samples in sets.items()},
        goal=_TRIVIAL_GOAL,
    )


def frequent_words(texts: Iterable[str], count: int) -> list[tuple[str, float]]:
    """Return the words that occur in the most texts, with the shares of those texts.

    Args:
        texts: at least one.
        count: how many words of at least `LONG` letters.
    """
    held = [
        {word for word in _words(text) if len(word) >= LONG and not word.startswith("<")}
        for text in texts
    ]
    counts = Counter(word for words in held for word in words)
    # Among equals the first by alphabet: sets have no order of their own.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(word, number / len(held)) for word, number in ranked[:count]]


def render(measures: Sequence[Measure]) -> str:
    """Return a Markdown table of measures, followed by their details."""
    names = [*measures[0].values]
    rows = [
        [
            measure.name,
            *(measure.unit.value.format(measure.values[name]) for name in names),
            "" if measure.goal is None else f"≤ {measure.unit.value.format(measure.goal)}",
            {None: "", True: "yes", False: "no"}[measure.is_met],
        ]
        for measure in measures
    ]
    table = tabulate(
        rows,
        headers=["Measure", *names, "Goal", "Met"],
        tablefmt="pipe",
        colalign=("left", *("right" for _ in names), "right", "left"),
        disable_numparse=True,
    )
    examples = [
        f"- {measure.name}, {name}: `{example}`"
        for measure in measures
        for name, example in measure.examples.items()
    ]
    return "\n".join([table, *(["", *examples] if examples else [])])


def _f1(system: Relevance, samples: Iterable[Sample]) -> float:
    scores = []
    for sample in samples:
        candidates = [each for each in gold_candidates(sample) if each.type != PiiType.PER]
        chosen = choose(system, sample.query or "", sample.description, candidates)
        scores.append(score_query_related(chosen, [need.text for need in sample.related]).exact)
    mean = macro(scores)
    return mean.f1 if mean else 0.0


def _most_frequent(name: str, texts: Mapping[str, Sequence[str]]) -> Measure:
    counts = {
        owner: Counter(" ".join(_words(text)[:_OPENING]) for text in own)
        for owner, own in texts.items()
    }
    found = {
        owner: min(own.items(), key=lambda item: (-item[1], item[0]))
        for owner, own in counts.items()
    }
    return Measure(
        name,
        Unit.SHARE,
        {owner: number / len(texts[owner]) for owner, (_, number) in found.items()},
        goal=_OPENING_GOAL,
        examples={owner: words for owner, (words, _) in found.items()},
    )


def _words(text: str) -> list[str]:
    found = _WORD.findall(text)
    return [word if word.startswith("<") else word.lower() for word in found]
