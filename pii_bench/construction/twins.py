"""Counterfactual twins: the same description under another query.

A `second` query needs other facts, a `paraphrase` the same ones, and a `turned` query asks
for the same categories of the other person. They measure whether a system reads the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.construction.ask import viewpoint
from pii_bench.construction.build import Builder, Built, SampleFault, to_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    needs = original.question.needs
    turned = _other_person(original, needs) if len(original.profiles) > 1 else ()
    if turned is None:
        return None
    asked = {"second": None, "paraphrase": needs, **({"turned": turned} if turned else {})}
    questions = {}
    for kind, wanted in asked.items():
        question = _ask(builder, original, wanted)
        if question is None:
            return None
        questions[kind] = question
    return questions


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


def _ask(builder: Builder, original: Built, wanted: tuple[Needed, ...] | None) -> Question | None:
    """A question that differs from the original's; None where no attempt passes the checks."""
    first = original.question
    for _ in range(_TRIES):
        try:
            if wanted is None:
                question = builder.question(
                    original.draft,
                    original.profiles,
                    builder.draw_count(_SECOND_NEEDS),
                    frozenset(first.needs),
                )
            else:
                asker, people = viewpoint(original.draft, original.profiles, builder.random)
                question = builder.interviewer.ask(
                    first.scenario, wanted, original.profiles, people, asker
                )
        except (SampleFault, LookupError):
            continue
        sample = to_sample("twin", original.draft, original.profiles, question)
        if question.text != first.text and not builder.faults(sample):
            return question
    return None
