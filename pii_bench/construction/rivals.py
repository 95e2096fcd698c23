"""Limits on the similarity of recorded texts."""

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

    from pii_bench.construction.commissions import Order
    from pii_bench.construction.marked import Marked
    from pii_bench.construction.recorded import Recorded
    from pii_bench.datasets.sample import Sample

_NEAR: Final = 0.3
_RUN: Final = 8
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
    """Openings, organisations, phrases and values of the recorded texts."""

    def __init__(self, recorded: Recorded, without: Container[str] = ()) -> None:
        # How many texts of a set have a feature: set, what it is, and which.
        self.used: Counter[tuple[str, str, str]] = Counter()
        self.grams: dict[str, set[tuple[str, ...]]] = {}
        self.values: dict[str, dict[str, str]] = {"test": {}, "train": {}}
        self.runs: dict[str, dict[tuple[str, ...], str]] = {"test": {}, "train": {}}
        for name in ORDERS:
            for marked in recorded.sets[name].values():
                if marked.id not in without:
                    self.add(name, marked)

    def problems(self, name: str, marked: Marked, samples: Sequence[Sample]) -> list[Problem]:
        """Return the reasons against recording a text.

        Rules: `register`, `opening`, `organisation`, `lead`, what too many texts have already;
        `near-duplicate`; `split`, a value or eight words in a row that the other split has.
        """
        if name not in ORDERS:
            # Twins and conversations have the texts of others.
            return []
        found = (
            *self._used_up(ORDERS[name], marked, samples),
            *self._near(marked.id, samples[0]),
            *self._of_other_split(name, samples),
        )
        return [Problem(marked.id, rule, reason) for rule, reason in found]

    def _used_up(
        self, order: Order, marked: Marked, samples: Sequence[Sample]
    ) -> Iterator[tuple[str, str]]:
        openings = max(round(order.size * order.queries * _SHARE), 2)
        organisations = order.rounds * order.round_types[PiiType.ORG]
        most = {
            "register": round(order.size * _MOST_OF_A_REGISTER),
            "text": openings,
            "query": openings,
            "organisation": 2,
            "lead": max(round(_SHARE * organisations * _INVENTED_SHARE), 2),
        }
        for what, which in _features(marked, samples):
            if self.used[order.name, what, which.casefold()] < most[what]:
                continue
            if what == "register":
                registers = load_voices().registers
                rare = sorted(registers, key=lambda name: self.used[order.name, what, name])[:5]
                yield what, f"too many texts are a {which}: choose another, {', '.join(rare)}"
            elif what == "text":
                yield "opening", f"{openings} texts begin {which!r} already"
            elif what == "query":
                yield "opening", f"{openings} queries begin {which!r} already"
            elif what == "organisation":
                yield what, f"{which!r} has been used twice: choose another"
            else:
                yield what, f"too many organisations begin with {which!r}: choose another"

    def _near(self, sample_id: str, sample: Sample) -> Iterator[tuple[str, str]]:
        grams = word_grams(blanked(sample))
        shared = {
            other: len(grams & theirs) for other, theirs in self.grams.items() if other != sample_id
        }
        if shared:
            other = max(shared, key=shared.__getitem__)
            share = shared[other] / max(min(len(grams), len(self.grams[other])), 1)
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
        self.used.update(
            (name, what, which.casefold()) for what, which in _features(marked, samples)
        )
        self.grams[marked.id] = word_grams(blanked(first))
        for text in _values(first):
            self.values[split].setdefault(text.casefold(), marked.id)
        for run in _runs(samples):
            self.runs[split].setdefault(run, marked.id)


def _features(marked: Marked, samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
    """Return (kind, value) of the features that few texts of a set may share."""
    first = samples[0]
    yield "register", marked.header["register"]
    yield "text", _opening(blanked(first))
    for sample in samples:
        yield "query", _opening(sample.query or "")
    for name in sorted({e.text for e in first.entities if e.type == PiiType.ORG}):
        yield "organisation", name
    invented = (e.text for e in first.entities if e.category in _INVENTED)
    for lead in sorted({text.split()[0].casefold() for text in invented}):
        yield "lead", lead


def _opening(text: str) -> str:
    return " ".join(re.findall(r"<[A-Z]+>|[\w'’]+", text)[:4]).lower()


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
