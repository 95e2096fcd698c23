"""Agreement of annotators, and one merged answer of several.

A ballot is one annotator's answer for one sample in two forms: a label for each unit, for kappa,
and the set of chosen things, for F1. In stage 1 the units are the tokens of the text and the labels
are types; in stage 2 the units are the entities, and a label says whether one is needed. A second
ballot holds the persons that the units belong to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.analysis.kappa import cohen_kappa, fleiss_kappa
from pii_bench.scorer.detection import Subject, match
from pii_bench.scorer.measures import Counts
from pii_bench.web.marks import PERSONS, Choice, Mark, items_of_marks, token_places

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pii_bench.web.marks import Item

    _LabelCounts = Counter[tuple[Hashable, ...]]

T = TypeVar("T")


ASPECTS: Final = ("type", "category", "person")
"""The properties of marks and items by which agreement is reported."""


def values_of(piece: Mark | Item, aspect: str) -> tuple[str, ...]:
    """Return the values of a mark or item in an aspect."""
    if aspect == "type":
        return (piece.type,)
    if aspect == "category":
        return (piece.category,) if piece.category is not None else ()
    return piece.persons if isinstance(piece, Mark) else (piece.person,)


@dataclass(frozen=True, slots=True)
class Ballot:
    """The answer of one annotator for one sample: a label for each unit, and what is chosen."""

    sample: str
    annotator: str
    labels: tuple[Hashable, ...]
    chosen: frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on the samples that two or more annotated; figures are None if there are none.

    Attributes:
        fleiss: Fleiss' kappa over all their units.
        cohen: Cohen's kappa, mean over the pairs of annotators.
        f1: F1 of one choice against the other, with counts summed over pairs of ballots; None if
            nothing was chosen.
        exact: share of the pairs of ballots with equal choices.
    """

    samples: int
    fleiss: float | None
    cohen: float | None
    f1: float | None
    exact: float | None


def ballot_of_marks(
    sample: str, annotator: str, text: str, marks: Iterable[Mark], aspect: str = "type"
) -> Ballot:
    """Return a ballot of stage 1 on the values of an aspect.

    A label holds the values of a token's mark, and is empty for a token that is not marked;
    `chosen` holds (value, mark) pairs.
    """
    starts, _ = token_places(text)
    labels: list[tuple[str, ...]] = [()] * len(starts)
    chosen = set()
    for mark in marks:
        first, end = bisect_left(starts, mark.start), bisect_left(starts, mark.end)
        values = values_of(mark, aspect)
        labels[first:end] = [values] * (end - first)
        chosen |= {(value, (mark.start, mark.end, mark.type)) for value in values}
    return Ballot(sample, annotator, tuple(labels), frozenset(chosen))


def ballot_of_choice(sample: str, annotator: str, numbers: Sequence[int], choice: Choice) -> Ballot:
    """Return a ballot of stage 2 on the items with these numbers."""
    chosen = frozenset(choice.needed).intersection(numbers)
    return Ballot(sample, annotator, tuple(n in chosen for n in numbers), chosen)


def ballots_on_owners(ballots: Sequence[Ballot]) -> list[Ballot]:
    """Reduce the ballots on the persons of one sample to the tokens that all annotators marked."""
    by_token = zip(*(ballot.labels for ballot in ballots), strict=True)
    shared = [n for n, labels in enumerate(by_token) if all(labels)]
    return [
        _ballot_on_owners(ballot.sample, ballot.annotator, [ballot.labels[n] for n in shared])
        for ballot in ballots
    ]


def ballot_on_owners(sample: str, annotator: str, items: Sequence[Item], choice: Choice) -> Ballot:
    """Return a ballot of stage 2 on the person of each entity, as the annotator corrected it."""
    owners = [(choice.persons.get(n, item.person),) for n, item in enumerate(items)]
    return _ballot_on_owners(sample, annotator, owners)


def _ballot_on_owners(sample: str, annotator: str, owners: Sequence[Any]) -> Ballot:
    chosen = frozenset((n, person) for n, persons in enumerate(owners) for person in persons)
    return Ballot(sample, annotator, tuple(owners), chosen)


def agreement(ballots: Iterable[Ballot]) -> Agreement:
    """Return the agreement over all samples together."""
    return _agreement(_groups(ballots))


def agreement_by_value(ballots: Iterable[Ballot]) -> dict[str, Agreement]:
    """Return the agreement on each value of an aspect, as if only its marks had been made.

    The ballots are those of `ballot_of_marks` for that aspect.
    """
    groups = _groups(ballots)
    # Most tokens of a sample have the same values: they are counted once, not for each value.
    counts = [_counts(group) for group in groups]
    chosen: Any = frozenset().union(*(ballot.chosen for group in groups for ballot in group))
    return {
        value: _agreement(
            [[_only(value, ballot) for ballot in group] for group in groups],
            [_counts_of(value, each) for each in counts],
        )
        for value in sorted({value for value, _ in chosen})
    }


def _only(value: str, ballot: Ballot) -> Ballot:
    """Return a ballot with the marks of a value; its labels stay as they are."""
    chosen: Any = ballot.chosen
    return replace(ballot, chosen=frozenset(mark for each, mark in chosen if each == value))


def _counts_of(value: str, counts: _LabelCounts) -> _LabelCounts:
    """Replace each label, a tuple of values, by whether it has a value."""
    own: _LabelCounts = Counter()
    labels: Any
    for labels, n in counts.items():
        own[tuple(value in values for values in labels)] += n
    return own


def agreement_with_others(ballots: Iterable[Ballot], annotator: str) -> Agreement:
    """Return the agreement of one annotator with each of the others."""
    pairs = [
        (own, other)
        for group in _groups(ballots)
        for own in group
        if own.annotator == annotator
        for other in group
        if other is not own
    ]
    samples = {own.sample for own, _ in pairs}
    return replace(_agreement(pairs), samples=len(samples), fleiss=None)


def agreement_by_pair(ballots: Sequence[Ballot]) -> dict[tuple[str, str], Agreement]:
    """Return the agreement of each two annotators who share a sample."""
    result = {}
    for pair in combinations(annotators_of(ballots), 2):
        found = agreement(ballot for ballot in ballots if ballot.annotator in pair)
        if found.samples:
            result[pair] = found
    return result


def annotators_of(ballots: Iterable[Ballot]) -> list[str]:
    """Return the names of the annotators, sorted."""
    return sorted({ballot.annotator for ballot in ballots})


def _groups(ballots: Iterable[Ballot]) -> list[list[Ballot]]:
    """Group ballots by sample, sorted by annotator; samples with one ballot are left out."""
    by_sample: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        by_sample.setdefault(ballot.sample, []).append(ballot)
    return [
        sorted(group, key=lambda ballot: ballot.annotator)
        for group in by_sample.values()
        if len(group) > 1
    ]


def _counts(group: Iterable[Ballot]) -> _LabelCounts:
    """Count the units of a sample by the labels that the annotators gave them."""
    return Counter(zip(*(ballot.labels for ballot in group), strict=True))


def _agreement(
    groups: Sequence[Sequence[Ballot]], counts: Sequence[_LabelCounts] | None = None
) -> Agreement:
    """Return the agreement in groups of ballots; `counts` replace those of their labels."""
    pairs = [pair for group in groups for pair in combinations(group, 2)]
    units: Counter[tuple[Hashable, ...]] = Counter()
    cells: dict[tuple[str, str], Counter[tuple[Hashable, Hashable]]] = defaultdict(Counter)
    for group, own in zip(groups, counts or map(_counts, groups), strict=True):
        units.update(own)
        for i, j in combinations(range(len(group)), 2):
            table = cells[group[i].annotator, group[j].annotator]
            for labels, n in own.items():
                table[labels[i], labels[j]] += n
    total = sum((Counts.of(one.chosen, other.chosen) for one, other in pairs), Counts())
    return Agreement(
        samples=len(groups),
        fleiss=fleiss_kappa(units),
        cohen=_mean(cohen_kappa(table) for table in cells.values()),
        f1=None if total.empty else total.prf.f1,
        exact=_mean(float(one.chosen == other.chosen) for one, other in pairs),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def merge_marks(text: str, versions: Sequence[Iterable[Mark]]) -> tuple[Mark, ...]:
    """Return the marks that more than half of the annotators made.

    Marks with the same position and type are the same mark. It gets the category and the persons
    that most annotators gave, the first in order on a tie. The letters of persons are aligned first
    (`align_persons`).
    """
    by_key: dict[tuple[int, int, str], list[Mark]] = {}
    for mark in chain.from_iterable(align_persons(text, versions)):
        by_key.setdefault((mark.start, mark.end, mark.type), []).append(mark)
    merged = []
    for (start, end, pii_type), marks in sorted(by_key.items()):
        if 2 * len(marks) > len(versions):
            persons = _most_frequent((mark.persons for mark in marks), ())
            categories = (mark.category for mark in marks if mark.category is not None)
            merged.append(Mark(start, end, persons, pii_type, _most_frequent(categories, None)))
    return tuple(merged)


def _most_frequent(values: Iterable[T], default: T) -> T:
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], str(value)), default=default)


def align_persons(text: str, versions: Sequence[Iterable[Mark]]) -> list[tuple[Mark, ...]]:
    """Return the versions with letters that mean the same person in all of them.

    Persons are matched as the scorer matches subjects, with the version that has the most marks.
    """
    mark_lists = [tuple(version) for version in versions]
    if not mark_lists:
        return []
    reference = max(mark_lists, key=len)
    return [_align(text, marks, reference) for marks in mark_lists]


def _align(text: str, marks: tuple[Mark, ...], reference: tuple[Mark, ...]) -> tuple[Mark, ...]:
    own, others = _subjects(text, marks), _subjects(text, reference)
    own_letters, other_letters = list(own), list(others)
    pairs = match(list(own.values()), list(others.values()))
    letters = {own_letters[i]: other_letters[j] for i, j in pairs}
    unmatched = [letter for letter in own if letter not in letters]
    free = [letter for letter in PERSONS if letter not in others]
    letters.update(zip(unmatched, free, strict=False))
    return tuple(
        replace(mark, persons=tuple(sorted({letters[person] for person in mark.persons})))
        for mark in marks
    )


def _subjects(text: str, marks: Iterable[Mark]) -> dict[str, Subject]:
    entities: dict[str, list[tuple[str, str]]] = {}
    for item in items_of_marks(text, marks):
        entities.setdefault(item.person, []).append((item.text, item.type))
    return {letter: Subject.of(pairs) for letter, pairs in sorted(entities.items())}


def merge_choices(items: Sequence[Item], choices: Sequence[Choice]) -> Choice:
    """Return the items, corrections and flags that more than half of the annotators gave."""
    votes = Counter(number for choice in choices for number in choice.needed)
    corrections = Counter(pair for choice in choices for pair in choice.persons.items())
    half = len(choices) / 2
    return Choice(
        needed=tuple(n for n in range(len(items)) if votes[n] > half),
        persons={number: person for (number, person), count in corrections.items() if count > half},
        necessary=sum(choice.necessary for choice in choices) > half,
        sufficient=sum(choice.sufficient for choice in choices) > half,
        ambiguous=sum(choice.ambiguous for choice in choices) > half,
    )
