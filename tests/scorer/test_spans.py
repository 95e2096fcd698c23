from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.scorer import PRF, Counts, SemEval, SpanScore, f1_interval, score_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    Spans = Sequence[tuple[int, int, str]]

TEXT: Final = "Ann Lee is 58 years old."
GOLD: Final = [(0, 7, "PER"), (11, 23, "DEM")]
"""The spans of "Ann Lee" and "58 years old"."""

labels = st.sampled_from(["PER", "LOC", "ORG"])
any_spans = st.lists(
    st.builds(
        lambda start, length, label: (start, start + length, label),
        st.integers(0, 30),
        st.integers(1, 12),
        labels,
    ),
    max_size=7,
)


@pytest.mark.parametrize(
    ("predicted", "exact", "overlap", "tokens"),
    [
        (GOLD, Counts(2, 2, 2), Counts(2, 2, 2), Counts(5, 5, 5)),
        # Only the number of the age.
        ([(0, 7, "PER"), (11, 13, "DEM")], Counts(1, 2, 2), Counts(2, 2, 2), Counts(3, 3, 5)),
        # Another label.
        ([(0, 7, "ORG"), (11, 23, "DEM")], Counts(1, 2, 2), Counts(2, 2, 2), Counts(3, 5, 5)),
        # One span over the whole text: seven tokens, including the full stop.
        ([(0, 24, "PER")], Counts(0, 1, 2), Counts(1, 1, 2), Counts(2, 7, 5)),
        # A name in pieces, the first of which ends inside a word.
        ([(0, 2, "PER"), (4, 7, "PER")], Counts(0, 2, 2), Counts(1, 2, 2), Counts(2, 2, 5)),
        # " is " touches both gold spans.
        ([(7, 11, "PER")], Counts(0, 1, 2), Counts(0, 1, 2), Counts(0, 1, 5)),
        ([], Counts(0, 0, 2), Counts(0, 0, 2), Counts(0, 0, 5)),
    ],
)
def test_counts_of_a_document(
    predicted: Spans, exact: Counts, overlap: Counts, tokens: Counts
) -> None:
    score = score_spans(predicted, GOLD, TEXT)

    assert (score.counts, score.overlap, score.tokens) == (exact, overlap, tokens)


# The six cases of Nadeau and Sekine, with their SemEval-2013 outcome in each schema.
SCENARIOS: Final = [
    ([(0, 7, "PER")], "COR COR COR COR"),
    ([(8, 10, "PER")], "SPU SPU SPU SPU"),
    ([], "MIS MIS MIS MIS"),
    ([(0, 7, "ORG")], "INC COR COR INC"),
    ([(0, 3, "PER")], "INC INC PAR COR"),
    ([(0, 3, "ORG")], "INC INC PAR INC"),
]


@pytest.mark.parametrize(("predicted", "outcomes"), SCENARIOS)
def test_semeval_schemas(predicted: Spans, outcomes: str) -> None:
    counts = {
        "COR": SemEval(correct=1),
        "INC": SemEval(incorrect=1),
        "PAR": SemEval(partial=1),
        "MIS": SemEval(missed=1),
        # The gold span is also missed.
        "SPU": SemEval(missed=1, spurious=1),
    }

    score = score_spans(predicted, [(0, 7, "PER")])

    schemas = [score.strict, score.exact, score.partial, score.type]
    assert schemas == [counts[outcome] for outcome in outcomes.split()]


def test_semeval_figures_give_half_for_a_partial_span() -> None:
    score = SemEval(correct=3, partial=1, missed=1, spurious=2)

    assert score.prf == PRF.harmonic(3.5 / 6, 3.5 / 5)
    assert SemEval().prf is None


def test_figures_by_label_micro_and_macro() -> None:
    gold = [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "PER"), (6, 7, "LOC")]
    predicted = [(0, 1, "PER"), (2, 3, "PER"), (6, 7, "ORG")]

    score = score_spans(predicted, gold)

    assert score.labels == {
        "LOC": Counts(0, 0, 1),
        "ORG": Counts(0, 1, 0),
        "PER": Counts(2, 2, 3),
    }
    assert score.micro == PRF(2 / 3, 2 / 4, 4 / 7)
    assert score.macro is not None
    assert score.macro.recall == pytest.approx((0 + 0 + 2 / 3) / 3)
    assert score.macro.f1 == pytest.approx((0 + 0 + 4 / 5) / 3)


def test_figures_are_none_without_any_span() -> None:
    score = score_spans([], [])

    assert score.micro is None
    assert score.macro is None
    assert score.strict.prf is None


def test_scores_add_up_and_a_document_without_text_has_no_token_counts() -> None:
    one = score_spans([(0, 7, "PER")], GOLD, TEXT)
    other = score_spans([(0, 7, "ORG")], GOLD, TEXT)

    total = sum([one, other], SpanScore())

    assert total.labels == {
        "DEM": Counts(0, 0, 2),
        "ORG": Counts(0, 1, 0),
        "PER": Counts(1, 1, 2),
    }
    assert total.strict == SemEval(correct=1, incorrect=1, missed=2)
    assert total.tokens == Counts(2, 4, 10)
    assert (total + score_spans([], GOLD)).tokens is None


def test_repeats_count_once_but_overlapping_gold_spans_separately() -> None:
    score = score_spans([(0, 7, "PER")] * 2, [(0, 7, "PER"), (0, 3, "PER")])

    assert score.counts == Counts(1, 1, 2)
    assert score.overlap == Counts(1, 1, 2)


@pytest.mark.parametrize(
    ("span", "what"),
    [
        ((3, 3, "PER"), r"predicted\[0\] must be \(start, end, label\)"),
        ((-1, 3, "PER"), "must be"),
        ((0, 3), "must be"),
        (("0", "3", "PER"), "must be"),
        ((0, 25, "PER"), "ends at 25, the text at 24"),
    ],
)
def test_an_invalid_span_is_refused(span: tuple[int, int, str], what: str) -> None:
    with pytest.raises(PiiBenchError, match=what):
        score_spans([span], GOLD, TEXT)


@given(st.lists(st.tuples(any_spans, any_spans), min_size=1, max_size=4))
def test_semeval_counts_equal_those_of_nervaluate(documents: list[tuple[Spans, Spans]]) -> None:
    evaluator = pytest.importorskip("nervaluate").Evaluator
    sorted_documents = [(sorted(set(a)), sorted(set(b))) for a, b in documents]
    sides = [
        # The ends of nervaluate are inclusive.
        [[{"start": s, "end": e - 1, "label": label} for s, e, label in side] for side in spans]
        for spans in zip(*sorted_documents, strict=True)
    ]
    expected = evaluator(sides[1], sides[0], ["PER", "LOC", "ORG"], loader="dict").evaluate()

    total = sum((score_spans(a, b) for a, b in documents), SpanScore())

    schemas = {"strict": "strict", "exact": "exact", "partial": "partial", "type": "ent_type"}
    for name, their_name in schemas.items():
        ours, other = getattr(total, name), expected["overall"][their_name]
        keys = ("correct", "incorrect", "partial", "missed", "spurious")
        assert [getattr(ours, key) for key in keys] == [getattr(other, key) for key in keys]
        if ours.prf is not None:
            figures = other.precision, other.recall, other.f1
            assert (ours.prf.precision, ours.prf.recall, ours.prf.f1) == pytest.approx(figures)


def test_an_overlap_of_less_than_a_hundredth_counts_as_in_nervaluate() -> None:
    gold = [(0, 201, "PER")]

    assert score_spans([(199, 210, "PER")], gold).partial == SemEval(missed=1, spurious=1)
    assert score_spans([(198, 210, "PER")], gold).partial == SemEval(partial=1)


@given(any_spans, any_spans)
def test_overlap_is_the_largest_matching(predicted: Spans, gold: Spans) -> None:
    few, many = sorted((sorted(set(predicted))[:5], sorted(set(gold))[:5]), key=len)

    def pairs(order: Spans) -> int:
        return sum(a[0] < b[1] and b[0] < a[1] for a, b in zip(few, order, strict=True))

    largest = max(pairs(order) for order in permutations(many, len(few)))

    assert score_spans(few, many).overlap.matched == largest


@given(any_spans, any_spans)
def test_f1_is_symmetric(predicted: Spans, gold: Spans) -> None:
    one, other = score_spans(predicted, gold), score_spans(gold, predicted)

    assert one.overlap.prf.f1 == other.overlap.prf.f1
    assert one.counts.prf.f1 == other.counts.prf.f1


@given(any_spans, any_spans)
def test_order_changes_nothing_and_exact_never_exceeds_overlap(
    predicted: Spans, gold: Spans
) -> None:
    text = "a b c " * 10

    score = score_spans(predicted, gold, text)

    assert score == score_spans([*reversed(predicted)], [*reversed(gold)], text)
    places = {span[:2] for span in predicted} & {span[:2] for span in gold}
    assert score.overlap.matched >= len(places)
    for schema in (score.strict, score.exact, score.partial, score.type):
        taken = schema.correct + schema.incorrect + schema.partial
        assert taken + schema.spurious == len(set(predicted))
        assert taken + schema.missed == len(set(gold))


def test_the_interval_is_a_bootstrap_of_documents() -> None:
    right, wrong = Counts(1, 1, 1), Counts(0, 1, 1)

    low, high = f1_interval([right] * 80 + [wrong] * 20) or (0.0, 0.0)

    # Two standard errors of a share of 0.8 among 100 are 0.078.
    assert low == pytest.approx(0.722, abs=0.01)
    assert high == pytest.approx(0.878, abs=0.01)
    assert f1_interval([right] * 80 + [wrong] * 20) == (low, high)
    assert f1_interval([right] * 9) == (1.0, 1.0)


def test_one_document_or_only_empty_ones_have_no_interval() -> None:
    assert f1_interval([Counts(1, 1, 1)]) is None
    assert f1_interval([Counts(), Counts()]) is None
