"""Whether our sets are what they say: hard, distract and twins follow from single and multi.

`meta` says what a sample was made from: `hard_of` names one sample, `twin_of` (with `twin`,
its kind) names one, `joined` names the five of a conversation. `perturbation` names the one that
a version in other words or forms was made from, and comes before these.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.check.text import Problem
from pii_bench.datasets.sample import perturbation_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample, Subject

CANARY: Final = "pii_bench:canary:7f0e6c1e-4b0e-4c53-9a55-2d0c3f1b8e6a"
"""Stands in `meta.canary` of the first sample of our sets: who trains on them can be told."""

SOURCES: Final = ("single", "multi", "train-single", "train-multi")
"""Sets whose samples others are made from."""

OUR_SETS: Final = frozenset({"single", "multi", "hard", "distract", "twins", "frontier"})

_SUBJECTS: Final[Mapping[str, int]] = MappingProxyType({"single": 1, "multi": 2})
_MADE_BY: Final[Mapping[str, str]] = MappingProxyType(
    {"hard": "hard_of", "distract": "joined", "twins": "twin_of"}
)
_JOINED: Final = 5
_TWINS: Final = ("second", "paraphrase", "turned", "one", "other")


def origins(sample: Sample) -> frozenset[str]:
    """The ids of the samples that a sample was made from; its own where it is an original."""
    # Versions of two twins are of one description too.
    return frozenset((*_link(sample)[1], *_own_link(sample)[1])) or frozenset({sample.id})


def is_derived(sample: Sample) -> bool:
    """Whether a sample was made from others."""
    return bool(_link(sample)[1])


def set_problems(name: str, samples: Sequence[Sample]) -> Iterator[Problem]:
    """What is wrong with a set as a whole.

    Rules: `canary`, its first sample has the canary; `set-shape`, subjects have one name
    each, and are one in single and two in multi, and the samples of the other sets say what
    they were made from; `source-twice`, no sample is chosen twice, nor five joined twice.
    The first two are asked of our own sets only, not of versions of them.

    Args:
        name: of the set, which is the name of its file without the ending.
        samples: of the set, at least one.
    """
    if name in OUR_SETS and perturbation_of(samples[0]) is None:
        if samples[0].meta.get("canary") != CANARY:
            yield Problem(samples[0].id, "canary", f"meta.canary is not {CANARY!r}")
        for sample in samples:
            yield from _shape_problems(name, sample)
    used = Counter(map(_made_of, samples))
    for sample in samples:
        if is_derived(sample) and used[_made_of(sample)] > 1:
            reason = f"another sample is made of {_listed(sorted(origins(sample)))} as well"
            yield Problem(sample.id, "source-twice", reason)


def source_problems(sample: Sample, sources: Mapping[str, Sample]) -> Iterator[Problem]:
    """Whether a sample follows from those that it names.

    Rules: `source-missing`, they are known; `hard-source`, description, query, subjects and
    related entities are those of the source; `twin-source`, description and subjects are, and the
    query needs what its kind says; `distract-source`, there are five, and the facts of
    their subjects are those of its subjects; `perturbation-source`, types and categories are
    those of the source, in its order, and so is what is needed. The source of such a version may
    be in another folder.

    Args:
        sample: of any set; an original passes.
        sources: samples by id.
    """
    made_by, ids = _link(sample)
    missing = [source for source in ids if source not in sources]
    if missing and made_by == "perturbation":
        return
    if missing:
        reason = f"{_listed(missing)} is neither in the files nor next to them"
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
    match sample.meta.get("twin"):
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
            fault = f"meta.twin is none of {_listed(_TWINS)}"
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
        reason = f"subjects differ from those of {_listed(source.id for source in sources)}"
        yield Problem(sample.id, "distract-source", reason)


def _portrait(subject: Subject) -> frozenset[tuple[str, str, str | None]]:
    return frozenset((entity.text, entity.type, entity.category) for entity in subject.entities)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
