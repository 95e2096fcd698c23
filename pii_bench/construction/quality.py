"""Quality goals of the written sets: similarity of texts, and scores of trivial systems."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.datasets.check.sets import near_earlier
from pii_bench.datasets.check.text import blanked
from pii_bench.scorer import macro, score_query_related
from pii_bench.systems.relevance.base import choose, gold_candidates, without_names
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.base import Relevance

MIN_LETTERS: Final = 5
"""Shorter words are not counted as frequent words."""

# Texts that share more of their word 5-grams, with entities blanked, are too similar.
_MAX_OVERLAP: Final = 0.3
_OPENING_WORDS: Final = 4
_OPENING_GOAL: Final = 0.005
_REGISTER_GOAL: Final = 0.15
_ORGANISATION_GOAL: Final = 2
_TRIVIAL_GOAL: Final = 0.75
_WORD: Final = re.compile(r"<[A-Z]+>|[^\W\d_]+(?:['’][^\W\d_]+)*")


# Formats of figures.
SHARE: Final = "{:.2%}"
SCORE: Final = "{:.3f}"
COUNT: Final = "{:,.0f}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure for each set.

    Attributes:
        form: format of the figures.
        goal: largest acceptable figure; None if any is.
        examples: set to the text that the figure is about.
    """

    name: str
    form: str
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
    """Measure how similar the texts and queries of each set are.

    Case, punctuation and entities do not count. Each set has at least one sample.
    """
    texts = {name: [blanked(sample) for sample in samples] for name, samples in sets.items()}
    openings = {name: [_opening(text) for text in texts[name]] for name in sets}
    query_openings = {
        name: [_opening(sample.query or "") for sample in samples] for name, samples in sets.items()
    }
    registers = {
        name: [str(sample.meta.get("register")) for sample in samples]
        for name, samples in sets.items()
    }
    return [
        Measure(
            f"texts that share over {_MAX_OVERLAP} of their 5-grams with an earlier one",
            COUNT,
            {name: len(list(near_earlier(texts[name], limit=_MAX_OVERLAP))) for name in sets},
            goal=0,
        ),
        _largest_share(
            f"texts with one opening of {_OPENING_WORDS} words", openings, goal=_OPENING_GOAL
        ),
        _largest_share(
            f"queries with one opening of {_OPENING_WORDS} words",
            query_openings,
            goal=_OPENING_GOAL,
        ),
        Measure(
            "texts with the most frequent organisation",
            COUNT,
            {name: _most_of_an_organisation(samples) for name, samples in sets.items()},
            goal=_ORGANISATION_GOAL,
        ),
        _largest_share("texts of the largest register", registers, goal=_REGISTER_GOAL),
        Measure(
            "distinct words",
            COUNT,
            {name: len({word for text in texts[name] for word in _words(text)}) for name in sets},
        ),
    ]


def trivial_measure(system: Relevance, sets: Mapping[str, Sequence[Sample]]) -> Measure:
    """Measure the query-related F1 of a system that chooses among the gold entities but names."""
    return Measure(
        f"F1 of `{system.name}` on gold entities without names",
        SCORE,
        {name: _f1(system, samples) for name, samples in sets.items()},
        goal=_TRIVIAL_GOAL,
    )


def frequent_words(texts: Iterable[str], count: int) -> list[tuple[str, float]]:
    """Return the words of at least `MIN_LETTERS` letters in the most texts, with their shares."""
    words = [set(_words(text)) for text in texts]
    counts = Counter(
        word for own in words for word in own if len(word) >= MIN_LETTERS and word[0] != "<"
    )
    return [(word, number / len(words)) for word, number in _ranked(counts)[:count]]


def render(measures: Sequence[Measure]) -> str:
    """Return a Markdown table of measures, followed by their examples."""
    names = list(measures[0].values)
    rows: list[list[str]] = []
    examples: list[str] = []
    for measure in measures:
        figure = measure.form.format
        goal = "" if measure.goal is None else f"≤ {figure(measure.goal)}"
        met = "" if measure.is_met is None else "yes" if measure.is_met else "no"
        rows.append([measure.name, *(figure(measure.values[name]) for name in names), goal, met])
        examples += [
            f"- {measure.name}, {name}: `{example}`" for name, example in measure.examples.items()
        ]
    table = tabulate(
        rows,
        headers=["Measure", *names, "Goal", "Met"],
        tablefmt="pipe",
        colalign=("left", *("right" for _ in names), "right", "left"),
        disable_numparse=True,
    )
    return "\n".join([table, "", *examples]) if examples else table


def _f1(system: Relevance, samples: Iterable[Sample]) -> float:
    scores = []
    for sample in samples:
        candidates = without_names(gold_candidates(sample))
        chosen = choose(system, sample.query or "", sample.description, candidates)
        needed = [related.text for related in sample.related]
        scores.append(score_query_related(chosen, needed).exact)
    mean = macro(scores)
    return mean.f1 if mean else 0.0


def _largest_share(name: str, values: Mapping[str, Sequence[str]], goal: float) -> Measure:
    """Measure the share of the most frequent value of each set, which is the example."""
    shares: dict[str, float] = {}
    examples: dict[str, str] = {}
    for key, members in values.items():
        examples[key], count = _ranked(Counter(members))[0]
        shares[key] = count / len(members)
    return Measure(name, SHARE, shares, goal, examples)


def _most_of_an_organisation(samples: Iterable[Sample]) -> int:
    """Return the number of samples that contain the most frequent organisation."""
    counts: Counter[str] = Counter()
    for sample in samples:
        counts.update({e.text.casefold() for e in sample.entities if e.type == PiiType.ORG})
    return max(counts.values(), default=0)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """Sort by count, the largest first, and then alphabetically."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _opening(text: str) -> str:
    return " ".join(_words(text)[:_OPENING_WORDS])


def _words(text: str) -> list[str]:
    """Return the words in lower case and the placeholders of entities, such as `<PER>`."""
    words = _WORD.findall(text)
    return [word if word.startswith("<") else word.lower() for word in words]
