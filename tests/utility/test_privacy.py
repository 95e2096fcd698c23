from __future__ import annotations

import pytest
from hypothesis import given

from pii_bench.masking import mask
from pii_bench.utility.privacy import privacy
from tests.masking.drawn import words_and_entities

TEXT = "Ann Lee is 32. Ann Lee!"


@pytest.mark.parametrize(
    ("masked", "expected"),
    [
        (TEXT, 0.0),
        ("Ann Lee is <Age>. Ann Lee!", 1 / 3),
        ("<Full Name> is 32. <Full Name>!", 2 / 3),
        ("<Full Name> is <Age>. <Full Name>!", 1.0),
    ],
)
def test_the_share_of_occurrences_that_are_gone(masked: str, expected: float) -> None:
    assert privacy(["Ann Lee", "32"], TEXT, masked) == pytest.approx(expected)


def test_an_entity_of_two_people_counts_once() -> None:
    masked = "<Full Name> is 32. <Full Name>!"

    assert privacy(["Ann Lee", "32", "32"], TEXT, masked) == pytest.approx(2 / 3)


def test_an_age_does_not_stand_in_a_year() -> None:
    assert privacy(["32"], "She is 32, born in 1932.", "She is <Age>, born in 1932.") == 1.0


def test_a_text_that_stands_only_inside_of_words_is_counted_there() -> None:
    assert privacy(["42"], "User ann42 wrote.", "User ann42 wrote.") == 0.0
    assert privacy(["42"], "User ann42 wrote.", "User ann<Age> wrote.") == 1.0


def test_without_spaces_each_letter_is_a_word() -> None:
    assert privacy(["张伟", "北京"], "张伟住在北京", "<Person>住在北京") == 0.5


def test_case_counts() -> None:
    assert privacy(["May"], "May may sing.", "<Person> may sing.") == 1.0


@pytest.mark.parametrize(
    ("masked", "expected"),
    [
        ("<Organisation 1>. Acme.", 2 / 3),
        ("Acme Bank. <Organisation 1>.", 1 / 3),
        ("<Organisation 1> Bank. <Organisation 1>.", 1.0),
    ],
)
def test_of_overlapping_entities_each_counts(masked: str, expected: float) -> None:
    # Acme Bank once and Acme twice.
    entities = ["Acme Bank", "Acme"]

    assert privacy(entities, "Acme Bank. Acme.", masked) == pytest.approx(expected)


def test_a_tag_holds_no_entity() -> None:
    masked = "<Full Name 1> <Age>"

    assert privacy(["Ann", "1"], "Ann 1", masked, ["<Full Name 1>", "<Age>"]) == 1.0


def test_of_tags_that_begin_alike_the_longer_is_one() -> None:
    masked = "<Age>s and 7"

    assert privacy(["s", "7"], "s and 7", masked, ["<Age>", "<Age>s"]) == 0.5


def test_a_word_that_is_cut_makes_no_new_occurrence() -> None:
    assert privacy(["32"], "32, born in 1932", "32, born in <Date>32", ["<Date>"]) == 0.0


@pytest.mark.parametrize("entities", [[], ["", " "], ["Bo"]])
def test_there_is_no_privacy_where_there_is_no_pii(entities: list[str]) -> None:
    assert privacy(entities, TEXT, TEXT) is None


@given(words_and_entities())
def test_it_is_0_without_a_mask_and_1_if_everything_is_masked(
    drawn: tuple[str, list[tuple[str, str]], list[str]],
) -> None:
    text, entities, keep = drawn
    texts = [entity for entity, _ in entities]
    everything, some = mask(text, entities), mask(text, entities, keep)

    assert privacy(texts, text, text) in {0.0, None}
    assert privacy(texts, text, everything.text, everything.mapping) in {1.0, None}
    between = privacy(texts, text, some.text, some.mapping)
    assert between is None or 0 <= between <= 1
