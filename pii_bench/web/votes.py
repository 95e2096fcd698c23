"""From the answers of several annotators to agreement, and to one answer.

A ballot is what one annotator said of one sample, in two forms: a label for each unit, of which
kappa is made, and the set of what was chosen, of which F1 is made. In stage 1 units are the tokens
of the text and labels the types; in stage 2 units are the entities, and a label says whether one
is needed. Whose they are is a ballot of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.analysis.kappa import cohen_kappa, fleiss_kappa
from pii_bench.scorer.detection import Subject, match
from pii_bench.scorer.measures import Counts
from pii_bench.web.marks import PERSONS, Choice, Mark, items_of_marks, token_places

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from pii_bench.web.marks import Item

    _Patterns = dict[tuple[str, ...], Counter[tuple[Hashable, ...]]]

T = TypeVar("T")


def _types(piece: Mark | Item) -> tuple[str, ...]:
    return (piece.type,)


def _categories(piece: Mark | Item) -> tuple[str, ...]:
    return (piece.category,) if piece.category is not None else ()


def _persons(piece: Mark | Item) -> tuple[str, ...]:
    return piece.persons if isinstance(piece, Mark) else (piece.person,)


ASPECTS: Final[Mapping[str, Callable[[Mark | Item], tuple[str, ...]]]] = {
    "type": _types,
    "category": _categories,
    "person": _persons,
}
"""What a piece has values of, by which agreement is told."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one annotator said of one sample.

    Attributes:
        labels: of each unit of the sample.
        chosen: what was marked or chosen.
    """

    sample: str
    annotator: str
    labels: tuple[Hashable, ...]
    chosen: frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far annotators agree; None where no two annotated the same.

    Attributes:
        samples: that at least two annotated.
        fleiss: Fleiss' kappa over all their units.
        cohen: Cohen's kappa, mean over the pairs of annotators.
        f1: of the one's choice against the other's, counts summed over pairs of ballots; None where
            there is no choice.
        exact: share of the pairs of ballots whose choices are equal.
    """

    samples: int
    fleiss: float | None
    cohen: float | None
    f1: float | None
    exact: float | None


def ballot_of_marks(
    sample: str, annotator: str, text: str, marks: Iterable[Mark], aspect: str = ""
) -> Ballot:
    """A ballot of stage 1.

    Args:
        sample: its id.
        annotator: who.
        text: of the sample.
        marks: what was marked.
        aspect: for `agreement_by_value`: labels are the values of this aspect, and what is
            chosen begins with one.
    """
    starts, _ = token_places(text)
    labels: list[Hashable] = [() if aspect else ""] * len(starts)
    chosen: list[Hashable] = []
    for mark in marks:
        first, behind = bisect_left(starts, mark.start), bisect_left(starts, mark.end)
        values = ASPECTS[aspect](mark) if aspect else ()
        labels[first:behind] = [values if aspect else mark.type] * (behind - first)
        place = (mark.start, mark.end, mark.type)
        chosen += [(value, place) for value in values] if aspect else [place]
    return Ballot(sample, annotator, tuple(labels), frozenset(chosen))


def ballot_of_choice(
    sample: str,
    annotator: str,
    items: Sequence[Item],
    choice: Choice,
    value: str | None = None,
    aspect: str = "",
) -> Ballot:
    """A ballot of stage 2, on all items or on those with a value of an aspect."""
    asked = [n for n, item in enumerate(items) if value is None or value in ASPECTS[aspect](item)]
    needed = set(choice.needed)
    return Ballot(
        sample, annotator, tuple(n in needed for n in asked), frozenset(needed.intersection(asked))
    )


def ballots_on_owners(
    sample: str, text: str, versions: Mapping[str, Sequence[Mark]]
) -> list[Ballot]:
    """Ballots on whose each token is that all have marked, in stage 1.

    Args:
        sample: its id.
        text: of the sample.
        versions: by annotator the marks, letters of persons in line (`align_persons`).
    """
    starts, _ = token_places(text)
    owners: list[dict[int, tuple[str, ...]]] = [
        {
            token: mark.persons
            for mark in marks
            for token in range(bisect_left(starts, mark.start), bisect_left(starts, mark.end))
        }
        for marks in versions.values()
    ]
    shared = sorted(set.intersection(*map(set, owners))) if owners else []
    return [
        _ballot_on_owners(sample, annotator, [own[token] for token in shared])
        for annotator, own in zip(versions, owners, strict=True)
    ]


def ballot_on_owners(sample: str, annotator: str, items: Sequence[Item], choice: Choice) -> Ballot:
    """A ballot on whose each entity is, in stage 2, where people correct it."""
    moved = choice.persons
    owners = [(moved.get(n, item.person),) for n, item in enumerate(items)]
    return _ballot_on_owners(sample, annotator, owners)


def _ballot_on_owners(sample: str, annotator: str, owners: Sequence[tuple[str, ...]]) -> Ballot:
    chosen = frozenset((n, person) for n, persons in enumerate(owners) for person in persons)
    return Ballot(sample, annotator, tuple(owners), chosen)


def agreement(ballots: Iterable[Ballot]) -> Agreement:
    """Agreement over all samples together."""
    return _of_groups(_groups(ballots))


def _of_groups(groups: Sequence[Sequence[Ballot]]) -> Agreement:
    pairs = _pairs(groups)
    return _agreement(
        groups,
        _patterns(groups),
        [Counts.of(one.chosen, other.chosen) for one, other in pairs],
        _mean(float(one.chosen == other.chosen) for one, other in pairs),
    )


def agreement_by_value(ballots: Iterable[Ballot]) -> dict[str, Agreement]:
    """Agreement on each value that two or more could choose, of ballots of one aspect.

    The same as `agreement` of ballots that hold this value alone.
    """
    groups = _groups(ballots)
    patterns, pairs = _patterns(groups), _pairs(groups)
    counts: dict[str, list[Counts]] = {}
    differing: Counter[str] = Counter()
    for one, other in pairs:
        mine, theirs = _by_value(one), _by_value(other)
        for value in {*mine, *theirs}:
            own = mine.get(value, frozenset()), theirs.get(value, frozenset())
            counts.setdefault(value, []).append(Counts.of(*own))
            differing[value] += own[0] != own[1]
    return {
        value: _agreement(
            groups, _holding(value, patterns), counts[value], 1 - differing[value] / len(pairs)
        )
        for value in sorted(counts)
    }


def _groups(ballots: Iterable[Ballot]) -> list[list[Ballot]]:
    return [
        sorted(group, key=lambda ballot: ballot.annotator)
        for group in by_sample(ballots).values()
        if len(group) > 1
    ]


def _pairs(groups: Iterable[Sequence[Ballot]]) -> list[tuple[Ballot, Ballot]]:
    return [pair for group in groups for pair in combinations(group, 2)]


def _by_value(ballot: Ballot) -> dict[str, frozenset[Hashable]]:
    found: dict[str, set[Hashable]] = {}
    chosen: Any = ballot.chosen
    for value, place in chosen:
        found.setdefault(value, set()).add(place)
    return {value: frozenset(places) for value, places in found.items()}


def _holding(value: str, patterns: _Patterns) -> _Patterns:
    """Of each unit whether its labels hold a value."""
    held: _Patterns = {}
    for names, counts in patterns.items():
        own = held.setdefault(names, Counter())
        labels: Any
        for labels, count in counts.items():
            own[tuple(value in each for each in labels)] += count
    return held


def _agreement(
    groups: Sequence[Sequence[Ballot]],
    patterns: _Patterns,
    counts: Iterable[Counts],
    exact: float | None,
) -> Agreement:
    units: Counter[tuple[Hashable, ...]] = Counter()
    for own in patterns.values():
        units.update(own)
    return Agreement(
        samples=len(groups),
        fleiss=fleiss_kappa(units),
        cohen=_mean(cohen_kappa(each) for each in _cells(patterns).values()),
        f1=_f1(counts),
        exact=exact,
    )


def _patterns(groups: Iterable[Sequence[Ballot]]) -> _Patterns:
    """Annotators to how often they gave units which labels: almost all units have the same."""
    found: _Patterns = {}
    for group in groups:
        names = tuple(ballot.annotator for ballot in group)
        labels = zip(*(ballot.labels for ballot in group), strict=True)
        found.setdefault(names, Counter()).update(labels)
    return found


def _cells(
    patterns: _Patterns,
) -> dict[tuple[str, str], Counter[tuple[Hashable, Hashable]]]:
    """What Cohen's kappa of each two annotators is made of."""
    cells: dict[tuple[str, str], Counter[tuple[Hashable, Hashable]]] = {}
    for names, counts in patterns.items():
        for i, j in combinations(range(len(names)), 2):
            own = cells.setdefault((names[i], names[j]), Counter())
            for labels, count in counts.items():
                own[labels[i], labels[j]] += count
    return cells


def by_sample(ballots: Iterable[Ballot]) -> dict[str, list[Ballot]]:
    """The ballots on each sample."""
    groups: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        groups.setdefault(ballot.sample, []).append(ballot)
    return groups


def of_annotator(ballots: Iterable[Ballot], annotator: str) -> Agreement:
    """Agreement of one annotator with each of the others."""
    pairs = [
        (own, other)
        for group in by_sample(ballots).values()
        for own in group
        if own.annotator == annotator
        for other in group
        if other is not own
    ]
    samples = {own.sample for own, _ in pairs}
    return replace(_of_groups(pairs), samples=len(samples), fleiss=None)


def merge_marks(text: str, versions: Sequence[Iterable[Mark]]) -> tuple[Mark, ...]:
    """One answer of several: the marks that more than half of the annotators made.

    A mark is one of the same place and type. Its category and its persons are those that most
    of them gave, the first in order among ties. Letters of persons are first brought in line
    with the annotator whose marks are the most.
    """
    aligned = align_persons(text, versions)
    made: dict[tuple[int, int, str], list[Mark]] = {}
    for version in aligned:
        for mark in version:
            made.setdefault((mark.start, mark.end, mark.type), []).append(mark)
    return tuple(
        Mark(
            start,
            end,
            _most((mark.persons for mark in marks), ()),
            pii_type,
            _most((mark.category for mark in marks if mark.category is not None), None),
        )
        for (start, end, pii_type), marks in sorted(made.items())
        if 2 * len(marks) > len(versions)
    )


def align_persons(text: str, versions: Sequence[Iterable[Mark]]) -> list[tuple[Mark, ...]]:
    """The same marks with letters that mean the same person in all versions.

    People are matched as the scorer matches subjects, with the version of the most marks.
    """
    lists = [tuple(version) for version in versions]
    if not lists:
        return []
    leader = max(lists, key=len)
    return [_aligned(text, own, leader) for own in lists]


def _aligned(text: str, own: tuple[Mark, ...], leader: tuple[Mark, ...]) -> tuple[Mark, ...]:
    mine, theirs = _subjects(text, own), _subjects(text, leader)
    pairs = match(list(mine.values()), list(theirs.values()))
    letters = {list(mine)[i]: list(theirs)[j] for i, j in pairs}
    free = (letter for letter in PERSONS if letter not in theirs)
    for letter in mine:
        if letter not in letters:
            letters[letter] = next(free)
    return tuple(
        replace(mark, persons=tuple(sorted({letters[person] for person in mark.persons})))
        for mark in own
    )


def _subjects(text: str, marks: Iterable[Mark]) -> dict[str, Subject]:
    entities: dict[str, list[tuple[str, str]]] = {}
    for item in items_of_marks(text, marks):
        entities.setdefault(item.person, []).append((item.text, item.type))
    return {letter: Subject.of(own) for letter, own in sorted(entities.items())}


def merge_choices(items: Sequence[Item], choices: Sequence[Choice]) -> Choice:
    """One answer of several: what more than half of the annotators chose or corrected."""
    votes = Counter(number for choice in choices for number in choice.needed)
    moved = Counter(pair for choice in choices for pair in choice.persons.items())
    half = len(choices) / 2
    return Choice(
        needed=tuple(n for n in range(len(items)) if votes[n] > half),
        persons={number: person for (number, person), count in moved.items() if count > half},
        necessary=sum(choice.necessary for choice in choices) > half,
        sufficient=sum(choice.sufficient for choice in choices) > half,
        ambiguous=sum(choice.ambiguous for choice in choices) > half,
    )


def annotators_of(ballots: Iterable[Ballot]) -> list[str]:
    """Who annotated, sorted."""
    return sorted({ballot.annotator for ballot in ballots})


def pairwise(ballots: Iterable[Ballot]) -> Mapping[tuple[str, str], Agreement]:
    """Agreement of each two annotators on what both annotated."""
    own = list(ballots)
    found = {}
    for pair in combinations(annotators_of(own), 2):
        each = agreement(ballot for ballot in own if ballot.annotator in pair)
        if each.samples:
            found[pair] = each
    return found


def _most(values: Iterable[T], default: T) -> T:
    counts = Counter(values)
    return min(counts, key=lambda each: (-counts[each], str(each)), default=default)


def _f1(counts: Iterable[Counts]) -> float | None:
    total = sum(counts, Counts())
    return total.prf.f1 if total.predicted + total.gold else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
