"""Further samples to train on: a sentence or two out of a text, since people paste short texts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.systems.encoder.conversations import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pii_bench.datasets.sample import Sample, Subject

_SENTENCES: Final = (1, 1, 2, 3)


def excerpts(samples: Sequence[Sample], count: int, random: Random) -> list[Sample]:
    """Draw excerpts, each of another text while there are enough texts.

    Args:
        samples: with spans.
        count: how many excerpts.
        random: draws.
    """
    drawn = [*samples] * (count // len(samples)) + random.sample(samples, count % len(samples))
    return [excerpt(sample, random) for sample in drawn]


def excerpt(sample: Sample, random: Random) -> Sample:
    """One to three sentences in a row; no entity is cut.

    Returns:
        A sample with the entities that are in the excerpt, and without query where these do not
        hold everything that the query needs.
    """
    text = sample.description
    ends = [0, *sentence_ends(sample), len(text)]
    first = random.randrange(len(ends) - 1)
    start, end = ends[first], ends[min(first + random.choice(_SENTENCES), len(ends) - 1)]
    subjects = [_within(subject, start, end) for subject in sample.subjects]
    held = {(subject.id, entity.text) for subject in subjects for entity in subject.entities}
    whole = all((need.subject, need.text) in held for need in sample.related)
    return replace(
        sample,
        description=text[start:end].rstrip(),
        query=sample.query if whole else None,
        subjects=tuple(subjects),
        related=sample.related if whole else (),
    )


def _within(subject: Subject, start: int, end: int) -> Subject:
    moved = [
        replace(
            entity,
            spans=tuple((s - start, e - start) for s, e in entity.spans if start <= s and e <= end),
        )
        for entity in subject.entities
    ]
    return replace(subject, entities=tuple(entity for entity in moved if entity.spans))
