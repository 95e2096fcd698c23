from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.check.duplicates import NEAR, Effort, duplicate_problems, near_earlier
from tests.datasets.check.samples import build, grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample


def reported(*files: Sequence[Sample]) -> list[tuple[int, str, str]]:
    return [(file, p.sample_id, p.rule) for file, p in duplicate_problems(files)]


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[n : n + 5]) for n in range(len(words) - 4)}


def test_equal_descriptions_within_and_across_files() -> None:
    first, second, third = (build("One and two.", sample_id=name) for name in "abc")

    assert reported([first, second], [third]) == [(0, "b", "duplicate"), (1, "c", "duplicate")]


def test_a_set_may_ask_several_things_of_one_description() -> None:
    one = build("One and two.", sample_id="a", query="How old am I?")
    two = build("One and two.", sample_id="b", query="Where do I live?")
    again = build("One and two.", sample_id="c", query="Where do I live?")

    assert reported([one, two]) == []
    assert reported([one, two, again]) == [(0, "c", "duplicate")]
    assert reported([one], [two]) == [(1, "b", "duplicate")]


def test_texts_are_near_with_more_than_half_of_their_5_grams_in_common() -> None:
    # Each has four 5-grams; the second shares three of the first, the third two of either.
    eight, three, two = "a b c d e f g h", "a b c d e f g x", "a b c d e f x y"

    assert list(near_earlier([eight, three, two])) == [(0, 1, 0.75)]


def test_the_shorter_text_decides() -> None:
    assert list(near_earlier(["a b c d e f g h i j k l m", "a b c d e"])) == [(0, 1, 1.0)]


def test_short_texts_are_near_to_nothing() -> None:
    assert list(near_earlier(["a b c d", "a b c d"])) == []
    assert list(near_earlier([])) == []


def test_case_and_punctuation_do_not_count() -> None:
    assert list(near_earlier(["One, two: three four. Five!", "one two three FOUR five"])) == [
        (0, 1, 1.0)
    ]


def test_values_are_blanked_before_texts_are_compared() -> None:
    def about(name: str, job: str, sample_id: str) -> Sample:
        text = f"{name} has worked here as a {job} since spring"
        return build(text, {name: "Full Name", job: "Occupation"}, sample_id=sample_id)

    (found,) = duplicate_problems(
        [[about("Ann Lee", "potter", "a")], [about("Bo Roe", "usher", "b")]]
    )
    assert found[0] == 1
    assert found[1].rule == "near-duplicate"
    assert found[1].sample_id == "b"
    assert found[1].reason == "1.00 of its word 5-grams are those of a"


def test_samples_made_from_one_another_are_expected_to_be_alike() -> None:
    text = "the tide gauge drifted and nobody caught it until the port did"
    source = build(text, sample_id="single-1")
    other = build(text, sample_id="single-2")
    hard = build(text, sample_id="hard-1", hard_of="single-1")
    twin = build(text, sample_id="twin-1", twin_of="single-1")
    joined = build(f"so {text}, then", sample_id="distract-1", joined=["single-1"])

    assert reported([source], [hard], [twin], [joined]) == []
    assert reported([source, other]) == [(0, "single-2", "duplicate")]
    assert reported([other], [hard]) == [(1, "hard-1", "duplicate")]
    assert reported([other], [joined]) == [(1, "distract-1", "near-duplicate")]


def test_one_id_in_two_files_makes_no_kin() -> None:
    assert reported([build("One.", sample_id="1")], [build("One.", sample_id="1")]) == [
        (1, "1", "duplicate")
    ]


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), max_size=8))
def test_texts_near_to_an_earlier_one_are_those_of_the_definition(texts: list[str]) -> None:
    sets = [grams(text) for text in texts]
    near = {
        (left, right)
        for right in range(len(texts))
        for left in range(right)
        if sets[left]
        and sets[right]
        and len(sets[left] & sets[right]) / min(len(sets[left]), len(sets[right])) > NEAR
    }
    passing = {pair for pair in near if sum(pair) % 3 == 0}

    found = list(near_earlier(texts))
    others = list(near_earlier(texts, lambda left, right: (left, right) in passing))

    assert {(left, right) for left, right, _ in found} <= near
    assert [right for _, right, _ in found] == sorted({right for _, right in near})
    assert {(left, right) for left, right, _ in others} <= near - passing
    assert [right for _, right, _ in others] == sorted({right for _, right in near - passing})


def test_of_many_that_are_alike_each_is_told_once() -> None:
    samples = [
        build(f"the tide gauge {n} drifted and nobody caught it at the old port", sample_id=str(n))
        for n in range(3000)
    ]

    found = list(duplicate_problems([samples]))

    assert [problem.sample_id for _, problem in found] == [str(n) for n in range(1, 3000)]
    assert {problem.reason for _, problem in found} == {"0.56 of its word 5-grams are those of 0"}


def test_a_bound_on_the_search_is_told_where_it_was_reached() -> None:
    enough, little = Effort(), Effort(most=0)

    assert list(near_earlier(grid(12), effort=enough)) == []
    assert list(near_earlier(grid(12), effort=little)) == []

    assert (enough.texts, enough.cut_short) == (144, 0)
    assert little.texts == 144
    assert 0 < little.cut_short < 144
    assert 0 < little.spent < enough.spent


def test_at_the_bound_those_with_the_rarest_5_grams_are_compared_first() -> None:
    texts = grid(12)
    again = f"{texts[0]} once more"

    assert [pair[:2] for pair in near_earlier([*texts, again], effort=Effort(most=0))] == [(0, 144)]


def test_few_texts_are_all_compared_however_little_is_allowed() -> None:
    texts = ["a b c d e f g h", "a b c d e f g x"]

    assert list(near_earlier(texts, effort=Effort(most=0))) == [(0, 1, 0.75)]


@given(
    st.lists(st.lists(st.sampled_from("ab"), max_size=12).map(" ".join), max_size=60),
    st.integers(0, 1000),
)
def test_what_a_bounded_search_finds_is_near_and_all_where_it_was_not_cut_short(
    texts: list[str], most: int
) -> None:
    effort = Effort(most)

    found = {right for _, right, _ in near_earlier(texts, effort=effort)}
    unbounded = {right for _, right, _ in near_earlier(texts)}

    assert found <= unbounded
    assert len(unbounded - found) <= effort.cut_short
