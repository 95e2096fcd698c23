from __future__ import annotations

import numpy as np
import pytest

from pii_bench.systems.encoder.reader import bucket, decode
from pii_bench.systems.encoder.windows import windows_of
from pii_bench.systems.tagger.labels import LABELS
from pii_bench.taxonomy import PiiType
from tests.systems.encoder.test_windows import tokenizer


def labelled(text: str, *labels: str) -> list[tuple[int, int, PiiType]]:
    """What is decoded of one label for each word of a text."""
    windows = windows_of(tokenizer(), text)
    tags = []
    wanted = iter(labels)
    for window in windows:
        scores = np.zeros((len(window.ids), len(LABELS)), np.float32)
        for place, opens in enumerate(window.opens):
            if opens:
                scores[window.first + place, LABELS.index(next(wanted))] = 1
        tags.append(scores)
    return decode(text, windows, tags)


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


def test_no_span_crosses_a_line() -> None:
    assert labelled("ab\ncd", "B-ORG", "I-ORG") == [(0, 2, PiiType.ORG), (3, 5, PiiType.ORG)]


def test_subwords_have_the_label_of_their_word() -> None:
    assert labelled("abcdef", "B-CODE") == [(0, 6, PiiType.CODE)]


def test_buckets_of_distances() -> None:
    assert [bucket(gap) for gap in (-100, -64, -63, 0, 1, 64, 65)] == [0, 0, 1, 3, 4, 6, 7]
