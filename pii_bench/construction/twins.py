"""Counterfactual twins: the same description under another query.

A `second` query needs other facts, a `paraphrase` the same ones, and a `turned` query asks
for the same categories of the other person. They measure whether a system reads the query.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.ask import people_of
from pii_bench.construction.build import Builder, Built, SampleFault, to_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pii_bench.construction.ask import Needed, Question
    from pii_bench.datasets.sample import Sample

_TRIES: Final = 30
_SECOND_NEEDS: Final = {1: 0.3, 2: 0.7}


def twins(builder: Builder, built: Sequence[Built], count: int) -> Iterator[Sample]:
    """Yield the twins of `count` descriptions, each description's together.

    Args:
        builder: whose grammar asks.
        built: descriptions of single or multi.
        count: how many descriptions get twins.

    Raises:
        RuntimeError: fewer descriptions can have all their twins.
    """
    found = 0
    for original in builder.random.sample(list(built), len(built)):
        questions = _questions(builder, original)
        if questions is None:
            continue
        for kind, question in questions.items():
            yield to_sample(
                f"{original.sample.id}-{kind}",
                original.draft,
                original.profiles,
                question,
                twin_of=original.sample.id,
                twin=kind,
            )
        found += 1
        if found == count:
            return
    raise RuntimeError(f"only {found} of {count} descriptions can have twins")


def _questions(builder: Builder, original: Built) -> dict[str, Question] | None:
    """The question of each kind; None where one of them cannot be had."""
    asked: dict[str, Callable[[], Question]] = {
        "second": lambda: _second(builder, original),
        "paraphrase": lambda: _paraphrase(builder, original),
    }
    if len(original.profiles) > 1:
        turned = _other_person(original, original.question.needs)
        if turned is None:
            return None
        asked["turned"] = lambda: _turned(builder, original, turned)
    questions: dict[str, Question] = {}
    for kind, attempt in asked.items():
        question = _kept(builder, original, attempt)
        if question is None:
            return None
        questions[kind] = question
    return questions


def _second(builder: Builder, original: Built) -> Question:
    """Other facts, and whatever scenario and asker that takes."""
    count = builder.draw_count(_SECOND_NEEDS)
    first = frozenset(original.question.needs)
    return builder.question(original.draft, original.profiles, count, first)


def _paraphrase(builder: Builder, original: Built) -> Question:
    """The same asker and facts, in another frame and other abstractions."""
    first = original.question
    people = people_of(original.draft, original.profiles, first.asker)
    return builder.interviewer.ask(
        first.scenario, first.needs, original.profiles, people, first.asker
    )


def _turned(builder: Builder, original: Built, needs: tuple[Needed, ...]) -> Question:
    """The same asker and words; only the person is the other."""
    people = people_of(original.draft, original.profiles, original.question.asker)
    question = replace(original.question, needs=needs)
    return replace(question, text=builder.interviewer.word(question, people))


def _other_person(original: Built, needs: tuple[Needed, ...]) -> tuple[Needed, ...] | None:
    """The same categories and facets of the other person; None where they are not there."""
    owners = {subject for subject, _ in needs}
    if len(owners) > 1:
        return None
    (other,) = set(original.profiles) - owners
    turned: list[Needed] = []
    for _, fact in needs:
        twin = original.profiles[other].fact(fact.category)
        if twin is None or twin.facet != fact.facet or twin.value == fact.value:
            return None
        turned.append((other, twin))
    return tuple(turned)


def _kept(builder: Builder, original: Built, attempt: Callable[[], Question]) -> Question | None:
    """A question unlike the original's that passes the checks; None where none does."""
    for _ in range(_TRIES):
        try:
            question = attempt()
        except (SampleFault, LookupError):
            continue
        sample = to_sample("twin", original.draft, original.profiles, question)
        if question.text != original.question.text and not builder.faults(sample):
            return question
    return None
