from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.check.sets import (
    CANARY,
    NEAR,
    duplicate_problems,
    is_derived,
    near_earlier,
    origins,
    set_problems,
    source_problems,
)
from pii_bench.datasets.sample import Related
from tests.datasets.check.samples import ann, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.datasets.sample import Sample

FIVE = tuple(
    build(
        f"{name} Lee wrote.\n\nThe {thing} is here.",
        {f"{name} Lee": "Full Name", thing: "Occupation"},
        related=[("A", thing)],
        sample_id=f"single-{number}",
    )
    for number, (name, thing) in enumerate(
        [("Ann", "potter"), ("Bo", "baker"), ("Cy", "diver"), ("Di", "tailor"), ("Ed", "usher")]
    )
)
PAIR = build(
    "Ann Lee, 32, and Bo Roe, 40, of Hull.",
    {"Ann Lee": "Full Name", "32": "Age", "Hull": "City/Region"},
    {"Bo Roe": "Full Name", "40": "Age"},
    query="Am I old?",
    related=[("A", "32")],
    sample_id="multi-1",
)
SOURCES = {sample.id: sample for sample in (*FIVE, PAIR)}


def derived(source: Sample, **meta: Any) -> Sample:
    return replace(source, id="derived-1", meta=meta)


def conversation(**changes: Any) -> Sample:
    lines = [block for source in FIVE for block in source.description.split("\n\n")]
    people = [{e.text: e.category or "" for e in source.entities} for source in FIVE]
    text = "\n".join(f"[PER_1]: Well. {line}" for line in lines)
    return replace(
        build(text, *people, sample_id="distract-1", joined=[source.id for source in FIVE]),
        **changes,
    )


def twin(kind: str, query: str, *needs: tuple[str, str], source: Sample = PAIR) -> Sample:
    related = tuple(Related(*need) for need in needs)
    return replace(derived(source, twin_of=source.id, twin=kind), query=query, related=related)


def problems(sample: Sample) -> list[tuple[str, str]]:
    return [(problem.rule, problem.reason) for problem in source_problems(sample, SOURCES)]


def test_samples_that_match_their_sources_pass() -> None:
    for sample in (
        PAIR,
        derived(PAIR, hard_of="multi-1"),
        conversation(),
        twin("second", "Where do I live?", ("A", "Hull")),
        twin("paraphrase", "Is my age great?", ("A", "32")),
        twin("turned", "Is he old?", ("B", "40")),
        twin("one", "Do I age well?", ("A", "32")),
        twin("other", "Does he age well?", ("B", "40")),
        twin("other-again", "Is he past his prime?", ("B", "40")),
        twin("other-third", "Is he of age?", ("B", "40")),
    ):
        assert problems(sample) == []


@pytest.mark.parametrize(
    "meta", [{"hard_of": "multi-9"}, {"twin_of": "multi-9"}, {"joined": ["multi-1", "multi-9"]}]
)
def test_an_unknown_source_is_a_problem(meta: dict[str, Any]) -> None:
    assert problems(derived(PAIR, **meta)) == [
        ("source-missing", "multi-9 is neither in the files nor next to them")
    ]


def perturbed(**changes: Any) -> Sample:
    """Return PAIR in lower case."""
    sample = build(
        "ann lee, 32, and bo roe, 40, of hull.",
        {"ann lee": "Full Name", "32": "Age", "hull": "City/Region"},
        {"bo roe": "Full Name", "40": "Age"},
        related=[("A", "32")],
        sample_id="multi-1.lower-case",
        perturbation={"kind": "lower-case", "dataset": "multi", "source": "multi-1"},
    )
    return replace(sample, **changes)


def test_a_perturbed_sample_has_the_labels_and_needs_of_its_source() -> None:
    fault = ("perturbation-source", "subjects, labels or what is needed differ from multi-1")

    unknown = {"kind": "typos", "dataset": "mine", "source": "mine-1"}

    assert problems(perturbed()) == []
    assert problems(perturbed(meta={"perturbation": unknown})) == []
    assert problems(perturbed(related=(Related("A", "hull"),))) == [fault]
    assert problems(perturbed(subjects=perturbed().subjects[:1])) == [fault]


def test_a_perturbed_twin_derives_from_both() -> None:
    mark = {"kind": "typos", "dataset": "twins", "source": "twin-1"}
    sample = derived(PAIR, twin="second", twin_of="multi-1", perturbation=mark)

    assert origins(sample) == {"twin-1", "multi-1"}
    assert is_derived(sample)


def test_a_sample_may_be_perturbed_once_by_each_kind() -> None:
    mark = {"kind": "typos", "dataset": "multi", "source": "multi-1"}
    other = perturbed(id="multi-1.typos", meta={"perturbation": mark})

    assert list(set_problems("mine", [perturbed(), other])) == []
    # The rules of our sets do not apply to perturbed ones.
    assert list(set_problems("single", [perturbed()])) == []
    assert [problem.rule for problem in set_problems("mine", [other, replace(other, id="2")])] == [
        "source-twice",
        "source-twice",
    ]


@pytest.mark.parametrize(
    ("part", "value"),
    [("description", "Ann."), ("query", "Why?"), ("subjects", PAIR.subjects[:1]), ("related", ())],
)
def test_a_hard_sample_that_differs_from_its_source_is_a_problem(part: str, value: object) -> None:
    sample = replace(derived(PAIR, hard_of="multi-1"), **{part: value})  # type: ignore[arg-type]

    assert problems(sample) == [("hard-source", f"{part} differs from multi-1")]


def test_a_conversation_has_five_sources_and_their_subjects() -> None:
    four = [source.id for source in FIVE[:4]]
    first, *others = conversation().subjects
    # A value may begin a sentence.
    capital = tuple(replace(entity, text=entity.text.capitalize()) for entity in first.entities)

    for joined, number in ((four, 4), ([*four, four[0]], 5)):
        reason = f"meta.joined names {number} samples, not 5 different ones"
        assert ("distract-source", reason) in problems(conversation(meta={"joined": joined}))
    assert problems(conversation(subjects=(replace(first, entities=capital), *others))) == []
    reason = "subjects differ from those of single-0, single-1, single-2, single-3, single-4"
    assert problems(conversation(subjects=tuple(others))) == [("distract-source", reason)]


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (twin("second", "How old am I?", ("A", "32")), "needs what multi-1 needs"),
        (
            twin("paraphrase", "Where do I live?", ("A", "Hull")),
            "needs something else than multi-1",
        ),
        (
            twin("turned", "How old am I?", ("A", "32")),
            "asks about the person that multi-1 asks about",
        ),
        (twin("turned", "Who is he?", ("B", "Bo Roe")), "asks for other things than multi-1"),
        (
            twin("other-fourth", "Is he old?", ("B", "40")),
            "meta.twin is none of second, paraphrase, turned, one, other",
        ),
        (
            twin("one", "Are we old?", ("A", "32"), ("B", "40")),
            "asks about more than one person",
        ),
        (twin("paraphrase", "Am I old?", ("A", "32")), "the query is that of multi-1"),
    ],
)
def test_a_twin_that_does_not_match_its_kind_is_a_problem(sample: Sample, reason: str) -> None:
    assert problems(sample) == [("twin-source", reason)]


def test_a_missing_canary_is_a_problem() -> None:
    sample = ann()

    (problem,) = set_problems("single", [sample])
    assert (problem.sample_id, problem.rule) == ("s1", "canary")
    assert list(set_problems("single", [ann(canary=CANARY), sample])) == []
    assert list(set_problems("theirs", [sample])) == []


@pytest.mark.parametrize(
    ("name", "sample", "reason"),
    [
        ("multi", ann(canary=CANARY), "1 subjects in a sample of multi"),
        (
            "single",
            build("Ann Lee, or Moss.", {"Ann Lee": "Full Name", "Moss": "Nickname"}, canary=CANARY),
            "subject A has 2 names, not 1",
        ),
        ("single", build("32", {"32": "Age"}, canary=CANARY), "subject A has 0 names, not 1"),
        ("hard", ann(canary=CANARY), "only meta.hard_of may say what it was made from"),
        (
            "single",
            ann(canary=CANARY, hard_of="s2"),
            "nothing in meta may say what it was made from",
        ),
    ],
)
def test_a_sample_that_does_not_fit_its_set_is_a_problem(
    name: str, sample: Sample, reason: str
) -> None:
    (problem,) = set_problems(name, [sample])

    assert (problem.rule, problem.reason) == ("set-shape", reason)


def test_a_source_is_used_once_but_may_have_a_twin_of_each_kind() -> None:
    twins = [derived(PAIR, twin_of="multi-1", twin=kind) for kind in ("second", "paraphrase")]
    hard = [derived(PAIR, hard_of="multi-1")] * 2
    reason = "another sample is made of multi-1 as well"

    assert list(set_problems("other", twins)) == []
    assert [(problem.rule, problem.reason) for problem in set_problems("other", hard)] == [
        ("source-twice", reason)
    ] * 2


def reported(*files: Sequence[Sample]) -> list[tuple[int, str, str]]:
    return [(file, p.sample_id, p.rule) for file, p in duplicate_problems(files)]


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[n : n + 5]) for n in range(len(words) - 4)}


def test_equal_descriptions_are_reported_within_and_across_files() -> None:
    first, second, third = (build("One and two.", sample_id=name) for name in "abc")

    assert reported([first, second], [third]) == [(0, "b", "duplicate"), (1, "c", "duplicate")]
    # Equal ids in two files do not excuse duplicates.
    assert reported([first], [replace(first)]) == [(1, "a", "duplicate")]


def test_a_set_may_have_several_queries_about_one_description() -> None:
    one = build("One and two.", sample_id="a", query="How old am I?")
    two = build("One and two.", sample_id="b", query="Where do I live?")
    again = build("One and two.", sample_id="c", query="Where do I live?")

    assert reported([one, two]) == []
    assert reported([one, two, again]) == [(0, "c", "duplicate")]
    assert reported([one], [two]) == [(1, "b", "duplicate")]


@pytest.mark.parametrize(
    ("texts", "near"),
    [
        # Each has four 5-grams; the second shares three with the first, the third two with each.
        (["a b c d e f g h", "a b c d e f g x", "a b c d e f x y"], {1: {0: 0.75}}),
        # Overlap is relative to the shorter text.
        (["a b c d e f g h i j k l m", "a b c d e"], {1: {0: 1.0}}),
        # The last text is as near to the first as to the second.
        (
            ["a b c d e f g h", "p q r s t u v w", "a b c d e f g p q r s t u v"],
            {2: {0: 0.75, 1: 0.75}},
        ),
        (["One, two: three four. Five!", "one two three FOUR five"], {1: {0: 1.0}}),
        (["a b c d", "a b c d"], {}),
        ([], {}),
    ],
)
def test_texts_are_near_if_they_share_more_than_half_of_their_5_grams(
    texts: list[str], near: dict[int, dict[int, float]]
) -> None:
    assert dict(near_earlier(texts)) == near


def test_texts_are_compared_without_their_values() -> None:
    def about(name: str, job: str, sample_id: str) -> Sample:
        text = f"{name} has worked here as a {job} since spring"
        return build(text, {name: "Full Name", job: "Occupation"}, sample_id=sample_id)

    ((file, problem),) = duplicate_problems(
        [[about("Ann Lee", "potter", "a")], [about("Bo Roe", "usher", "b")]]
    )
    assert (file, problem.sample_id, problem.rule) == (1, "b", "near-duplicate")
    assert problem.reason == "1.00 of its word 5-grams are those of a"


def test_samples_derived_from_one_another_may_be_similar() -> None:
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


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), max_size=8))
def test_the_search_finds_all_texts_near_to_an_earlier_one(texts: list[str]) -> None:
    sets = [grams(text) for text in texts]
    near = {
        (left, right)
        for right in range(len(texts))
        for left in range(right)
        if sets[left]
        and sets[right]
        and len(sets[left] & sets[right]) / min(len(sets[left]), len(sets[right])) > NEAR
    }

    assert {(left, right) for right, lefts in near_earlier(texts) for left in lefts} == near


def test_a_5_gram_of_many_texts_counts_only_with_the_first_of_them() -> None:
    shared = "all calls are recorded for training"  # two 5-grams
    texts = [f"{shared} {n} a{n} b{n} c{n}" for n in range(1001)]
    copies = [texts[0] + " x", texts[1000] + " x"]

    # Each of the texts has six 5-grams, of which two are in all of them.
    assert dict(near_earlier([*texts, *copies])) == {1001: {0: 6 / 6}, 1002: {1000: 4 / 6}}
