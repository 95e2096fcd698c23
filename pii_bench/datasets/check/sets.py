"""Checks of whole sets: shape, origin of derived samples, and duplicates.

The sets hard, distract and twins are derived from single and multi. `meta` names the sources of a
derived sample: `hard_of` names one, `twin_of` one (with the kind of twin in `twin`), and `joined`
the five of a conversation. `perturbation` names the original of a perturbed sample and takes
precedence. All other descriptions must differ clearly.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import OUR_SETS
from pii_bench.datasets.check.text import Problem, blanked
from pii_bench.datasets.sample import perturbation_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample, Subject

CANARY: Final = "pii_bench:canary:7f0e6c1e-4b0e-4c53-9a55-2d0c3f1b8e6a"
"""In `meta.canary` of the first sample of our sets, to detect models trained on them."""

SOURCES: Final = ("single", "multi", "train-single", "train-multi", "dev-single", "dev-multi")
"""Sets from which others are derived."""

TWINS: Final = ("second", "paraphrase", "turned", "one", "other")
"""Kinds of twins, the values of `meta.twin` in the first round."""

LATER: Final = ("-again", "-third")
"""Suffixes of the kinds of twins that were written in a second and third round."""

TWIN_KINDS: Final = tuple(kind + later for later in ("", *LATER) for kind in TWINS)
"""The values of `meta.twin`."""

_SUBJECTS: Final[Mapping[str, int]] = {"single": 1, "multi": 2}
_SOURCE_KEY: Final[Mapping[str, str]] = {
    "hard": "hard_of",
    "distract": "joined",
    "twins": "twin_of",
}
_JOINED: Final = 5


def origins(sample: Sample) -> frozenset[str]:
    """Return the ids of the samples that a sample was derived from, or its own for an original."""
    # Perturbed twins also share the description of their source.
    ids = {*_sources(sample)[1], *_set_sources(sample)[1]}
    return frozenset(ids or {sample.id})


def is_derived(sample: Sample) -> bool:
    """Return whether a sample was derived from others."""
    return bool(_sources(sample)[1])


def set_problems(name: str, samples: Sequence[Sample]) -> Iterator[Problem]:
    """Check a set as a whole.

    Rules:
    - `canary`: the first sample has the canary.
    - `set-shape`: subjects have one name each; single has one subject per sample, multi two;
      samples of the other sets name their sources.
    - `source-twice`: no source or combination of sources is used twice.

    The first two apply only to our own sets, not to perturbed ones.
    `name` is that of the file without its suffix.
    """
    if name in OUR_SETS and perturbation_of(samples[0]) is None:
        if samples[0].meta.get("canary") != CANARY:
            yield Problem(samples[0].id, "canary", f"meta.canary is not {CANARY!r}")
        for sample in samples:
            yield from _shape_problems(name, sample)
    uses = Counter(map(_use_of_sources, samples))
    for sample in samples:
        if is_derived(sample) and uses[_use_of_sources(sample)] > 1:
            reason = f"another sample is made of {', '.join(sorted(origins(sample)))} as well"
            yield Problem(sample.id, "source-twice", reason)


def source_problems(sample: Sample, sources: Mapping[str, Sample]) -> Iterator[Problem]:
    """Check a sample against the sources that it names; an original passes.

    Rules:
    - `source-missing`: the sources are known. The source of a perturbed sample may be unknown.
    - `hard-source`: description, query, subjects and related entities equal those of the source.
    - `twin-source`: description and subjects equal those of the source, and the query needs what
      the kind of twin requires.
    - `distract-source`: there are five sources, and the subjects have the same entities; case is
      ignored, because a value may begin a sentence.
    - `perturbation-source`: types, categories and related entities equal those of the source, in
      its order.
    """
    key, ids = _sources(sample)
    if not ids:
        return
    missing = [source_id for source_id in ids if source_id not in sources]
    if missing:
        if key != "perturbation":
            reason = f"{', '.join(missing)} is neither in the files nor next to them"
            yield Problem(sample.id, "source-missing", reason)
        return
    source = sources[ids[0]]
    if key == "joined":
        yield from _joined_problems(sample, [sources[source_id] for source_id in ids])
    elif key == "hard_of":
        yield from _differences(sample, source, "hard-source", ("query", "related"))
    elif key == "twin_of":
        yield from _differences(sample, source, "twin-source", ())
        yield from _twin_problems(sample, source)
    elif _labels(sample) != _labels(source):
        reason = f"subjects, labels or what is needed differ from {source.id}"
        yield Problem(sample.id, "perturbation-source", reason)


def _use_of_sources(sample: Sample) -> tuple[frozenset[str], str]:
    """Return the sources with the kind of use: a source may have a twin of each kind."""
    key, _ = _sources(sample)
    return origins(sample), str(sample.meta.get("twin" if key == "twin_of" else key))


def _labels(sample: Sample) -> list[object]:
    needed = _needed(sample)
    return [
        (subject.id, entity.type, entity.category, (subject.id, entity.text) in needed)
        for subject in sample.subjects
        for entity in subject.entities
    ]


def _sources(sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Return the key of `meta` that names sources, and their ids; empty for an original."""
    if perturbation := perturbation_of(sample):
        return "perturbation", (perturbation.source,)
    return _set_sources(sample)


def _set_sources(sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Return the same, ignoring perturbations."""
    match sample.meta:
        case {"joined": list(ids)}:
            return "joined", tuple(map(str, ids))
        case {"hard_of": str(source_id)}:
            return "hard_of", (source_id,)
        case {"twin_of": str(source_id)}:
            return "twin_of", (source_id,)
        case _:
            return "", ()


def _shape_problems(name: str, sample: Sample) -> Iterator[Problem]:
    people = len(sample.subjects)
    if people != _SUBJECTS.get(name, people):
        yield Problem(sample.id, "set-shape", f"{people} subjects in a sample of {name}")
    if _sources(sample)[0] != _SOURCE_KEY.get(name, ""):
        expected = f"only meta.{_SOURCE_KEY[name]}" if name in _SOURCE_KEY else "nothing in meta"
        yield Problem(sample.id, "set-shape", f"{expected} may say what it was made from")
    # In `frontier` a name may be written in two scripts.
    if name == "frontier":
        return
    for subject in sample.subjects:
        names = sum(entity.type == PiiType.PER for entity in subject.entities)
        if names != 1:
            yield Problem(sample.id, "set-shape", f"subject {subject.id} has {names} names, not 1")


def _differences(
    sample: Sample, source: Sample, rule: str, parts: Sequence[str]
) -> Iterator[Problem]:
    for part in ("description", "subjects", *parts):
        if getattr(sample, part) != getattr(source, part):
            yield Problem(sample.id, rule, f"{part} differs from {source.id}")


def _twin_problems(sample: Sample, source: Sample) -> Iterator[Problem]:
    if fault := _twin_fault(sample, source):
        yield Problem(sample.id, "twin-source", fault)
    if sample.query == source.query:
        yield Problem(sample.id, "twin-source", f"the query is that of {source.id}")


def _twin_fault(sample: Sample, source: Sample) -> str:
    needed, source_needed = _needed(sample), _needed(source)
    people = {subject for subject, _ in needed}
    twin = str(sample.meta.get("twin"))
    kind = twin.partition("-")[0]
    fault = ""
    if twin not in TWIN_KINDS:
        fault = f"meta.twin is none of {', '.join(TWINS)}"
    elif kind == "second" and needed & source_needed:
        fault = f"needs what {source.id} needs"
    elif kind == "paraphrase" and needed != source_needed:
        fault = f"needs something else than {source.id}"
    elif kind == "turned" and people & {subject for subject, _ in source_needed}:
        fault = f"asks about the person that {source.id} asks about"
    elif kind == "turned" and _categories(source, needed) != _categories(source, source_needed):
        fault = f"asks for other things than {source.id}"
    elif kind in {"one", "other"} and len(people) > 1:
        fault = "asks about more than one person"
    return fault


def _needed(sample: Sample) -> set[tuple[str, str]]:
    return {(related.subject, related.text) for related in sample.related}


def _categories(sample: Sample, needed: Iterable[tuple[str, str]]) -> Counter[str]:
    categories = {
        (subject.id, entity.text): entity.category or entity.type
        for subject in sample.subjects
        for entity in subject.entities
    }
    return Counter(categories.get(pair, "") for pair in needed)


def _joined_problems(sample: Sample, sources: Sequence[Sample]) -> Iterator[Problem]:
    if len({source.id for source in sources}) != _JOINED:
        reason = f"meta.joined names {len(sources)} samples, not {_JOINED} different ones"
        yield Problem(sample.id, "distract-source", reason)
    joined = Counter(map(_entity_set, sample.subjects))
    expected = Counter(_entity_set(subject) for source in sources for subject in source.subjects)
    if joined != expected:
        reason = f"subjects differ from those of {', '.join(source.id for source in sources)}"
        yield Problem(sample.id, "distract-source", reason)


def _entity_set(subject: Subject) -> frozenset[tuple[str, str, str | None]]:
    return frozenset(
        (entity.text.casefold(), entity.type, entity.category) for entity in subject.entities
    )


NEAR: Final = 0.5
"""Descriptions that share more than this part of their 5-grams are near-duplicates."""

_GRAM_SIZE: Final = 5
# Limits the time for sets whose texts share long passages, such as disclaimers.
_MOST_COMPARED: Final = 1000
_WORD: Final = re.compile(r"<[A-Z]+>|\w+(?:['’]\w+)*")


def _are_kin(sample: Sample, other: Sample) -> bool:
    """Return whether one was derived from the other, or both from a third sample."""
    derived = is_derived(sample) or is_derived(other)
    return derived and not origins(sample).isdisjoint(origins(other))


def duplicate_problems(files: Sequence[Sequence[Sample]]) -> Iterator[tuple[int, Problem]]:
    """Yield descriptions that repeat earlier ones, each with the number of its file.

    Rules:
    - `duplicate`: two descriptions are equal, and their queries are too or they are in different
      files. (A set may have several queries about one description.)
    - `near-duplicate`: with entities blanked, two descriptions share more than `NEAR` of the word
      5-grams of the shorter one. Only one of the similar descriptions is named.

    Samples derived from each other pass.
    """
    # The number of the file and the first sample of each description.
    first: dict[str, tuple[int, Sample]] = {}
    seen: set[tuple[str, str | None]] = set()
    for file, samples in enumerate(files):
        for sample in samples:
            other_file, other = first.setdefault(sample.description, (file, sample))
            key = sample.description, sample.query
            is_repeated = key in seen or other_file != file
            seen.add(key)
            if other is not sample and is_repeated and not _are_kin(sample, other):
                reason = f"the description is that of {other.id}"
                yield file, Problem(sample.id, "duplicate", reason)
    distinct = list(first.values())
    for number, near in near_earlier(blanked(sample) for _, sample in distinct):
        file, sample = distinct[number]
        for earlier, overlap in near.items():
            other = distinct[earlier][1]
            if not _are_kin(sample, other):
                reason = f"{overlap:.2f} of its word 5-grams are those of {other.id}"
                yield file, Problem(sample.id, "near-duplicate", reason)
                break


def near_earlier(
    texts: Iterable[str], limit: float = NEAR
) -> Iterator[tuple[int, dict[int, float]]]:
    """Yield each text that is near to earlier ones, with these and their overlaps, by number.

    The overlap of two sets A and B of word 5-grams is |A & B| / min(|A|, |B|) (overlap
    coefficient), near above `limit`. A text of fewer than five words is near to none. A 5-gram that
    occurs in more than `_MOST_COMPARED` texts counts only with the first of them.
    """
    texts_of_gram: defaultdict[int, list[int]] = defaultdict(list)
    sizes: list[int] = []
    for number, text in enumerate(texts):
        # Hashes, because the words themselves would need gigabytes for 100,000 texts.
        grams = set(map(hash, word_grams(text)))
        sizes.append(len(grams))
        shared: Counter[int] = Counter()
        for gram in grams:
            earlier = texts_of_gram[gram]
            shared.update(earlier)
            if len(earlier) < _MOST_COMPARED:
                earlier.append(number)
        near: dict[int, float] = {}
        for other in sorted(shared):
            overlap = shared[other] / min(sizes[other], len(grams))
            if overlap > limit:
                near[other] = overlap
        if near:
            yield number, near


def word_grams(text: str) -> set[tuple[str, ...]]:
    """Return the word 5-grams of a text in lower case."""
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[i : i + _GRAM_SIZE]) for i in range(len(words) - _GRAM_SIZE + 1)}
