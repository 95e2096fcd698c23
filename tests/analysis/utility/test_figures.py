from __future__ import annotations

import pytest

from pii_bench.analysis.utility.figures import Mean, Means, Missing, SampleFigures, similarity
from pii_bench.analysis.utility.responses import Ratings
from tests.analysis.utility.vectors import Vectors

ENCODER = Vectors({"east": (1.0, 0.0), "north": (0.0, 1.0), "west": (-1.0, 0.0)})


def test_the_balance_is_the_weighted_mean() -> None:
    figures = SampleFigures("s1", privacy=0.8, utility=0.4)

    assert figures.balanced(0.5) == pytest.approx(0.6)
    assert figures.balanced(0.25) == pytest.approx(0.5)
    assert figures.balanced(0.0) == 0.4
    assert figures.balanced(1.0) == 0.8


@pytest.mark.parametrize(
    "figures",
    [
        SampleFigures("s1", privacy=None, utility=0.4),
        SampleFigures("s1", privacy=0.8, utility=None, missing=Missing.NO_ANSWER),
    ],
)
def test_there_is_no_balance_of_one_figure(figures: SampleFigures) -> None:
    assert figures.balanced(0.5) is None


def test_what_is_missing_is_counted_and_in_no_mean() -> None:
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


def test_a_mean_over_nothing_is_none() -> None:
    assert Means.of([], 0.5) == Means(Mean(None, 0), Mean(None, 0), Mean(None, 0))


@pytest.mark.parametrize(
    ("masked", "cosine"), [("east", 1.0), ("north", 0.0), ("west", 0.0), ("both", 0.8)]
)
def test_similarity_is_the_cosine_from_0_to_1(masked: str, cosine: float) -> None:
    encoder = Vectors({**ENCODER.vectors, "both": (0.8, 0.6)})

    assert similarity(encoder, masked, "east") == pytest.approx(cosine)


def test_rounding_does_not_pass_1() -> None:
    encoder = Vectors({"one": (1.0, 1e-3), "other": (1.0, 1e-3)})

    assert similarity(encoder, "one", "other") == 1.0


def test_an_answer_is_as_itself_whatever_the_encoder_says() -> None:
    assert similarity(Vectors({}), "same", "same") == 1.0
