from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.scorer.locate import DetectedSpan
from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.labels import LABELS, gold_spans, labels_of, may_follow, spans_of
from pii_bench.taxonomy import PiiType
from tests.builders import make_sample

TEXT = "Ann Lee is 32, from Oslo."


def numbers(*labels: str) -> list[int]:
    return [LABELS.index(label) for label in labels]


def test_there_is_a_b_and_an_i_of_each_type() -> None:
    assert LABELS[:3] == ("O", "B-PER", "I-PER")
    assert len(LABELS) == len(set(LABELS)) == 15


def test_every_token_of_a_span_is_labelled() -> None:
    spans = [DetectedSpan(0, 7, PiiType.PER), DetectedSpan(11, 13, PiiType.DEM)]

    labels = labels_of(tokenize(TEXT), spans)

    assert [LABELS[label] for label in labels] == (
        ["B-PER", "I-PER", "O", "B-DEM", "O", "O", "O", "O"]
    )


def test_a_span_that_ends_inside_a_token_takes_all_of_it() -> None:
    assert labels_of(tokenize("Leeds"), [DetectedSpan(0, 3, PiiType.PER)]) == numbers("B-PER")


def test_spans_that_touch_stay_apart() -> None:
    spans = [DetectedSpan(0, 3, PiiType.PER), DetectedSpan(4, 7, PiiType.PER)]

    assert spans_of("Ann Lee", tokenize("Ann Lee"), numbers("B-PER", "B-PER")) == spans


def test_an_inside_without_its_beginning_begins_a_span() -> None:
    text = "Ann Lee Oslo"

    assert spans_of(text, tokenize(text), numbers("I-PER", "I-PER", "I-LOC")) == [
        DetectedSpan(0, 7, PiiType.PER),
        DetectedSpan(8, 12, PiiType.LOC),
    ]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [("“Oslo”,", 1, 5), ("Oslo —", 0, 4), ("$5,400", 0, 6), ("5'11\"", 0, 5), ("AB-", 0, 3)],
)
def test_only_punctuation_that_is_never_part_of_a_value_is_trimmed(
    text: str, start: int, end: int
) -> None:
    tokens = tokenize(text)
    labels = numbers("B-LOC", *["I-LOC"] * (len(tokens) - 1))

    assert spans_of(text, tokens, labels) == [DetectedSpan(start, end, PiiType.LOC)]


def test_a_span_of_nothing_but_punctuation_vanishes() -> None:
    assert spans_of("a , b", tokenize("a , b"), numbers("O", "B-LOC", "O")) == []


def test_an_inside_follows_only_its_own_type() -> None:
    inside, begin_of_other = LABELS.index("I-LOC"), LABELS.index("B-ORG")

    allowed = {LABELS[before] for before in range(len(LABELS)) if may_follow(before, inside)}
    assert allowed == {"B-LOC", "I-LOC"}
    assert all(may_follow(before, begin_of_other) for before in range(len(LABELS)))


def test_gold_spans_come_in_order_and_without_overlap() -> None:
    entities = [
        {"text": "Lee", "type": "LOC", "spans": [[4, 7]]},
        {"text": "Ann Lee", "type": "PER", "spans": [[0, 7], [12, 19]]},
    ]
    subjects = [{"id": "A", "entities": entities}]
    sample = make_sample(description="Ann Lee met Ann Lee.", subjects=subjects, related=[])

    assert gold_spans(sample) == [
        DetectedSpan(0, 7, PiiType.PER),
        DetectedSpan(12, 19, PiiType.PER),
    ]


@given(st.data())
def test_labels_give_their_spans_back(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.text("ab1$@", min_size=1, max_size=4), min_size=1, max_size=8))
    text = " ".join(words)
    starts = [sum(map(len, words[:place])) + place for place in range(len(words))]
    chosen = data.draw(
        st.lists(st.none() | st.sampled_from(PiiType), min_size=len(words), max_size=len(words))
    )
    spans = [
        DetectedSpan(start, start + len(word), pii_type)
        for start, word, pii_type in zip(starts, words, chosen, strict=True)
        if pii_type is not None
    ]
    tokens = tokenize(text)

    assert spans_of(text, tokens, labels_of(tokens, spans)) == spans
