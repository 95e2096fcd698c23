from __future__ import annotations

import pytest
from hypothesis import given

from pii_bench.analysis.utility.chats import Ratings
from pii_bench.analysis.utility.figures import (
    Mean,
    Means,
    Missing,
    SampleFigures,
    privacy,
    privacy_of_rewriting,
    published_figures,
    similarity,
)
from pii_bench.masking import mask
from pii_bench.ranking.rows import Source
from tests.analysis.utility.runs import Vectors
from tests.masking.drawn import words_and_entities

TEXT = "Ann Lee is 32. Ann Lee!"


@pytest.mark.parametrize(
    ("protected", "utility", "weight", "balanced"),
    [
        (0.8, 0.4, 0.5, 0.6),
        (0.8, 0.4, 0.25, 0.5),
        (None, 0.4, 0.5, None),
        (0.8, None, 0.5, None),
    ],
)
def test_balance_is_the_weighted_mean_of_both(
    protected: float | None, utility: float | None, weight: float, balanced: float | None
) -> None:
    assert SampleFigures("s1", protected, utility).balanced(weight) == pytest.approx(balanced)


def test_missing_figures_are_counted_but_not_averaged() -> None:
    means = Means.of(
        [
            SampleFigures("s1", 1.0, 0.5, ratings=Ratings(masked=5, unmasked=9)),
            SampleFigures("s2", 0.5, None, Missing.NO_ANSWER),
            SampleFigures("s3", 0.0, None, Missing.UNPARSED),
            SampleFigures("s4", None, 1.0, ratings=Ratings(masked=6, unmasked=6)),
            SampleFigures("s5", None, None, Missing.NO_ANSWER),
        ],
        weight=0.5,
    )

    assert means == Means(
        privacy=Mean(0.5, 3),
        utility=Mean(0.75, 2),
        balanced=Mean(0.75, 1),
        missing={Missing.NO_ANSWER: 2, Missing.UNPARSED: 1},
        ratings=(5.5, 7.5),
    )


def test_the_mean_of_no_samples_is_none() -> None:
    assert Means.of([], 0.5) == Means(Mean(None, 0), Mean(None, 0), Mean(None, 0))


@pytest.mark.parametrize(
    ("masked", "cosine"),
    [("east", 1.0), ("north", 0.0), ("west", 0.0), ("both", 0.8), ("too far east", 1.0)],
)
def test_similarity_is_the_clipped_cosine(masked: str, cosine: float) -> None:
    encoder = Vectors(
        {
            "east": (1.0, 0.0),
            "north": (0.0, 1.0),
            "west": (-1.0, 0.0),
            "both": (0.8, 0.6),
            "too far east": (1.001, 0.0),
        }
    )

    assert similarity(encoder, masked, "east") == pytest.approx(cosine)


def test_equal_answers_have_similarity_1_without_being_embedded() -> None:
    assert similarity(Vectors({}), "same", "same") == 1.0


@pytest.mark.parametrize(
    ("entities", "text", "masked", "expected"),
    [
        (["Ann Lee", "32"], TEXT, [], 0),
        (["Ann Lee", "32"], TEXT, [(11, 13)], 1 / 3),
        (["Ann Lee", "32"], TEXT, [(0, 7), (15, 22)], 2 / 3),
        (["Ann Lee", "32"], TEXT, [(0, 7), (11, 13), (15, 22)], 1),
        # A partly masked occurrence counts as masked.
        (["Ann Lee", "32"], TEXT, [(0, 3), (12, 13), (21, 23)], 1),
        # Spellings of one value count once.
        (["Ann Lee", "32", "32", "ANN LEE"], TEXT, [(0, 7), (15, 22)], 2 / 3),
        (["32"], "She is 32, born in 1932.", [(7, 9)], 1),  # a number inside a year is another
        # Overlapping entities count separately: Acme Bank once and Acme twice.
        (["Acme Bank", "Acme"], "Acme Bank. Acme.", [(11, 15)], 1 / 3),
        (["Acme Bank", "Acme"], "Acme Bank. Acme.", [(0, 4), (11, 15)], 1),
    ],
)
def test_privacy_is_the_share_of_masked_occurrences(
    entities: list[str], text: str, masked: list[tuple[int, int]], expected: float
) -> None:
    assert privacy(entities, text, masked) == pytest.approx(expected)


@pytest.mark.parametrize("entities", [[], ["", " "], ["Bo"]])
def test_privacy_is_none_without_pii(entities: list[str]) -> None:
    assert privacy(entities, TEXT, []) is None


@given(words_and_entities())
def test_privacy_is_0_for_no_mask_and_1_for_mask_all(
    drawn: tuple[str, list[tuple[str, str]], list[str]],
) -> None:
    text, entities, keep = drawn
    texts = [entity for entity, _ in entities]
    everything, some = (
        [(span.start, span.end) for span in mask(text, entities, kept).spans] for kept in ((), keep)
    )

    assert privacy(texts, text, []) in {0.0, None}
    assert privacy(texts, text, everything) in {1.0, None}
    between = privacy(texts, text, some)
    assert between is None or 0 <= between <= 1


@pytest.mark.parametrize(
    ("rewritten", "expected"),
    [
        ("Ann, 32, of Oslo. Ann.", 0),
        ("Somebody.", 1),
        ("Thirty-two, and Ann.", 1 / 2),
        # More occurrences than in the original.
        ("Ann Ann Ann Ann Ann", 0),
    ],
)
def test_privacy_of_rewriting_counts_restated_entities(rewritten: str, expected: float) -> None:
    original = "Ann, 32, of Oslo. Ann."

    assert privacy_of_rewriting(["Ann", "32", "Oslo"], original, rewritten) == expected


def test_privacy_of_rewriting_is_none_without_pii() -> None:
    assert privacy_of_rewriting(["Bo", " "], "Ann.", "Bo.") is None


def test_published_figures() -> None:
    rows = published_figures()

    assert [
        (row.condition, *(each.value for each in (row.means.privacy, row.means.utility)))
        for row in rows
    ] == [("no-mask", 0.0, 1.0), ("mask-all", 1.0, 0.52), ("mask-query-unrelated", 0.83, 0.89)]
    assert [row.means.balanced.value for row in rows] == [0.5, 0.76, 0.86]
    assert {(row.source, row.answerer, row.measure, row.note) for row in rows} == {
        (Source.PUBLISHED, "gpt-4o-2024-08-06", "not said", "paper, table 8")
    }
    assert not any(row.complete or row.signature for row in rows)
