from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.systems.encoder.reader import (
    FoundEntity,
    bucket,
    decode,
    default_transitions,
    lower_for_other_people,
    pool_by_window,
)
from pii_bench.systems.encoder.windows import subwords_of, windows_of
from pii_bench.systems.tagger import LABELS
from pii_bench.taxonomy import PiiType
from tests.systems.encoder.test_windows import tokenizer


def labelled(text: str, *words: str | dict[str, float]) -> list[tuple[int, int, PiiType]]:
    """What is decoded of a sure label, or the scores of labels, for each word of a text."""
    windows = windows_of(tokenizer(), text)
    tags = []
    wanted = iter(words)
    for window in windows:
        scores = np.zeros((len(window.ids), len(LABELS)), np.float32)
        for place, opens in enumerate(window.opens):
            if opens:
                said = next(wanted)
                for label, score in ({said: 9.0} if isinstance(said, str) else said).items():
                    scores[window.first + place, LABELS.index(label)] = score
        tags.append(scores)
    return decode(text, zip(windows, tags, strict=True), default_transitions())


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        (("O", "O", "O"), []),
        (("B-PER", "I-PER", "O"), [(0, 5, PiiType.PER)]),
        (("B-PER", "B-PER", "O"), [(0, 2, PiiType.PER), (3, 5, PiiType.PER)]),
        (("O", "I-LOC", "I-LOC"), [(3, 8, PiiType.LOC)]),
        (("B-PER", "I-LOC", "O"), [(0, 2, PiiType.PER), (3, 5, PiiType.LOC)]),
    ],
)
def test_labels_become_spans(
    labels: tuple[str, ...], spans: list[tuple[int, int, PiiType]]
) -> None:
    assert labelled("ab cd ef", *labels) == spans


@pytest.mark.parametrize(
    ("second", "spans"),
    [
        # A change within a name costs 2.
        ({"I-PER": 5, "I-LOC": 6.9}, [(0, 5, PiiType.PER)]),
        ({"I-PER": 5, "I-LOC": 7.1}, [(0, 2, PiiType.PER), (3, 5, PiiType.LOC)]),
        ({"I-PER": 5, "B-LOC": 6.9}, [(0, 5, PiiType.PER)]),
        ({"I-PER": 5, "B-LOC": 7.1}, [(0, 2, PiiType.PER), (3, 5, PiiType.LOC)]),
        ({"I-PER": 5, "B-PER": 6.9}, [(0, 5, PiiType.PER)]),
        ({"I-PER": 5, "B-PER": 7.1}, [(0, 2, PiiType.PER), (3, 5, PiiType.PER)]),
        # To end it costs nothing.
        ({"I-PER": 5, "O": 5.1}, [(0, 2, PiiType.PER)]),
    ],
)
def test_a_name_is_left_for_a_clear_reason(
    second: dict[str, float], spans: list[tuple[int, int, PiiType]]
) -> None:
    assert labelled("ab cd", "B-PER", second) == spans


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ab\ncd", [(0, 2), (3, 5)]),
        ("ab\tcd", [(0, 2), (3, 5)]),
        ("ab   cd", [(0, 2), (5, 7)]),
        # Two spaces are a slip of the keyboard.
        ("ab  cd", [(0, 6)]),
    ],
)
def test_no_span_crosses_a_line_or_a_gap_between_columns(
    text: str, spans: list[tuple[int, int]]
) -> None:
    assert labelled(text, "B-ORG", "I-ORG") == [(*span, PiiType.ORG) for span in spans]


@pytest.mark.parametrize(
    ("people", "before", "after"),
    [
        # Odds of 9 to 1 and 1 to 9 differ 81 times; even odds become 1 to 81 ** 0.2.
        ({"Ada": 0.9, "Bo": 0.1}, {"Ada": 0.5, "Bo": 0.5}, {"Ada": 0.5, "Bo": 1 / (1 + 81**0.2)}),
        # What two people share counts as the surer one's, and what has no owner as it is.
        ({"Ada": 0.9, "Bo": 0.1}, {"Ada Bo": 0.5, "": 0.5}, {"Ada Bo": 0.5, "": 0.5}),
        ({"Ada": 0.4, "Bo": 0.4}, {"Ada": 0.9, "Bo": 0.2}, {"Ada": 0.9, "Bo": 0.2}),
        ({"Ada": 0.9, "Bo": 0.1}, {"Ada": 0.0, "Bo": 0.0}, {"Ada": 0.0, "Bo": 0.0}),
        ({"Ada": 0.1}, {"Ada": 0.7}, {"Ada": 0.7}),
        ({}, {"": 0.7}, {"": 0.7}),
    ],
)
def test_entities_of_other_people_than_the_query_is_about_get_less_relevance(
    people: dict[str, float], before: dict[str, float], after: dict[str, float]
) -> None:
    names = [
        FoundEntity(name, PiiType.PER, ((0, 1),), (name,), sure) for name, sure in people.items()
    ]
    facts = [
        FoundEntity("x", PiiType.DATETIME, ((1, 2),), tuple(owners.split()), relevance)
        for owners, relevance in before.items()
    ]
    assert [item.relevance for item in lower_for_other_people([*names, *facts])] == pytest.approx(
        [*(0.0 for _ in names), *after.values()]
    )


def test_buckets_of_distances() -> None:
    assert [bucket(gap) for gap in (-100, -64, -63, 0, 1, 64, 65)] == [0, 0, 1, 3, 4, 6, 7]


@given(st.lists(st.tuples(st.integers(0, 820), st.integers(1, 60)), max_size=12))
def test_a_span_is_pooled_in_every_window_that_it_touches(places: list[tuple[int, int]]) -> None:
    spans = {(start, start + length) for start, length in places}
    windows = windows_of(tokenizer(), "ab c " * 165, max_tokens=149)
    states = [np.random.default_rng(n).random((149, 2), np.float32) for n in range(len(windows))]

    found = [
        [(span, place, mean.tolist()) for span, (place, mean) in placed.items()]
        for _, placed in pool_by_window(spans, zip(windows, states, strict=True))
    ]

    assert len(windows) > 2
    assert found == [
        [
            (span, place[0], hidden[window.first :][slice(*place)].mean(axis=0).tolist())
            for span in sorted(spans)
            if (place := subwords_of(window, *span)) is not None
        ]
        for window, hidden in zip(windows, states, strict=True)
    ]
