"""What recorded texts have used up, and what speaks against one more like them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import FREE, ORDERS
from pii_bench.construction.marked import to_samples
from pii_bench.construction.pools import load_voices
from pii_bench.datasets.check.sets import word_grams
from pii_bench.datasets.check.text import Problem, blanked
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from pii_bench.construction.marked import Marked
    from pii_bench.construction.recorded import Recorded
    from pii_bench.datasets.sample import Sample

_NEAR: Final = 0.3
_RUN: Final = 8
_MOST_OF_AN_ORGANISATION: Final = 2
_MOST_OF_A_REGISTER: Final = 0.148
# Shares of a set: openings of four words, and first words of organisations.
_SHARE: Final = 0.005
# Of five categories of organisations three are invented.
_INVENTED_SHARE: Final = 0.6

_INVENTED: Final = frozenset({"Company Name", "NGO", "Healthcare Facility"})
# Lists that the world has closed: train and test may share their values.
_CLOSED: Final = frozenset(
    {
        *("Gender", "Sexual Orientation", "Blood Type", "Race", "Nationality", "Ethnicity"),
        *("Religious Belief", "Political Affiliation", "Education Level"),
    }
)
_APART: Final = frozenset({*FREE, "Occupation", "Street Address"}) - _CLOSED


class Rivals:
    """What recorded texts have used up: openings, organisations, phrases, values of a split."""

    def __init__(self, recorded: Recorded, without: Container[str] = ()) -> None:
        self.openings: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in ORDERS}
        self.organisations: dict[str, Counter[str]] = {name: Counter() for name in ORDERS}
        self.leads: dict[str, Counter[str]] = {name: Counter() for name in ORDERS}
        self.registers: dict[str, Counter[str]] = {name: Counter() for name in ORDERS}
        self.holders: dict[tuple[str, ...], set[str]] = {}
        self.grams: dict[str, int] = {}
        self.values: dict[str, dict[str, str]] = {"test": {}, "train": {}}
        self.runs: dict[str, dict[tuple[str, ...], str]] = {"test": {}, "train": {}}
        for name in ORDERS:
            for marked in recorded.sets[name].values():
                if marked.id not in without:
                    self.add(name, marked)

    def problems(self, name: str, marked: Marked, samples: Sequence[Sample]) -> list[Problem]:
        """What speaks against recording a text.

        Rules: `register`, `opening`, `organisation`, `lead`, what too many texts have already;
        `near-duplicate`; `split`, a value or eight words in a row that the other split has.
        """
        if name not in ORDERS:
            # Twins and conversations have the texts of others.
            return []
        return [
            Problem(marked.id, rule, reason)
            for rule, reason in (
                *self._of_one_kind(name, marked.header["register"]),
                *self._used_up(name, samples),
                *self._near(marked.id, samples[0]),
                *self._of_other_split(name, samples),
            )
        ]

    def _of_one_kind(self, name: str, register: str) -> Iterator[tuple[str, str]]:
        if self.registers[name][register] >= round(ORDERS[name].size * _MOST_OF_A_REGISTER):
            others = self.registers[name]
            rare = sorted(load_voices().registers, key=lambda r: others[r])[:5]
            yield "register", f"too many texts are a {register}: choose another, {', '.join(rare)}"

    def _used_up(self, name: str, samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
        order = ORDERS[name]
        most = max(round(order.size * order.queries * _SHARE), 2)
        for key in _openings(samples):
            if self.openings[name][key] >= most:
                yield "opening", f"{most} {key[0]}s begin {key[1]!r} already"
        for text in _organisations(samples[0]):
            if self.organisations[name][text.casefold()] >= _MOST_OF_AN_ORGANISATION:
                yield "organisation", f"{text!r} has been used twice: choose another"
        most = max(round(_SHARE * order.types[PiiType.ORG] * _INVENTED_SHARE), 2)
        for lead in _leads(samples[0]):
            if self.leads[name][lead] >= most:
                yield "lead", f"too many organisations begin with {lead!r}: choose another"

    def _near(self, sample_id: str, sample: Sample) -> Iterator[tuple[str, str]]:
        grams = word_grams(blanked(sample))
        shared: Counter[str] = Counter()
        for gram in grams:
            shared.update(self.holders.get(gram, set()) - {sample_id})
        for other, count in shared.most_common(1):
            share = count / max(min(len(grams), self.grams[other]), 1)
            if share > _NEAR:
                yield "near-duplicate", f"{share:.2f} of its 5-grams are those of {other}"

    def _of_other_split(self, name: str, samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
        other = "train" if ORDERS[name].split == "test" else "test"
        for text in _values(samples[0]):
            if holder := self.values[other].get(text.casefold()):
                yield "split", f"{text!r} is in {holder}, of the other split: choose another"
        for run in _runs(samples):
            if holder := self.runs[other].get(run):
                yield "split", f"{holder} of the other split has the words {' '.join(run)!r} too"
                return

    def add(self, name: str, marked: Marked) -> None:
        """Count a recorded text."""
        if name not in ORDERS:
            return
        split, samples = ORDERS[name].split, list(to_samples(marked))
        first = samples[0]
        self.registers[name][marked.header["register"]] += 1
        self.openings[name].update(_openings(samples))
        self.organisations[name].update(text.casefold() for text in _organisations(first))
        self.leads[name].update(_leads(first))
        grams = word_grams(blanked(first))
        self.grams[marked.id] = len(grams)
        for gram in grams:
            self.holders.setdefault(gram, set()).add(marked.id)
        for text in _values(first):
            self.values[split].setdefault(text.casefold(), marked.id)
        for run in _runs(samples):
            self.runs[split].setdefault(run, marked.id)


def _openings(samples: Sequence[Sample]) -> list[tuple[str, str]]:
    keys = [("text", _opening(blanked(samples[0])))]
    return keys + [("query", _opening(sample.query or "")) for sample in samples]


def _opening(text: str) -> str:
    return " ".join(re.findall(r"<[A-Z]+>|[\w'’]+", text)[:4]).lower()


def _organisations(sample: Sample) -> Iterator[str]:
    seen = {e.text for e in sample.entities if e.type == PiiType.ORG}
    yield from sorted(seen)


def _leads(sample: Sample) -> Iterator[str]:
    texts = {e.text for e in sample.entities if e.category in _INVENTED}
    yield from sorted({text.split()[0].casefold() for text in texts})


def _values(sample: Sample) -> Iterator[str]:
    for entity in sample.entities:
        if entity.category in _APART or entity.type == PiiType.PER:
            yield entity.text


def _runs(samples: Sequence[Sample]) -> Iterator[tuple[str, ...]]:
    for text in (blanked(samples[0]), *(sample.query or "" for sample in samples)):
        words = re.findall(r"<[A-Z]+>|\w+", text.lower())
        for place in range(len(words) - _RUN + 1):
            run = tuple(words[place : place + _RUN])
            # A run that is mostly blanks says nothing of the words.
            if sum(word.startswith("<") for word in run) < 3:
                yield run
