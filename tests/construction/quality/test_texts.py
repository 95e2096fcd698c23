from __future__ import annotations

import pytest

from pii_bench.construction.quality.texts import sentences, text_measures, type_token_ratio
from tests.datasets.check.samples import build


def test_sentences_end_at_marks_and_lines_and_case_does_not_count() -> None:
    text = "She came by. “Was it late?” he asked\nBring the <CODE>, please!"

    assert sentences(text) == [
        ("she", "came", "by"),
        ("was", "it", "late"),
        ("bring", "the", "<CODE>", "please"),
    ]


def test_a_decimal_point_ends_no_sentence() -> None:
    assert sentences("It took 2.5 hours.") == [("it", "took", "2", "5", "hours")]


@pytest.mark.parametrize("text", ["", "EDUCATION", "Kind regards,", "<PER> · <LOC> · <CODE>"])
def test_headings_and_signatures_are_no_sentences(text: str) -> None:
    assert sentences(text) == []


def test_ratio_of_different_words() -> None:
    assert type_token_ratio(["a", "b", "a", "c"]) == 0.75
    assert type_token_ratio([]) == 0


def test_ratio_looks_at_the_first_100_000_words_alone() -> None:
    assert type_token_ratio(["a", "b"] * 50_000 + ["c"]) == 2 / 100_000


def test_measures_of_two_sets() -> None:
    # Blanked, the first text of either set is the same; the second is like none.
    sets = {
        "single": [
            build("Ann Lee kept bees for years. It rained.", {"Ann Lee": "Full Name"}),
            build("Bees are loud at noon. Why ask?"),
        ],
        "multi": [
            build("Bo Roe kept bees for years. It rained.", {"Bo Roe": "Full Name"}),
            build("Nobody came back that day. Nobody came back at all."),
            build("Late."),
            build("Late too."),
        ],
    }

    near, repeated, opening, distinct, ratio = text_measures(sets)

    assert near.values == {"single": 1 / 2, "multi": 1 / 4}
    # In multi no sentence stands in two samples: the first by alphabet stands for all.
    assert repeated.values == {"single": 1 / 2, "multi": 1 / 4}
    assert repeated.examples["multi"] == "<PER> kept bees for years"
    # Single has the sentences "<PER> kept …" and "Bees are …", multi "<PER> kept …" and two
    # of three that open alike: "Nobody came back".
    assert opening.values == {"single": 1 / 2, "multi": 2 / 3}
    assert opening.examples == {"single": "<PER> kept bees", "multi": "nobody came back"}
    # kept bees for years it rained (6) / bees are loud at noon why ask (7, one known)
    assert distinct.values["single"] == 12
    assert ratio.values["single"] == 12 / 13
    assert [measure.goal for measure in (near, repeated, opening, distinct, ratio)] == [
        0.01,
        0.01,
        None,
        None,
        None,
    ]


def test_a_sentence_counts_once_in_a_sample() -> None:
    thrice = build("So it goes. So it goes. So it goes.")
    once = build("Look at that.")
    other = build("Look at that. Then look away.")

    repeated = text_measures({"single": [thrice, once, other]})[1]

    assert repeated.values == {"single": 2 / 3}
    assert repeated.examples == {"single": "look at that"}


def test_of_equally_frequent_sentences_the_first_by_alphabet_is_shown() -> None:
    text = " ".join(f"{letter} was here." for letter in "hgfedabc")

    repeated = text_measures({"single": [build(text)]})[1]

    assert repeated.examples == {"single": "a was here"}


def test_a_set_without_any_sentence() -> None:
    measures = text_measures({"single": [build("Late.")]})

    assert [measure.values["single"] for measure in measures] == [0, 0, 0, 1, 1]
