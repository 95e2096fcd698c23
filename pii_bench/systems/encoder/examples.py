"""Samples as what the network is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pii_bench.systems.encoder.network import IGNORED
from pii_bench.systems.encoder.reader import bucket
from pii_bench.systems.encoder.windows import padded, spelled_of, subwords_of, windows_of
from pii_bench.systems.tagger.labels import OUTSIDE, begin
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokenizers import Tokenizer

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.systems.encoder.windows import Window


@dataclass(frozen=True, slots=True)
class Example:
    """A window with gold.

    Attributes:
        labels: one for each subword of the window, `IGNORED` where no word of the text opens.
        spans: first subword and end of each mention, within the window.
        needed: 1, 0 or `IGNORED` for each mention.
        pairs: mention, mention of a person's name, bucket of the distance between them.
        owned: whether the mention is that person's.
    """

    window: Window
    labels: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    needed: tuple[int, ...]
    pairs: tuple[tuple[int, int, int], ...]
    owned: tuple[int, ...]


def examples_of(tokenizer: Tokenizer, sample: Sample, *, asked: bool) -> Iterator[Example]:
    """The windows of a sample.

    Args:
        tokenizer: of the encoder.
        sample: with spans for its entities.
        asked: whether the query precedes the text; where it does not, no mention counts
            as needed or not.
    """
    query = (sample.query or "") if asked else ""
    for window in windows_of(tokenizer, sample.description, query):
        yield _example(window, sample, told=bool(query))


def _example(window: Window, sample: Sample, *, told: bool) -> Example:
    labels = [IGNORED] * len(window.ids)
    for place, opens in enumerate(window.opens):
        if opens:
            labels[window.first + place] = OUTSIDE
    related = {(need.subject, need.text) for need in sample.related}
    rows: list[tuple[int, int]] = []
    needed: list[int] = []
    owners: list[set[str]] = []
    names: dict[str, list[int]] = {}
    places: dict[tuple[int, int], int] = {}
    for subject, entity, (start, end) in _mentions(sample):
        touched = subwords_of(window, start, end)
        if touched is None:
            continue
        row = (window.first + touched[0], window.first + touched[1])
        is_needed = (subject, entity.text) in related
        if row in places:
            # Two people share it.
            owners[places[row]].add(subject)
            if told and entity.type != PiiType.PER:
                needed[places[row]] = max(needed[places[row]], int(is_needed))
            continue
        if not any(first < row[1] and row[0] < last for first, last in rows):
            _label(labels, row, window, PiiType(entity.type))
        places[row] = len(rows)
        if entity.type == PiiType.PER:
            names.setdefault(subject, []).append(len(rows))
        rows.append(row)
        needed.append(int(is_needed) if told and entity.type != PiiType.PER else IGNORED)
        owners.append({subject})
    pairs = list(_pairs(rows, names))
    return Example(
        window=window,
        labels=tuple(labels),
        spans=tuple(rows),
        needed=tuple(needed),
        pairs=tuple((row, name, near) for row, name, near, _ in pairs),
        owned=tuple(int(person in owners[row]) for row, _, _, person in pairs),
    )


def _mentions(sample: Sample) -> list[tuple[str, Entity, tuple[int, int]]]:
    """Every mention: in order, of those that begin at one place the longest first."""
    found = [
        (subject.id, entity, span)
        for subject in sample.subjects
        for entity in subject.entities
        for span in entity.spans
    ]
    return sorted(found, key=lambda item: (item[2][0], -item[2][1], item[0]))


def _label(labels: list[int], row: tuple[int, int], window: Window, pii_type: PiiType) -> None:
    label = begin(pii_type)
    for place in range(*row):
        if window.opens[place - window.first]:
            labels[place] = label
            label = begin(pii_type) + 1


def _pairs(
    rows: Sequence[tuple[int, int]], names: dict[str, list[int]]
) -> Iterator[tuple[int, int, int, str]]:
    """Each mention that is no name with the nearest mention of each of several people."""
    if len(names) < 2:
        return
    named = {row for own in names.values() for row in own}
    for row, (start, _) in enumerate(rows):
        if row in named:
            continue
        for person, own in names.items():
            nearest = min(own, key=lambda name: abs(start - rows[name][0]))
            yield row, nearest, bucket(start - rows[nearest][0]), person


def collate(examples: Sequence[Example]) -> dict[str, Any]:
    """A batch for `JointReader.forward`."""
    spans: list[tuple[int, int, int]] = []
    pairs: list[tuple[int, int, int]] = []
    for number, example in enumerate(examples):
        pairs += [(r + len(spans), n + len(spans), near) for r, n, near in example.pairs]
        spans += [(number, start, end) for start, end in example.spans]
    windows = [example.window for example in examples]
    return {
        "input_ids": torch.tensor(padded([w.ids for w in windows])),
        "attention_mask": torch.tensor(padded([(1,) * len(w.ids) for w in windows])),
        "token_type_ids": torch.tensor(padded([w.types for w in windows])),
        "spelled": torch.tensor(spelled_of(windows)),
        "labels": torch.tensor(padded([e.labels for e in examples], IGNORED)),
        "spans": torch.tensor(spans, dtype=torch.long).reshape(-1, 3),
        "needed": torch.tensor([n for e in examples for n in e.needed], dtype=torch.long),
        "pairs": torch.tensor(pairs, dtype=torch.long).reshape(-1, 3),
        "owned": torch.tensor([o for e in examples for o in e.owned], dtype=torch.long),
    }
