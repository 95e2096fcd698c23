"""Builders of samples for tests of the checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.taxonomy import TYPE_OF_CATEGORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pii_bench.datasets.check.text import Problem

Facts = dict[str, str]
"""Category of each entity by its text."""


def build(
    description: str,
    *people: Mapping[str, str],
    query: str | None = "What should I do?",
    related: Sequence[tuple[str, str]] = (),
    sample_id: str = "s1",
    **meta: Any,
) -> Sample:
    """Return a sample whose entities are annotated at all occurrences of their text."""
    return Sample(
        id=sample_id,
        description=description,
        query=query,
        subjects=tuple(
            Subject(name, tuple(entity(description, *fact) for fact in facts.items()))
            for name, facts in zip("ABCDEFGHIJ", people, strict=False)
        ),
        related=tuple(Related(*need) for need in related),
        meta=meta,
    )


def entity(description: str, text: str, category: str) -> Entity:
    places = tuple(match.span() for match in re.finditer(re.escape(text), description))
    return Entity(text, TYPE_OF_CATEGORY[category], category, places)


def rules(check: Callable[[Sample], Iterator[Problem]], sample: Sample) -> list[str]:
    return [problem.rule for problem in check(sample)]


ANN: Facts = {"Ann Lee": "Full Name", "32": "Age", "potter": "Occupation"}
ANN_TEXT = "Ann Lee is 32 and works as a potter."


def ann(**changes: Any) -> Sample:
    """Return a sample without faults."""
    return build(ANN_TEXT, ANN, **({"related": [("A", "potter")]} | changes))
