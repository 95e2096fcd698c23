"""Scores of `detection`: who is in the text, and what belongs to whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import fsum, lcm
from typing import TYPE_CHECKING, TypeVar

from pii_bench.scorer.measures import PERFECT, PRF, ZERO, Counts, rouge_l_of_entities
from pii_bench.scorer.text import entity_set, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    import numpy as np
    from numpy.typing import NDArray

if TYPE_CHECKING:
    Pair = tuple[int, int]

Number = TypeVar("Number", int, float)

MATCHER = "lsa-lex-1"
"""Version of `match`, for signatures."""

_FLOAT64_INTEGERS = 2**53


@dataclass(frozen=True, slots=True)
class Subject:
    """One person's entities as (text, type), and their texts alone, normalised."""

    entities: frozenset[tuple[str, str]]
    texts: frozenset[str]

    @classmethod
    def of(cls, entities: Iterable[tuple[str, str]]) -> Subject:
        """Normalise raw (text, type) pairs; PiiBenchError for what is no pair."""
        pairs = entity_set(entities)
        return cls(pairs, frozenset(text for text, _ in pairs))


def match(predicted: Sequence[Subject], gold: Sequence[Subject]) -> tuple[Pair, ...]:
    """The one-to-one assignment with the largest sum of strict F1.

    Among ties it has the largest sum of entity-only F1, then of fuzzy F1. Every
    subject of the shorter side is matched, also where the pair has F1 0.

    The three sums are thereby fixed, but precision and recall of what still ties
    are not. So the problem is solved in an order made from the entities alone:
    the callers' order changes no score, and exchanging the two sides only
    exchanges precision and recall.

    Each subject has at least one entity. The pairs of indices (predicted, gold) are sorted.
    """
    predicted_order, gold_order = _canonical_order(predicted), _canonical_order(gold)
    left = [predicted[i] for i in predicted_order]
    right = [gold[j] for j in gold_order]
    if _rank(left) <= _rank(right):
        pairs = iter(_assign_lexicographically(left, right))
    else:
        pairs = ((i, j) for j, i in _assign_lexicographically(right, left))
    return tuple(sorted((predicted_order[i], gold_order[j]) for i, j in pairs))


def _canonical_order(subjects: Sequence[Subject]) -> list[int]:
    return sorted(range(len(subjects)), key=lambda i: sorted(subjects[i].entities))


def _rank(ordered: Sequence[Subject]) -> tuple[int, list[list[tuple[str, str]]]]:
    return len(ordered), [sorted(subject.entities) for subject in ordered]


@dataclass(frozen=True, slots=True)
class _Optima:
    """All optimal assignments of a matrix: the full ones that keep to these terms.

    Attributes:
        edges: by row and column, whether the pair is in at least one of them.
        required: by column, whether all of them use it.
    """

    edges: list[list[bool]]
    required: list[bool]

    @property
    def only(self) -> list[Pair] | None:
        """The one assignment, where there is one alone."""
        pairs = [(i, j) for i, row in enumerate(self.edges) for j, used in enumerate(row) if used]
        # A full assignment needs an edge for each row: with no more, it is the only one.
        return pairs if len(pairs) == len(self.edges) else None


def _assign_lexicographically(
    rows: Sequence[Subject], columns: Sequence[Subject]
) -> Iterable[Pair]:
    """One column for each row; there are at least as many columns as rows."""
    optima = _Optima([[True] * len(columns) for _ in rows], [False] * len(columns))
    levels = (
        ([row.entities for row in rows], [column.entities for column in columns]),
        ([row.texts for row in rows], [column.texts for column in columns]),
    )
    for row_sets, column_sets in levels:
        if (only := optima.only) is not None:
            return only
        optima = _find_optima(_confine(_f1_values(row_sets, column_sets), optima))
    if (only := optima.only) is not None:
        return only
    return enumerate(_solve(_confine(_fuzzy_values(rows, columns, optima), optima)))


def _f1_values(
    rows: Sequence[AbstractSet[Hashable]], columns: Sequence[AbstractSet[Hashable]]
) -> list[list[int]]:
    """F1 of each pair of sets as integers over one denominator, so that sums compare exactly."""
    sums = {size: {len(b) + size for b in columns} for size in set(map(len, rows))}
    scale = lcm(*(total for totals in sums.values() for total in totals))
    values = [[0] * len(columns) for _ in rows]
    for i, j, shared in _sharing(rows, columns):
        values[i][j] = 2 * shared * (scale // (len(rows[i]) + len(columns[j])))
    return values


def _fuzzy_values(
    rows: Sequence[Subject], columns: Sequence[Subject], optima: _Optima
) -> list[list[float]]:
    """Fuzzy F1 of each pair that an optimal assignment has; 0 where no text has a like."""
    values = [[0.0] * len(columns) for _ in rows]
    for i, j, _ in _sharing([_alike(row) for row in rows], [_alike(column) for column in columns]):
        if optima.edges[i][j]:
            values[i][j] = rouge_l_of_entities(rows[i].entities, columns[j].entities).f1
    return values


def _alike(subject: Subject) -> frozenset[tuple[str, str, str]]:
    """What another subject's entity must have one of to be anything like one of its own."""
    by_token = ((kind, "", token) for text, kind in subject.entities for token in tokens(text))
    return frozenset(by_token) | {(kind, text, "") for text, kind in subject.entities}


def _sharing(
    rows: Sequence[AbstractSet[Hashable]], columns: Sequence[AbstractSet[Hashable]]
) -> Iterator[tuple[int, int, int]]:
    """The pairs of sets (row, column) that share members, and how many."""
    holders: dict[Hashable, list[int]] = {}
    for i, row in enumerate(rows):
        for member in row:
            holders.setdefault(member, []).append(i)
    for j, column in enumerate(columns):
        found = Counter(i for member in column for i in holders.get(member, ()))
        for i, shared in found.items():
            yield i, j, shared


def _confine(values: list[list[Number]], optima: _Optima) -> list[list[Number]]:
    """Values of at least 0, changed so that the best assignments are among `optima`.

    A required column gains, and an edge outside loses, more than all values together.
    """
    weight = 1 + sum(map(max, values))
    return [
        [
            (value + weight if required else value) if edge else -weight
            for value, edge, required in zip(row, edges, optima.required, strict=True)
        ]
        for row, edges in zip(values, optima.edges, strict=True)
    ]


def _find_optima(values: list[list[int]]) -> _Optima:
    """Find one assignment, and from its dual all others.

    Potentials u of rows and v of columns with u + v >= value everywhere, v >= 0, v = 0 where
    no row has the column, and u + v = value on the assignment prove that it is optimal. Then
    the optimal assignments are those of tight edges (u + v = value) that use every column with
    v > 0. They differ by cycles: a row takes the column of the next, or a spare one, and the
    column that is left becomes spare. So an edge is in one of them if it lies on a cycle.
    Sources: A. Schrijver, "Combinatorial Optimization", 2003, chapter 17; J.-C. Régin, "A
    filtering algorithm for constraints of difference in CSPs", AAAI 1994.
    """
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    # scipy works in float64: exact unless the denominator is enormous, where the
    # last digits are given up rather than overflowing.
    unit = max(1, sum(max(map(abs, row)) for row in values) // _FLOAT64_INTEGERS)
    worth = np.array([[value // unit for value in row] for row in values], dtype=np.int64)
    rows, columns = worth.shape
    taken = np.array(_solve(worth))
    reached = worth[np.arange(rows), taken]
    holder = np.full(columns, rows)
    holder[taken] = np.arange(rows)
    spare = holder == rows

    # What each row would get elsewhere, at most; the steps end, as no cycle of exchanges gains.
    u = worth[:, spare].max(axis=1) if spare.any() else np.zeros(rows, dtype=np.int64)
    exchange = worth[:, taken] - reached
    while (better := (exchange + u).max(axis=1) > u).any():
        u[better] = (exchange + u).max(axis=1)[better]
    v = np.zeros(columns, dtype=np.int64)
    v[taken] = reached - u

    tight = worth == u[:, None] + v
    leaving = np.flatnonzero(v[taken] == 0) if spare.any() else np.array([], dtype=np.int64)
    start, column = np.nonzero(tight)
    arcs = (
        np.concatenate([start, np.full(len(leaving), rows)]),
        np.concatenate([holder[column], leaving]),
    )
    graph = csr_array((np.ones(len(arcs[0]), dtype=np.int64), arcs), shape=(rows + 1, rows + 1))
    _, component = connected_components(graph, directed=True, connection="strong")
    required = np.zeros(columns, dtype=np.bool_)
    if spare.any():
        required[taken] = (v[taken] > 0) | (component[:rows] != component[rows])
    edges = tight & (component[:rows, None] == component[holder])
    return _Optima(edges.tolist(), required.tolist())


def _solve(values: Sequence[Sequence[float]] | NDArray[np.int64]) -> list[int]:
    """The column of each row in an assignment with the largest sum."""
    from scipy.optimize import linear_sum_assignment  # slow to import, rarely needed

    columns: list[int] = linear_sum_assignment(values, maximize=True)[1].tolist()
    return columns


if TYPE_CHECKING:
    RawSubjects = Sequence[Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class DetectionScore:
    """Scores of one sample.

    Attributes:
        strict: (text, type) pairs over the matched subjects (Strict-F1).
        entity: texts pooled over all subjects, types ignored (Ent-F1).
        entity_matched: texts over the matched subjects, types ignored.
        rouge_l: most similar texts of the same type over the matched subjects (RougeL-F).
        matching: M* as (predicted, gold) indices in the caller's lists, sorted by
            the predicted one. Every subject with entities of the shorter side is in it,
            also where the pair has nothing in common.
        strict_counts: pairs shared within M*, and all pairs of either side's subjects.
        entity_counts: the counts behind `entity`.
    """

    strict: PRF
    entity: PRF
    entity_matched: PRF
    rouge_l: PRF
    matching: tuple[tuple[int, int], ...]
    strict_counts: Counts
    entity_counts: Counts


def score_detection(predicted: RawSubjects | None, gold: RawSubjects) -> DetectionScore:
    """Compare predicted subjects with gold subjects.

    Subjects without entities are dropped first. No subjects on both sides: every
    score is 1. On one side only: 0.

    Args:
        predicted: one iterable of (text, type) per subject, or None for a sample
            without a prediction: every score is 0, also where gold is empty.
        gold: likewise, never None.

    Raises:
        PiiBenchError: an entity is no (text, type) pair.
    """
    golds = _with_entities(gold)
    predictions = _with_entities(predicted or ())
    predicted_subjects, gold_subjects = list(predictions.values()), list(golds.values())
    pairs = match(predicted_subjects, gold_subjects)
    matched = [(predicted_subjects[i], gold_subjects[j]) for i, j in pairs]

    pooled = Counts.of(_pool(predicted_subjects), _pool(gold_subjects))
    strict_counts = Counts(
        sum(len(p.entities & g.entities) for p, g in matched),
        sum(len(p.entities) for p in predicted_subjects),
        sum(len(g.entities) for g in gold_subjects),
    )

    def over_matching(value: Callable[[Subject, Subject], PRF]) -> PRF:
        if predicted is None:
            return ZERO
        return _mean([value(p, g) for p, g in matched], len(predicted_subjects), len(gold_subjects))

    predicted_indices, gold_indices = list(predictions), list(golds)
    return DetectionScore(
        strict=over_matching(lambda p, g: Counts.of(p.entities, g.entities).prf),
        entity=ZERO if predicted is None else pooled.prf,
        entity_matched=over_matching(lambda p, g: Counts.of(p.texts, g.texts).prf),
        rouge_l=over_matching(lambda p, g: rouge_l_of_entities(p.entities, g.entities)),
        matching=tuple((predicted_indices[i], gold_indices[j]) for i, j in pairs),
        strict_counts=strict_counts,
        entity_counts=pooled,
    )


def _with_entities(subjects: RawSubjects) -> dict[int, Subject]:
    """The subjects that have entities, by the caller's index."""
    made = ((index, Subject.of(entities)) for index, entities in enumerate(subjects))
    return {index: subject for index, subject in made if subject.entities}


def _pool(subjects: Iterable[Subject]) -> frozenset[str]:
    return frozenset[str]().union(*(subject.texts for subject in subjects))


def _mean(values: Sequence[PRF], predicted: int, gold: int) -> PRF:
    """Sums over M* divided by the subjects of the side; F1 by the larger side."""
    if not predicted and not gold:
        return PERFECT
    if not predicted or not gold:
        return ZERO
    # fsum: the order of the subjects must not reach the last bit.
    return PRF(
        precision=fsum(value.precision for value in values) / predicted,
        recall=fsum(value.recall for value in values) / gold,
        f1=fsum(value.f1 for value in values) / max(predicted, gold),
    )
