"""Further samples to train on: several texts as the turns of one conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import Related

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pii_bench.datasets.sample import Sample, Subject

_TEXTS: Final = (2, 3, 4)
_MOST_ASKED: Final = 3
_CHUNKS: Final = (1, 2, 3)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def conversations(samples: Sequence[Sample], count: int, random: Random) -> list[Sample]:
    """Draw conversations that are asked about one to three of their texts.

    Args:
        samples: with spans and queries, at least two.
        count: how many conversations.
        random: draws.
    """
    return [
        conversation(random.sample(samples, min(random.choice(_TEXTS), len(samples))), random)
        for _ in range(count)
    ]


def conversation(samples: Sequence[Sample], random: Random) -> Sample:
    """Join texts: each is cut between sentences, and the pieces become turns in random order.

    Returns:
        A sample whose subjects are those of all texts, and whose query is that of one to three of
        them; it needs what these need.
    """
    turns = [_Turn(place, *cut) for place, s in enumerate(samples) for cut in _cuts(s, random)]
    order = [turn.source for turn in turns]
    random.shuffle(order)
    left = {place: [t for t in turns if t.source == place] for place in range(len(samples))}
    text = ""
    moved: dict[int, list[tuple[_Turn, int]]] = {place: [] for place in left}
    for source in order:
        turn = left[source].pop(0)
        text += f"[PER_{source + 1}]: "
        moved[source].append((turn, len(text) - turn.start))
        text += samples[source].description[turn.start : turn.end].rstrip() + "\n"
    asked = random.sample(range(len(samples)), min(random.randint(1, _MOST_ASKED), len(samples)))
    subjects = [
        _moved(subject, f"{place}{subject.id}", moved[place])
        for place, sample in enumerate(samples)
        for subject in sample.subjects
    ]
    return replace(
        samples[0],
        description=text,
        query=" ".join(samples[place].query or "" for place in asked),
        subjects=tuple(subjects),
        related=tuple(
            Related(f"{place}{need.subject}", need.text)
            for place in asked
            for need in samples[place].related
        ),
    )


@dataclass(frozen=True, slots=True)
class _Turn:
    """A piece of a text: which one's, and from where to where."""

    source: int
    start: int
    end: int


def sentence_ends(sample: Sample) -> list[int]:
    """Where a text can be cut: behind its sentences but the last, and never in an entity."""
    spans = [span for entity in sample.entities for span in entity.spans]
    text = sample.description
    return [
        match.end()
        for match in _SENTENCE_END.finditer(text)
        if match.end() < len(text) and not any(s < match.end() < e for s, e in spans)
    ]


def _cuts(sample: Sample, random: Random) -> list[tuple[int, int]]:
    """Start and end of a text's pieces; none cuts an entity."""
    text = sample.description
    places = sentence_ends(sample)
    chosen = sorted(random.sample(places, min(random.choice(_CHUNKS) - 1, len(places))))
    return list(zip([0, *chosen], [*chosen, len(text)], strict=True))


def _moved(subject: Subject, name: str, turns: Sequence[tuple[_Turn, int]]) -> Subject:
    return replace(
        subject,
        id=name,
        entities=tuple(
            replace(
                entity,
                spans=tuple(
                    (start + shift, end + shift)
                    for start, end in entity.spans
                    for turn, shift in turns
                    if turn.start <= start < turn.end
                ),
            )
            for entity in subject.entities
        ),
    )
