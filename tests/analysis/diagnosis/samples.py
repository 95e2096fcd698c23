"""Samples of two people, small enough to judge by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.builders import make_sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample

DESCRIPTION = (
    "Ann Lee, 32, is with Acme Tools in Oslo. "
    "Bo Ray, 40, is with Initech in Lima. "
    "Acme Tools sells 7 saws."
)

PEOPLE = {
    "A": [
        ("Ann Lee", "PER", "Full Name"),
        ("32", "DEM", "Age"),
        ("Acme Tools", "ORG", "Company Name"),
        ("Oslo", "LOC", "City/Region"),
    ],
    "B": [
        ("Bo Ray", "PER", "Full Name"),
        ("40", "DEM", "Age"),
        ("Initech", "ORG", "Company Name"),
        ("Lima", "LOC", "City/Region"),
    ],
}

EVERYONE = tuple(
    tuple((text, pii_type) for text, pii_type, _ in entities) for entities in PEOPLE.values()
)
"""What a perfect detector says."""


def couple(
    related: Sequence[tuple[str, str]] = (("A", "Acme Tools"), ("A", "Oslo")),
    *,
    sample_id: str = "s1",
    description: str = DESCRIPTION,
    people: Mapping[str, Sequence[tuple[str, str, str | None]]] = PEOPLE,
    query: str | None = "Is my employer far from where I live?",
    meta: Mapping[str, str] | None = None,
) -> Sample:
    """Ann and Bo; spans are all places of a text. By default Ann's employer and city are needed."""
    return make_sample(
        sample_id,
        description=description,
        query=query,
        subjects=[
            {
                "id": person,
                "entities": [
                    {
                        "text": text,
                        "type": pii_type,
                        "category": category,
                        "spans": [
                            list(m.span()) for m in re.finditer(re.escape(text), description)
                        ],
                    }
                    for text, pii_type, category in entities
                ],
            }
            for person, entities in people.items()
        ],
        related=[{"subject": person, "text": text} for person, text in related],
        meta=dict(meta or {}),
    )
