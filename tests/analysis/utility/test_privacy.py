from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from pii_bench.analysis.utility.privacy import privacy, privacy_of_rewriting
from pii_bench.masking import mask
from tests.masking.drawn import words_and_entities

if TYPE_CHECKING:
    from collections.abc import Iterable

TEXT = "Ann Lee is 32. Ann Lee!"


def privacy_of(entities: Iterable[str], text: str, masked: Iterable[str]) -> float | None:
    """P where these texts are masked."""
    hidden = mask(text, [(each, "PER") for each in masked])
    return privacy(entities, text, [(span.start, span.end) for span in hidden.spans])


@pytest.mark.parametrize(
    ("masked", "expected"),
    [
        ([], 0.0),
        ([(11, 13)], 1 / 3),
        ([(0, 7), (15, 22)], 2 / 3),
        ([(0, 7), (11, 13), (15, 22)], 1.0),
        # An entity that is masked in part is gone.
        ([(0, 3), (12, 13), (21, 23)], 1.0),
    ],
)
def test_the_share_of_occurrences_that_are_gone(
    masked: list[tuple[int, int]], expected: float
) -> None:
    assert privacy(["Ann Lee", "32"], TEXT, masked) == pytest.approx(expected)


def test_an_entity_of_two_people_counts_once_in_whatever_writing() -> None:
    assert privacy_of(["Ann Lee", "32", "32", "ANN LEE"], TEXT, ["Ann Lee"]) == pytest.approx(2 / 3)


def test_an_occurrence_in_another_writing_is_one() -> None:
    text = "O'Neil called. O’Neil and O'NEIL wrote."

    assert privacy(["O'Neil"], text, []) == 0
    assert privacy(["O'Neil"], text, [(0, 6)]) == pytest.approx(1 / 3)
    assert privacy_of(["O'Neil"], text, ["O'Neil"]) == 1


def test_an_age_does_not_stand_in_a_year() -> None:
    assert privacy_of(["32"], "She is 32, born in 1932.", ["32"]) == 1.0


def test_a_text_that_stands_only_inside_of_words_is_counted_there() -> None:
    assert privacy(["42"], "User ann42 wrote.", []) == 0.0
    assert privacy_of(["42"], "User ann42 wrote.", ["42"]) == 1.0


def test_without_spaces_each_letter_is_a_word() -> None:
    assert privacy_of(["张伟", "北京"], "张伟住在北京", ["张伟"]) == 0.5


def test_a_short_word_in_lower_case_is_another() -> None:
    assert privacy(["May"], "May may sing.", [(0, 3)]) == 1.0


@pytest.mark.parametrize(
    ("masked", "expected"), [([(0, 9)], 2 / 3), ([(11, 15)], 1 / 3), ([(0, 4), (11, 15)], 1.0)]
)
def test_of_overlapping_entities_each_counts(
    masked: list[tuple[int, int]], expected: float
) -> None:
    # Acme Bank once and Acme twice.
    assert privacy(["Acme Bank", "Acme"], "Acme Bank. Acme.", masked) == pytest.approx(expected)


@pytest.mark.parametrize("entities", [[], ["", " "], ["Bo"]])
def test_there_is_no_privacy_where_there_is_no_pii(entities: list[str]) -> None:
    assert privacy(entities, TEXT, []) is None


@given(words_and_entities())
def test_it_is_0_without_a_mask_and_1_if_everything_is_masked(
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
        # What is said more often than before is not below 0.
        ("Ann Ann Ann Ann Ann", 0),
    ],
)
def test_a_rewritten_text_holds_what_it_tells_in_any_form(rewritten: str, expected: float) -> None:
    original = "Ann, 32, of Oslo. Ann."

    assert privacy_of_rewriting(["Ann", "32", "Oslo"], original, rewritten) == expected


def test_where_there_is_nothing_to_protect_a_rewriting_has_no_privacy() -> None:
    assert privacy_of_rewriting(["Bo", " "], "Ann.", "Bo.") is None
