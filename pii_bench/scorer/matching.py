"""M*: which predicted subject answers which gold subject (spec, "Detection")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import lcm
from typing import TYPE_CHECKING, TypeVar

from pii_bench.scorer import rouge_l
from pii_bench.scorer.text import entity_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    Pair = tuple[int, int]

Number = TypeVar("Number", int, float)

MATCHER = "lsa-lex-1"
"""Version of `match`, for signatures."""

_FLOAT64_INTEGERS = 2**53


@dataclass(frozen=True, slots=True)
class Subject:
    """One person's entities, normalised.

    Attributes:
        entities: the (text, type) pairs.
        texts: their texts alone.
    """

    entities: frozenset[tuple[str, str]]
    texts: frozenset[str]

    @classmethod
    def of(cls, entities: Iterable[tuple[str, str]]) -> Subject:
        """Normalise raw (text, type) pairs.

        Raises:
            PiiBenchError: an entity is no pair.
        """
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

    Args:
        predicted: subjects, each with at least one entity.
        gold: likewise.

    Returns:
        (index into `predicted`, index into `gold`) pairs, sorted.
    """
    predicted_order, gold_order = _canonical_order(predicted), _canonical_order(gold)
    left = [predicted[i] for i in predicted_order]
    right = [gold[j] for j in gold_order]
    if _rank(left) <= _rank(right):
        pairs = _assign_lexicographically(left, right)
    else:
        pairs = [(i, j) for j, i in _assign_lexicographically(right, left)]
    return tuple(sorted((predicted_order[i], gold_order[j]) for i, j in pairs))


def _canonical_order(subjects: Sequence[Subject]) -> list[int]:
    return sorted(range(len(subjects)), key=lambda i: sorted(subjects[i].entities))


def _rank(ordered: Sequence[Subject]) -> tuple[int, list[list[tuple[str, str]]]]:
    return len(ordered), [sorted(subject.entities) for subject in ordered]


@dataclass(frozen=True, slots=True)
class _Optima:
    """All optimal assignments of a matrix: the full ones that keep to these terms.

    These are the tight constraints of the linear programme, whose dual is the
    same for all of its optima. In a matrix with spare columns tight edges are not
    enough: they may pass over a column that every optimum uses.

    Attributes:
        edges: (row, column) pairs that stand in at least one of them.
        required: columns that all of them use.
    """

    edges: frozenset[Pair]
    required: frozenset[int]


def _assign_lexicographically(
    rows: Sequence[Subject], columns: Sequence[Subject]
) -> Iterable[Pair]:
    """One column for each row; there are at least as many columns as rows."""
    optima = _Optima(frozenset(product(range(len(rows)), range(len(columns)))), frozenset())
    levels = (
        ([row.entities for row in rows], [column.entities for column in columns]),
        ([row.texts for row in rows], [column.texts for column in columns]),
    )
    for row_sets, column_sets in levels:
        # A full assignment needs an edge for each row: with no more, it is the only one.
        if len(optima.edges) == len(rows):
            return optima.edges
        optima = _find_optima(_confine(_f1_values(row_sets, column_sets), optima))
    if len(optima.edges) == len(rows):
        return optima.edges
    fuzzy = [
        [
            rouge_l.score_entities(row.entities, column.entities).f1
            if (i, j) in optima.edges
            else 0.0
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(rows)
    ]
    return enumerate(_solve(_confine(fuzzy, optima)))


def _f1_values(
    rows: Sequence[AbstractSet[object]], columns: Sequence[AbstractSet[object]]
) -> list[list[int]]:
    """F1 of each pair of sets as integers over one denominator, so that sums compare exactly."""
    scale = lcm(*(len(a) + len(b) for a in rows for b in columns))
    return [[2 * len(a & b) * (scale // (len(a) + len(b))) for b in columns] for a in rows]


def _confine(values: list[list[Number]], optima: _Optima) -> list[list[Number]]:
    """Values of at least 0, changed so that the best assignments are among `optima`.

    A required column gains, and an edge outside loses, more than all values together.
    """
    weight = 1 + sum(map(max, values))
    return [
        [
            (value + weight if j in optima.required else value)
            if (i, j) in optima.edges
            else -weight
            for j, value in enumerate(row)
        ]
        for i, row in enumerate(values)
    ]


def _find_optima(values: list[list[int]]) -> _Optima:
    """Test each edge by forcing it, and each column by leaving it out, and solving the rest."""
    # scipy works in float64: exact unless the denominator is enormous, where the
    # last digits are given up rather than overflowing.
    unit = max(1, sum(max(map(abs, row)) for row in values) // _FLOAT64_INTEGERS)

    def solve(matrix: list[list[int]]) -> list[int]:
        return _solve([[value / unit for value in row] for row in matrix])

    def total(matrix: list[list[int]]) -> int:
        if not matrix:
            return 0
        return sum(row[j] for row, j in zip(matrix, solve(matrix), strict=True))

    found = solve(values)
    largest = sum(row[j] for row, j in zip(values, found, strict=True))
    row_best = [max(row) for row in values]
    slack = sum(row_best) - largest

    def ties(i: int, j: int) -> bool:
        # What loses more than the slack cannot tie, whatever the rest does.
        if row_best[i] - values[i][j] > slack:
            return False
        rest = _without_column(values[:i] + values[i + 1 :], j)
        return values[i][j] + total(rest) == largest

    spare = len(values) < len(values[0])
    return _Optima(
        edges=frozenset(
            (i, j)
            for i, j in product(range(len(values)), range(len(values[0])))
            if j == found[i] or ties(i, j)
        ),
        required=frozenset(
            j for j in found if spare and total(_without_column(values, j)) < largest
        ),
    )


def _without_column(values: list[list[int]], j: int) -> list[list[int]]:
    return [row[:j] + row[j + 1 :] for row in values]


def _solve(values: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row in an assignment with the largest sum."""
    from scipy.optimize import linear_sum_assignment  # slow to import, rarely needed

    columns: list[int] = linear_sum_assignment(values, maximize=True)[1].tolist()
    return columns
