"""Whether a query and its related entities fit each other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.names import name_parts
from pii_bench.datasets.check.problem import Problem
from pii_bench.datasets.check.text import occurrences
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.datasets.sample import Sample

_ONE: Final = range(1, 4)
# A conversation is asked about three of the descriptions that it joins.
_JOINED: Final = range(3, 10)


def query_problems(sample: Sample) -> Iterator[Problem]:
    """What is wrong with the query and the related entities of a sample.

    Rules: `related-outside`, a related entity is a gold entity; `related-person`, it is no name;
    `related-repeated`, nothing is in it twice; `related-count`, it has one to three entities,
    three to nine in a conversation (`meta.joined`), any number where `meta.reasons` says why a
    sample is difficult; `query-value`, the query holds no
    entity's text, in whatever case; `query-name`, it holds no part of a person's name;
    `query-empty`, there is one. A sample whose query is null passes.
    """
    if sample.query is None:
        return
    if not sample.query.strip():
        yield Problem(sample.id, "query-empty", "the query has no text")
    yield from _related_problems(sample)
    yield from _wording_problems(sample, sample.query)


def _related_problems(sample: Sample) -> Iterator[Problem]:
    types: dict[tuple[str, str], set[str]] = {}
    for subject in sample.subjects:
        for entity in subject.entities:
            types.setdefault((subject.id, entity.text), set()).add(entity.type)
    needed = Counter((related.subject, related.text) for related in sample.related)
    for (subject_id, text), times in needed.items():
        found = types.get((subject_id, text))
        if found is None:
            reason = f"{text!r} is no entity of subject {subject_id}"
            yield Problem(sample.id, "related-outside", reason)
        elif found == {PiiType.PER}:
            yield Problem(sample.id, "related-person", f"{text!r} is a person's name")
        if times > 1:
            reason = f"{text!r} of subject {subject_id} is listed {times} times"
            yield Problem(sample.id, "related-repeated", reason)
    allowed = _JOINED if "joined" in sample.meta else _ONE
    # In `frontier` some queries need nothing, and some nearly everything.
    if "reasons" not in sample.meta and len(needed) not in allowed:
        reason = f"{len(needed)} entities are needed, not {allowed[0]} to {allowed[-1]}"
        yield Problem(sample.id, "related-count", reason)


def _wording_problems(sample: Sample, query: str) -> Iterator[Problem]:
    texts = dict.fromkeys(entity.text for entity in sample.entities)
    folded = query.casefold()
    quoted = {text: True for text in texts if any(occurrences(text.casefold(), folded))}
    for text in quoted:
        yield Problem(sample.id, "query-value", f"the query holds {text!r}")
    for part in name_parts(sample):
        # In its own case: "will" and "grace" are names only with a capital.
        if part not in quoted and any(occurrences(part, query)):
            yield Problem(sample.id, "query-name", f"the query holds {part!r}, of a name")
