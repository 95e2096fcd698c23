from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.check.sets import CANARY, is_derived, origins, set_problems, source_problems
from pii_bench.datasets.sample import Related
from tests.datasets.check.samples import ann, build

if TYPE_CHECKING:
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


def made(source: Sample, **meta: Any) -> Sample:
    return replace(source, id="made-1", meta=meta)


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
    return replace(made(source, twin_of=source.id, twin=kind), query=query, related=related)


def found(sample: Sample) -> list[tuple[str, str]]:
    return [(problem.rule, problem.reason) for problem in source_problems(sample, SOURCES)]


def test_samples_that_follow_from_their_sources() -> None:
    for sample in (
        PAIR,
        made(PAIR, hard_of="multi-1"),
        conversation(),
        twin("second", "Where do I live?", ("A", "Hull")),
        twin("paraphrase", "Is my age great?", ("A", "32")),
        twin("turned", "Is he old?", ("B", "40")),
        twin("one", "Do I age well?", ("A", "32")),
        twin("other", "Does he age well?", ("B", "40")),
    ):
        assert found(sample) == []


@pytest.mark.parametrize(
    "meta", [{"hard_of": "multi-9"}, {"twin_of": "multi-9"}, {"joined": ["multi-1", "multi-9"]}]
)
def test_a_source_is_known(meta: dict[str, Any]) -> None:
    assert found(made(PAIR, **meta)) == [
        ("source-missing", "multi-9 is neither in the files nor next to them")
    ]


def version(**changes: Any) -> Sample:
    """The same in small letters."""
    sample = build(
        "ann lee, 32, and bo roe, 40, of hull.",
        {"ann lee": "Full Name", "32": "Age", "hull": "City/Region"},
        {"bo roe": "Full Name", "40": "Age"},
        related=[("A", "32")],
        sample_id="multi-1.lower-case",
        perturbation={"kind": "lower-case", "dataset": "multi", "source": "multi-1"},
    )
    return replace(sample, **changes)


def test_a_version_has_the_labels_and_needs_of_its_source() -> None:
    fault = ("perturbation-source", "subjects, labels or what is needed differ from multi-1")

    assert found(version()) == []
    assert found(version(related=(Related("A", "hull"),))) == [fault]
    assert found(version(subjects=version().subjects[:1])) == [fault]


def test_the_source_of_a_version_may_be_elsewhere() -> None:
    mark = {"kind": "typos", "dataset": "mine", "source": "mine-1"}

    assert found(version(meta={"perturbation": mark})) == []


def test_a_version_of_a_twin_is_kin_of_both() -> None:
    mark = {"kind": "typos", "dataset": "twins", "source": "twin-1"}
    sample = made(PAIR, twin="second", twin_of="multi-1", perturbation=mark)

    assert origins(sample) == {"twin-1", "multi-1"}
    assert is_derived(sample)


def test_a_file_of_versions_is_no_set_of_ours() -> None:
    assert list(set_problems("multi", [version()])) == []
    assert list(set_problems("single", [version()])) == []


def test_a_sample_has_several_versions_of_different_kinds() -> None:
    mark = {"kind": "typos", "dataset": "multi", "source": "multi-1"}
    other = version(id="multi-1.typos", meta={"perturbation": mark})

    assert list(set_problems("mine", [version(), other])) == []
    assert [each.rule for each in set_problems("mine", [other, replace(other, id="2")])] == [
        "source-twice",
        "source-twice",
    ]


@pytest.mark.parametrize(
    ("part", "value"),
    [("description", "Ann."), ("query", "Why?"), ("subjects", PAIR.subjects[:1]), ("related", ())],
)
def test_a_hard_sample_is_its_source(part: str, value: object) -> None:
    sample = replace(made(PAIR, hard_of="multi-1"), **{part: value})  # type: ignore[arg-type]

    assert found(sample) == [("hard-source", f"{part} differs from multi-1")]


def test_a_conversation_joins_five() -> None:
    four = [source.id for source in FIVE[:4]]

    assert ("distract-source", "meta.joined names 4 samples, not 5 different ones") in found(
        conversation(meta={"joined": four})
    )
    assert ("distract-source", "meta.joined names 5 samples, not 5 different ones") in found(
        conversation(meta={"joined": [*four, four[0]]})
    )


def test_a_conversation_has_the_people_of_its_texts() -> None:
    reason = "subjects differ from those of single-0, single-1, single-2, single-3, single-4"

    assert found(conversation(subjects=conversation().subjects[1:])) == [
        ("distract-source", reason)
    ]


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (
            twin("second", "How old am I?", ("A", "32")),
            "needs what multi-1 needs",
        ),
        (
            twin("paraphrase", "Where do I live?", ("A", "Hull")),
            "needs something else than multi-1",
        ),
        (
            twin("turned", "How old am I?", ("A", "32")),
            "asks about the person that multi-1 asks about",
        ),
        (
            twin("turned", "Who is he?", ("B", "Bo Roe")),
            "asks for other things than multi-1",
        ),
        (
            twin("third", "Is he old?", ("B", "40")),
            "meta.twin is none of second, paraphrase, turned, one, other",
        ),
        (
            twin("one", "Are we old?", ("A", "32"), ("B", "40")),
            "asks about more than one person",
        ),
        (twin("paraphrase", "Am I old?", ("A", "32")), "the query is that of multi-1"),
    ],
)
def test_a_twin_is_of_its_kind(sample: Sample, reason: str) -> None:
    assert found(sample) == [("twin-source", reason)]


def test_the_first_sample_has_the_canary() -> None:
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
        (
            "single",
            build("32", {"32": "Age"}, canary=CANARY),
            "subject A has 0 names, not 1",
        ),
        ("hard", ann(canary=CANARY), "only meta.hard_of may say what it was made from"),
        (
            "single",
            ann(canary=CANARY, hard_of="s2"),
            "nothing in meta may say what it was made from",
        ),
    ],
)
def test_a_sample_is_fit_for_its_set(name: str, sample: Sample, reason: str) -> None:
    (problem,) = set_problems(name, [sample])

    assert (problem.rule, problem.reason) == ("set-shape", reason)


def test_a_sample_is_chosen_once() -> None:
    first, again = made(PAIR, hard_of="multi-1"), made(PAIR, hard_of="multi-1")

    found = [(problem.rule, problem.reason) for problem in set_problems("other", [first, again])]
    assert found == [("source-twice", "another sample is made of multi-1 as well")] * 2


def test_a_description_has_a_twin_of_each_kind() -> None:
    kinds = [made(PAIR, twin_of="multi-1", twin=kind) for kind in ("second", "paraphrase")]

    assert list(set_problems("other", kinds)) == []
