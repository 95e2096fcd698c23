"""What samples of one set or several must share, and what they must not.

hard, distract and twins follow from single and multi. `meta` says what a sample was made from:
`hard_of` names one sample, `twin_of` (with `twin`, its kind) names one, `joined` names the five of
a conversation. `perturbation` names the one that a version in other words or forms was made from,
and comes before these. No other descriptions are equal, or nearly.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.text import Problem, blanked
from pii_bench.datasets.sample import perturbation_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample, Subject

CANARY: Final = "pii_bench:canary:7f0e6c1e-4b0e-4c53-9a55-2d0c3f1b8e6a"
"""In `meta.canary` of the first sample of our sets, to know a model that was trained on them."""

SOURCES: Final = ("single", "multi", "train-single", "train-multi")
"""Sets whose samples others are made from."""

OUR_SETS: Final = frozenset({"single", "multi", "hard", "distract", "twins", "frontier"})

TWINS: Final = ("second", "paraphrase", "turned", "one", "other")
"""Kinds of twins, see `meta.twin`."""

AGAIN: Final = "-again"
"""Ends the kind of a twin of which a text has another."""

_SUBJECTS: Final[Mapping[str, int]] = MappingProxyType({"single": 1, "multi": 2})
_MADE_BY: Final[Mapping[str, str]] = MappingProxyType(
    {"hard": "hard_of", "distract": "joined", "twins": "twin_of"}
)
_JOINED: Final = 5


def origins(sample: Sample) -> frozenset[str]:
    """The ids of the samples that a sample was made from; its own where it is an original."""
    # Versions of two twins are of one description too.
    return frozenset((*_link(sample)[1], *_own_link(sample)[1])) or frozenset({sample.id})


def is_derived(sample: Sample) -> bool:
    """Whether a sample was made from others."""
    return bool(_link(sample)[1])


def set_problems(name: str, samples: Sequence[Sample]) -> Iterator[Problem]:
    """Faults of a set as a whole.

    Rules: `canary`, its first sample has the canary; `set-shape`, subjects have one name
    each, and are one in single and two in multi, and the samples of the other sets say what
    they were made from; `source-twice`, no sample is chosen twice, nor five joined twice.
    The first two are asked of our own sets only, not of versions of them.
    `name` is that of the file without its ending.
    """
    if name in OUR_SETS and perturbation_of(samples[0]) is None:
        if samples[0].meta.get("canary") != CANARY:
            yield Problem(samples[0].id, "canary", f"meta.canary is not {CANARY!r}")
        for sample in samples:
            yield from _shape_problems(name, sample)
    used = Counter(map(_made_of, samples))
    for sample in samples:
        if is_derived(sample) and used[_made_of(sample)] > 1:
            reason = f"another sample is made of {', '.join(sorted(origins(sample)))} as well"
            yield Problem(sample.id, "source-twice", reason)


def source_problems(sample: Sample, sources: Mapping[str, Sample]) -> Iterator[Problem]:
    """Whether a sample follows from those that it names.

    Rules: `source-missing`, they are known; `hard-source`, description, query, subjects and
    related entities are those of the source; `twin-source`, description and subjects are, and the
    query needs what its kind says; `distract-source`, there are five, and the facts of
    their subjects are those of its subjects; `perturbation-source`, types and categories are
    those of the source, in its order, and so is what is needed. The source of such a version may
    be in another folder.
    An original passes.
    """
    made_by, ids = _link(sample)
    missing = [source for source in ids if source not in sources]
    if missing and made_by == "perturbation":
        return
    if missing:
        reason = f"{', '.join(missing)} is neither in the files nor next to them"
        yield Problem(sample.id, "source-missing", reason)
        return
    found = [sources[source] for source in ids]
    match made_by:
        case "joined":
            yield from _joined_problems(sample, found)
        case "hard_of":
            yield from _differences(sample, found[0], "hard-source", ("query", "related"))
        case "twin_of":
            yield from _differences(sample, found[0], "twin-source", ())
            yield from _twin_problems(sample, found[0])
        case "perturbation" if _labels(sample) != _labels(found[0]):
            reason = f"subjects, labels or what is needed differ from {found[0].id}"
            yield Problem(sample.id, "perturbation-source", reason)


def _made_of(sample: Sample) -> tuple[frozenset[str], str]:
    # A description has a twin of each kind, and a version.
    made_by, _ = _link(sample)
    return origins(sample), str(sample.meta.get("twin" if made_by == "twin_of" else made_by))


def _labels(sample: Sample) -> list[object]:
    needed = _needed(sample)
    return [
        (subject.id, entity.type, entity.category, (subject.id, entity.text) in needed)
        for subject in sample.subjects
        for entity in subject.entities
    ]


def _link(sample: Sample) -> tuple[str, tuple[str, ...]]:
    """The key of `meta` by which a sample names others, and their ids; empty for an original."""
    if version := perturbation_of(sample):
        return "perturbation", (version.source,)
    return _own_link(sample)


def _own_link(sample: Sample) -> tuple[str, tuple[str, ...]]:
    match sample.meta:
        case {"joined": list(sources)}:
            return "joined", tuple(map(str, sources))
        case {"hard_of": str(source)}:
            return "hard_of", (source,)
        case {"twin_of": str(source)}:
            return "twin_of", (source,)
        case _:
            return "", ()


def _shape_problems(name: str, sample: Sample) -> Iterator[Problem]:
    people = len(sample.subjects)
    if people != _SUBJECTS.get(name, people):
        yield Problem(sample.id, "set-shape", f"{people} subjects in a sample of {name}")
    if _link(sample)[0] != _MADE_BY.get(name, ""):
        wanted = f"only meta.{_MADE_BY[name]}" if name in _MADE_BY else "nothing in meta"
        yield Problem(sample.id, "set-shape", f"{wanted} may say what it was made from")
    # In `frontier` a name may be written in two scripts.
    for subject in sample.subjects if name != "frontier" else ():
        names = sum(entity.type == PiiType.PER for entity in subject.entities)
        if names != 1:
            yield Problem(sample.id, "set-shape", f"subject {subject.id} has {names} names, not 1")


def _differences(
    sample: Sample, source: Sample, rule: str, further: Sequence[str]
) -> Iterator[Problem]:
    for part in ("description", "subjects", *further):
        if getattr(sample, part) != getattr(source, part):
            yield Problem(sample.id, rule, f"{part} differs from {source.id}")


def _twin_problems(sample: Sample, source: Sample) -> Iterator[Problem]:
    first, own = _needed(source), _needed(sample)
    match str(sample.meta.get("twin")).removesuffix(AGAIN):
        case "second":
            fault = f"needs what {source.id} needs" if own & first else ""
        case "paraphrase":
            fault = f"needs something else than {source.id}" if own != first else ""
        case "turned" if {subject for subject, _ in own} & {subject for subject, _ in first}:
            fault = f"asks about the person that {source.id} asks about"
        case "turned":
            other = _categories(source, own) != _categories(source, first)
            fault = f"asks for other things than {source.id}" if other else ""
        case "one" | "other":
            several = len({subject for subject, _ in own}) > 1
            fault = "asks about more than one person" if several else ""
        case _:
            fault = f"meta.twin is none of {', '.join(TWINS)}"
    if fault:
        yield Problem(sample.id, "twin-source", fault)
    if sample.query == source.query:
        yield Problem(sample.id, "twin-source", f"the query is that of {source.id}")


def _needed(sample: Sample) -> set[tuple[str, str]]:
    return {(related.subject, related.text) for related in sample.related}


def _categories(sample: Sample, needed: Iterable[tuple[str, str]]) -> Counter[str]:
    kinds = {
        (subject.id, entity.text): entity.category or entity.type
        for subject in sample.subjects
        for entity in subject.entities
    }
    return Counter(kinds.get(need, "") for need in needed)


def _joined_problems(sample: Sample, sources: Sequence[Sample]) -> Iterator[Problem]:
    if len({source.id for source in sources}) != _JOINED:
        reason = f"meta.joined names {len(sources)} samples, not {_JOINED} different ones"
        yield Problem(sample.id, "distract-source", reason)
    ours = Counter(map(_portrait, sample.subjects))
    theirs = Counter(_portrait(subject) for source in sources for subject in source.subjects)
    if ours != theirs:
        reason = f"subjects differ from those of {', '.join(source.id for source in sources)}"
        yield Problem(sample.id, "distract-source", reason)


def _portrait(subject: Subject) -> frozenset[tuple[str, str, str | None]]:
    return frozenset((entity.text, entity.type, entity.category) for entity in subject.entities)


NEAR: Final = 0.5
"""Descriptions that share more than this of their 5-grams are near-duplicates."""

_WORDS: Final = 5
_AT_LEAST: Final = 16
_WORD: Final = re.compile(r"<[A-Z]+>|\w+(?:['’]\w+)*")


@dataclass(slots=True)
class Effort:
    """How much a search for near texts may compare, and how far it got.

    Attributes:
        most: 5-grams to look at, over all texts. Each text has an equal part and what those before
            it left, and is compared with `_AT_LEAST` texts in any case.
        spent: how many were looked at.
        texts: that were searched for.
        cut_short: those of them that were not compared with every text that may be near.
    """

    most: int = 300_000_000
    spent: int = 0
    texts: int = 0
    cut_short: int = 0


@dataclass(frozen=True, slots=True)
class _Document:
    """A sample and the number of its file."""

    file: int
    sample: Sample

    def is_kin(self, other: _Document) -> bool:
        """Whether one was made from the other, or both from a third: they must be alike."""
        derived = is_derived(self.sample) or is_derived(other.sample)
        return derived and not origins(self.sample).isdisjoint(origins(other.sample))


def duplicate_problems(
    files: Sequence[Sequence[Sample]], effort: Effort | None = None
) -> Iterator[tuple[int, Problem]]:
    """Descriptions that are there before, each with the number of its file.

    Rules: `duplicate`, two descriptions are equal, and so are their queries or they are in two
    files (a set may ask several things of one description); `near-duplicate`, with entities blanked
    they share more than `NEAR` of the word 5-grams of the shorter one. Of several descriptions
    that it is like, one is named. Samples made from one another (`meta`) are expected to be
    alike and pass.
    `effort` bounds the search for near-duplicates, and is told how far it got.
    """
    first: dict[str, _Document] = {}
    asked: set[tuple[str, str | None]] = set()
    for number, samples in enumerate(files):
        for sample in samples:
            document = _Document(number, sample)
            other = first.setdefault(sample.description, document)
            question = sample.description, sample.query
            again = question in asked or other.file != number
            asked.add(question)
            if other is not document and again and not other.is_kin(document):
                reason = f"the description is that of {other.sample.id}"
                yield number, Problem(sample.id, "duplicate", reason)
    documents = list(first.values())

    def may_be_alike(left: int, right: int) -> bool:
        return documents[left].is_kin(documents[right])

    texts = (blanked(each.sample) for each in documents)
    for left, right, overlap in near_earlier(texts, may_be_alike, effort=effort):
        other, document = documents[left], documents[right]
        reason = f"{overlap:.2f} of its word 5-grams are those of {other.sample.id}"
        yield document.file, Problem(document.sample.id, "near-duplicate", reason)


def near_earlier(
    texts: Iterable[str],
    passes: Callable[[int, int], bool] | None = None,
    limit: float = NEAR,
    effort: Effort | None = None,
) -> Iterator[tuple[int, int, float]]:
    """For each text whose overlap with an earlier one is above a limit, that one, it, the overlap.

    The overlap of two sets A and B of word 5-grams is |A & B| / min(|A|, |B|) (overlap
    coefficient); a text of fewer words has no 5-grams and is near to none.

    Two sets that overlap so share one of the rarest 5-grams of the smaller one (with a limit of
    a half, of its rarest half), which finds them among many (prefix filter: S. Chaudhuri et al.,
    "A primitive operator for similarity joins in data cleaning", ICDE 2006). Texts that
    are near to no earlier one are asked first: of many that are alike, each is compared with one.

    Args:
        texts: in their order.
        passes: whether two texts, the earlier one first, may be near; None for never.
        limit: above which two texts are near, 0 to 1.
        effort: bounds the search, and is told how far it got; None to compare whatever it takes.
            Texts that share the rarest 5-grams are compared first.
    """
    alone, others = _Index(), _Index()
    sets = _gram_sets(texts, limit)
    effort = Effort(sys.maxsize) if effort is None else effort
    effort.texts = len(sets)
    for number, grams in enumerate(sets):
        allowed = effort.most * (number + 1) // len(sets)
        found = None
        compared = chain(alone.compared(grams), others.compared(grams))
        for place, (earlier, share, cost) in enumerate(compared):
            if effort.spent >= allowed and place >= _AT_LEAST:
                effort.cut_short += 1
                break
            effort.spent += cost
            if share > limit and (passes is None or not passes(earlier, number)):
                found = earlier, number, share
                break
        if found is not None:
            yield found
        (alone if found is None else others).add(number, grams)


@dataclass(frozen=True, slots=True)
class _Grams:
    """The 5-grams of a text that other texts have too, as numbers.

    Attributes:
        size: of the whole set.
        ordered: the rarest first.
        prefix: how many of those are among the rarest of the whole set that a near one shares.
    """

    size: int
    ordered: NDArray[np.int32]
    prefix: int


@dataclass(slots=True)
class _Index:
    """Finds the texts that may be near to one."""

    _sets: dict[int, _Grams] = field(default_factory=dict)
    _by_prefix: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _by_rest: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, number: int, grams: _Grams) -> None:
        self._sets[number] = grams
        for place, gram in enumerate(grams.ordered.tolist()):
            index = self._by_prefix if place < grams.prefix else self._by_rest
            index[gram].append(number)

    def compared(self, grams: _Grams) -> Iterator[tuple[int, float, int]]:
        """Each text that may be near, its overlap, and the 5-grams that were looked at for it."""
        own = grams.ordered.tolist()
        held = frozenset(own)
        seen: set[int] = set()
        looked_at = 0
        for number in self._candidates(own, grams.prefix):
            looked_at += 1
            if number not in seen:
                seen.add(number)
                other = self._sets[number]
                overlap = len(held.intersection(other.ordered.tolist()))
                yield number, overlap / min(grams.size, other.size), looked_at + len(other.ordered)
                looked_at = 0

    def _candidates(self, grams: Sequence[int], prefix: int) -> Iterator[int]:
        for place, gram in enumerate(grams):
            yield from self._by_prefix.get(gram, ())
            if place < prefix:
                yield from self._by_rest.get(gram, ())


def _gram_sets(texts: Iterable[str], limit: float) -> list[_Grams]:
    import numpy as np

    # Of 64 bits: that two of a billion 5-grams are taken for one has a chance of 3 %.
    hashed = [np.fromiter(map(hash, word_grams(text)), dtype=np.int64) for text in texts]
    if not hashed:
        return []
    _, numbers, counts = np.unique(np.concatenate(hashed), return_inverse=True, return_counts=True)
    found = []
    for own in np.split(numbers, np.cumsum([len(each) for each in hashed])[:-1]):
        shared = own[counts[own] > 1]
        ordered = shared[np.lexsort((shared, counts[shared]))].astype(np.int32)
        # Those that no other text has are the rarest, and find nothing.
        unshared = len(own) - len(shared)
        prefix = max(0, len(own) - int(limit * len(own)) - unshared)
        found.append(_Grams(len(own), ordered, prefix))
    return found


def word_grams(text: str) -> set[tuple[str, ...]]:
    """The word 5-grams of a text, words in lower case."""
    words = [word.lower() for word in _WORD.findall(text)]
    return set(zip(*(words[place:] for place in range(_WORDS)), strict=False))
