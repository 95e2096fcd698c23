"""Scores of the task `detection`: the subjects of a text and their entities."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, lcm
from typing import TYPE_CHECKING, TypeVar

from pii_bench.scorer.measures import PERFECT, PRF, ZERO, Counts, rouge_l_of_entities
from pii_bench.scorer.text import entity_set

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Pair = tuple[int, int]
    RawSubjects = Sequence[Iterable[tuple[str, str]]]

Number = TypeVar("Number", int, float)

MATCHER = "lsa-lex-1"
"""Version of `match`, for signatures."""

_FLOAT64_INTEGERS = 2**53


@dataclass(frozen=True, slots=True)
class Subject:
    """The entities of one person as normalised (text, type) pairs, and their texts."""

    entities: frozenset[tuple[str, str]]
    texts: frozenset[str]

    @classmethod
    def of(cls, entities: Iterable[tuple[str, str]]) -> Subject:
        """Normalise raw (text, type) pairs; raises PiiBenchError if an entity is not a pair."""
        pairs = entity_set(entities)
        return cls(pairs, frozenset(text for text, _ in pairs))


def match(predicted: Sequence[Subject], gold: Sequence[Subject]) -> tuple[Pair, ...]:
    """Return the one-to-one assignment with the largest sum of strict F1.

    Ties are broken by the sum of entity-only F1, then of fuzzy F1. Every subject of the shorter
    side is matched, even if the pair has F1 0.

    Several assignments may have the same three sums but different precision and recall. The
    problem is therefore solved in an order that depends on the entities alone: the order of
    the arguments changes no score, and swapping the sides only swaps precision and recall.

    Subjects have at least one entity each. The pairs of indices (predicted, gold) are sorted.
    """
    predicted_order, gold_order = _canonical_order(predicted), _canonical_order(gold)
    left = [predicted[i] for i in predicted_order]
    right = [gold[j] for j in gold_order]
    if _sort_key(left) <= _sort_key(right):
        pairs = list(_assign_lexicographically(left, right))
    else:
        pairs = [(i, j) for j, i in _assign_lexicographically(right, left)]
    return tuple(sorted((predicted_order[i], gold_order[j]) for i, j in pairs))


def _canonical_order(subjects: Sequence[Subject]) -> list[int]:
    return sorted(range(len(subjects)), key=lambda i: sorted(subjects[i].entities))


def _sort_key(ordered: Sequence[Subject]) -> tuple[int, list[list[tuple[str, str]]]]:
    return len(ordered), [sorted(subject.entities) for subject in ordered]


@dataclass(frozen=True, slots=True)
class _Optima:
    """The optimal assignments of a matrix: the full ones of `edges` with every required column.

    `edges` are by row and column, `required` by column.
    """

    edges: list[list[bool]]
    required: list[bool]

    @property
    def unique(self) -> list[Pair] | None:
        """The optimal assignment if there is only one, else None."""
        pairs = [(i, j) for i, row in enumerate(self.edges) for j, used in enumerate(row) if used]
        # Every row needs an edge, so an assignment without free edges is the only one.
        return pairs if len(pairs) == len(self.edges) else None


def _assign_lexicographically(
    rows: Sequence[Subject], columns: Sequence[Subject]
) -> Iterable[Pair]:
    """Assign a column to each row; there are at least as many columns as rows."""
    optima = _Optima([[True] * len(columns) for _ in rows], [False] * len(columns))
    levels = (
        ([row.entities for row in rows], [column.entities for column in columns]),
        ([row.texts for row in rows], [column.texts for column in columns]),
    )
    for row_sets, column_sets in levels:
        if (unique := optima.unique) is not None:
            return unique
        optima = _find_optima(_restrict(_f1_values(row_sets, column_sets), optima))
    if (unique := optima.unique) is not None:
        return unique
    return enumerate(_solve(_restrict(_fuzzy_values(rows, columns, optima), optima)))


def _f1_values(
    rows: Sequence[frozenset[Hashable]], columns: Sequence[frozenset[Hashable]]
) -> list[list[int]]:
    """Return F1 of each pair of sets as integers over a common denominator, for exact sums."""
    shared = {
        (i, j): len(row & column)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
        if not row.isdisjoint(column)
    }
    # Without the pairs that share nothing, so that the denominator stays small.
    scale = lcm(*(len(rows[i]) + len(columns[j]) for i, j in shared))
    values = [[0] * len(columns) for _ in rows]
    for (i, j), count in shared.items():
        values[i][j] = 2 * count * (scale // (len(rows[i]) + len(columns[j])))
    return values


def _fuzzy_values(
    rows: Sequence[Subject], columns: Sequence[Subject], optima: _Optima
) -> list[list[float]]:
    """Return fuzzy F1 of each pair in an optimal assignment; 0 for all others."""
    return [
        [
            rouge_l_of_entities(row.entities, column.entities).f1 if edge else 0.0
            for column, edge in zip(columns, edges, strict=True)
        ]
        for row, edges in zip(rows, optima.edges, strict=True)
    ]


def _restrict(values: list[list[Number]], optima: _Optima) -> list[list[Number]]:
    """Change non-negative values so that the best assignments are among `optima`.

    A required column gains, and an excluded edge loses, more than the sum of all values.
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
    """Return all optimal assignments of a matrix of values.

    One assignment is found by scipy. It is optimal if there are potentials u of rows and v of
    columns with u + v >= value everywhere, u + v = value on the assignment, v >= 0, and v = 0
    for unassigned columns. The optimal assignments are then those of tight edges
    (u + v = value) that use every column with v > 0. Two of them differ by cycles: each row
    takes the column of the next row or an unassigned one, and the column left over becomes
    unassigned. So an edge is in some optimal assignment if it lies on such a cycle.

    Sources: A. Schrijver, "Combinatorial Optimization", 2003, chapter 17; J.-C. Régin, "A
    filtering algorithm for constraints of difference in CSPs", AAAI 1994.
    """
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    # scipy works in float64, which is exact unless the denominator is enormous. The last digits
    # are then dropped, as the numbers would overflow.
    unit = max(1, sum(max(map(abs, row)) for row in values) // _FLOAT64_INTEGERS)
    matrix = np.array([[value // unit for value in row] for row in values], dtype=np.int64)
    rows, columns = matrix.shape
    assigned = np.array(_solve(matrix))
    reached = matrix[np.arange(rows), assigned]
    row_of = np.full(columns, rows)
    row_of[assigned] = np.arange(rows)
    free = row_of == rows

    # The most that each row could gain elsewhere. The loop ends since no cycle of swaps gains.
    u = matrix[:, free].max(axis=1) if free.any() else np.zeros(rows, dtype=np.int64)
    gain = matrix[:, assigned] - reached
    while ((gain + u).max(axis=1) > u).any():
        u = np.maximum(u, (gain + u).max(axis=1))
    v = np.zeros(columns, dtype=np.int64)
    v[assigned] = reached - u

    tight = matrix == u[:, None] + v
    leaving = np.flatnonzero(v[assigned] == 0) if free.any() else np.array([], dtype=np.int64)
    start, column = np.nonzero(tight)
    arcs = (
        np.concatenate([start, np.full(len(leaving), rows)]),
        np.concatenate([row_of[column], leaving]),
    )
    graph = csr_array((np.ones(len(arcs[0]), dtype=np.int64), arcs), shape=(rows + 1, rows + 1))
    _, component = connected_components(graph, directed=True, connection="strong")
    required = np.zeros(columns, dtype=np.bool_)
    if free.any():
        required[assigned] = (v[assigned] > 0) | (component[:rows] != component[rows])
    edges = tight & (component[:rows, None] == component[row_of])
    return _Optima(edges.tolist(), required.tolist())


def _solve(values: Sequence[Sequence[float]] | NDArray[np.int64]) -> list[int]:
    """Return the column of each row in an assignment with the largest sum."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    columns: list[int] = linear_sum_assignment(values, maximize=True)[1].tolist()
    return columns


@dataclass(frozen=True, slots=True)
class DetectionScore:
    """Detection scores of one sample.

    Attributes:
        strict: (text, type) pairs over the matched subjects (Strict-F1).
        entity: texts pooled over all subjects, ignoring types (Ent-F1).
        entity_matched: texts over the matched subjects, ignoring types.
        rouge_l: most similar texts of the same type over the matched subjects (RougeL-F).
        matching: M* as sorted (predicted, gold) indices into the caller's lists. Every subject
            with entities of the shorter side is in it.
        strict_counts: pairs shared within M*, and all pairs of each side.
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

    Subjects without entities are dropped first. If neither side has subjects, every score is 1;
    if only one has, 0. `predicted` is None for a sample without a prediction: every score is 0,
    even if gold is empty.

    Raises:
        PiiBenchError: an entity is not a (text, type) pair.
    """
    golds = _with_entities(gold)
    gold_subjects = list(golds.values())
    gold_size = sum(len(subject.entities) for subject in gold_subjects)
    gold_texts = _pool(gold_subjects)
    if predicted is None:
        counts = Counts(gold=gold_size), Counts(gold=len(gold_texts))
        return DetectionScore(ZERO, ZERO, ZERO, ZERO, (), *counts)
    predictions = _with_entities(predicted)
    predicted_subjects = list(predictions.values())
    pairs = match(predicted_subjects, gold_subjects)
    matched = [(predicted_subjects[i], gold_subjects[j]) for i, j in pairs]
    sizes = len(predicted_subjects), len(gold_subjects)
    entity_counts = Counts.of(_pool(predicted_subjects), gold_texts)
    predicted_indices, gold_indices = list(predictions), list(golds)
    return DetectionScore(
        strict=_mean([Counts.of(p.entities, g.entities).prf for p, g in matched], *sizes),
        entity=entity_counts.prf,
        entity_matched=_mean([Counts.of(p.texts, g.texts).prf for p, g in matched], *sizes),
        rouge_l=_mean([rouge_l_of_entities(p.entities, g.entities) for p, g in matched], *sizes),
        matching=tuple((predicted_indices[i], gold_indices[j]) for i, j in pairs),
        strict_counts=Counts(
            sum(len(p.entities & g.entities) for p, g in matched),
            sum(len(subject.entities) for subject in predicted_subjects),
            gold_size,
        ),
        entity_counts=entity_counts,
    )


def _with_entities(subjects: RawSubjects) -> dict[int, Subject]:
    """Return the subjects that have entities, by index."""
    by_index = {index: Subject.of(entities) for index, entities in enumerate(subjects)}
    return {index: subject for index, subject in by_index.items() if subject.entities}


def _pool(subjects: Iterable[Subject]) -> frozenset[str]:
    return frozenset[str]().union(*(subject.texts for subject in subjects))


def _mean(values: Sequence[PRF], predicted: int, gold: int) -> PRF:
    """Divide sums over M* by the number of subjects of the side; F1 by that of the larger side."""
    if not predicted and not gold:
        return PERFECT
    if not predicted or not gold:
        return ZERO
    # fsum does not depend on the order of the subjects.
    return PRF(
        precision=fsum(value.precision for value in values) / predicted,
        recall=fsum(value.recall for value in values) / gold,
        f1=fsum(value.f1 for value in values) / max(predicted, gold),
    )
