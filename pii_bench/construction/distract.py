"""The distract set: five descriptions told across each other in one conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.build import Builder, Built, SampleFault, annotate, askable
from pii_bench.construction.describe import FIRST_PERSON
from pii_bench.construction.markup import I
from pii_bench.construction.text import flatten
from pii_bench.datasets.sample import Related, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.construction.ask import Needed
    from pii_bench.construction.people import Mention
    from pii_bench.construction.sentences import Pieces

TEMPLATES: Final = ("network", "knowledge", "community")

_TALK: Final = frozenset({"transcript", "chat"})
_JOINED: Final = 5
_ASKED: Final = 3
_NEEDS: Final = {1: 0.26, 2: 0.54, 3: 0.2}
_TRIES: Final = 80


def distract_set(
    builder: Builder, singles: Sequence[Built], pairs: Sequence[Built], size: int
) -> Iterator[Sample]:
    """Yield conversations of five descriptions, two or three of them of two people.

    Half of them hold two pairs, half three: 7.5 subjects on average. Records of talk have
    speakers of their own and do not take part.
    """
    random = builder.random
    pools = {
        1: [b for b in singles if b.draft.register not in _TALK and b.draft.hook],
        2: [b for b in pairs if b.draft.register not in _TALK and b.draft.hook],
    }
    for number in range(size):
        several = 2 + number % 2
        for _ in range(_TRIES):
            chosen = [
                *random.sample(pools[2], several),
                *random.sample(pools[1], _JOINED - several),
            ]
            random.shuffle(chosen)
            try:
                sample = _conversation(builder, f"distract-{number + 1:04d}", chosen)
            except (SampleFault, LookupError):
                continue
            if not builder.faults(sample):
                yield sample
                break
        else:
            raise RuntimeError(f"distract-{number + 1:04d}: no attempt was kept")


def _conversation(builder: Builder, sample_id: str, chosen: Sequence[Built]) -> Sample:
    random = builder.random
    if len({built.draft.hook for built in chosen}) < _JOINED:
        raise SampleFault("two texts have one hook")
    template = random.choice(TEMPLATES)
    ids = _subject_ids(chosen)
    profiles = {
        ids[number, subject]: replace(profile, id=ids[number, subject])
        for number, built in enumerate(chosen)
        for subject, profile in built.profiles.items()
    }
    lines = list(_lines(builder, template, chosen, ids))
    text, mentions = flatten(
        piece for number, line in enumerate(lines) for piece in (*("\n" * (number > 0)), *line)
    )
    query, needs = _query(builder, template, chosen, ids)
    return Sample(
        id=sample_id,
        description=text,
        query=query,
        subjects=annotate(mentions, profiles),
        related=tuple(Related(subject, fact.value) for subject, fact in needs),
        meta={
            "template": template,
            "joined": [built.sample.id for built in chosen],
            "speakers": {
                f"[PER_{number}]": built.sample.id for number, built in enumerate(chosen, start=1)
            },
        },
    )


def _subject_ids(chosen: Sequence[Built]) -> dict[tuple[int, str], str]:
    own = [(n, subject) for n, built in enumerate(chosen) for subject in built.profiles]
    return {key: chr(ord("A") + place) for place, key in enumerate(own)}


def _lines(
    builder: Builder,
    template: str,
    chosen: Sequence[Built],
    ids: Mapping[tuple[int, str], str],
) -> Iterator[tuple[str | Mention, ...]]:
    """Turns of five speakers, each telling one text in order, drifting between."""
    random = builder.random
    yield _say(builder, f"{template} head")
    turns = [list(built.draft.blocks) for built in chosen]
    opened: set[int] = set()
    last = -1
    while any(turns):
        waiting = [n for n, own in enumerate(turns) if own and n != last]
        speaker = random.choice(waiting or [last])
        label = f"[PER_{speaker + 1}]: "
        first_person = chosen[speaker].draft.register in FIRST_PERSON
        if speaker not in opened:
            opened.add(speaker)
            section = "greet" if first_person else "relay"
            lead = (*_say(builder, f"{template} {section}"), " ")
        else:
            lead = ("… ",) if random.random() < 0.1 else ()
        block = (_renamed(piece, speaker, ids) for piece in turns[speaker].pop(0))
        yield (label, *lead, *block)
        last = speaker
        if random.random() < 0.2:
            other = random.choice([n for n in range(len(chosen)) if n != speaker])
            yield (f"[PER_{other + 1}]: ", *_say(builder, f"{template} drift"))
            last = other
    closer = random.choice([n for n in range(len(chosen)) if n != last])
    yield (f"[PER_{closer + 1}]: ", *_say(builder, f"{template} close"))


def _say(builder: Builder, section: str, who: str = "") -> Pieces:
    frames = builder.writer.banks.distract.frames(section)
    frame = builder.writer.dealer.deal(("distract", section), frames)
    return builder.writer.plain(frame.replace("<who>", who), I)


def _renamed(
    piece: str | Mention, speaker: int, ids: Mapping[tuple[int, str], str]
) -> str | Mention:
    if isinstance(piece, str):
        return piece
    return replace(piece, subjects=tuple(ids[speaker, subject] for subject in piece.subjects))


def _query(
    builder: Builder,
    template: str,
    chosen: Sequence[Built],
    ids: Mapping[tuple[int, str], str],
) -> tuple[str, tuple[Needed, ...]]:
    """Questions about one person each of three texts, recalled by what was said."""
    random = builder.random
    asked: list[str] = []
    needed: list[Needed] = []
    for place, number in enumerate(random.sample(range(len(chosen)), _ASKED)):
        built = chosen[number]
        subject = random.choice(sorted(built.profiles))
        own = {subject: built.profiles[subject]}
        count = random.choices(list(_NEEDS), list(_NEEDS.values()))[0]
        found = builder.interviewer.choose(askable(own), count)
        if found is None:
            raise SampleFault("no scenario fits")
        # Who is meant is said first; the question itself speaks of her, him or them.
        section = ("about first", "about next", "about last")[place]
        asked.append(_text(_say(builder, section, _recalled(builder, built, subject))))
        voices = {subject: built.profiles[subject].voice}
        asked.append(builder.interviewer.ask(*found, own, voices, "").text)
        needed += [(ids[number, subject], fact) for _, fact in found[1]]
    return " ".join([_text(_say(builder, f"{template} query")), *asked]), tuple(needed)


def _text(pieces: Pieces) -> str:
    return "".join(str(piece) for piece in pieces)


def _recalled(builder: Builder, built: Built, subject: str) -> str:
    """A noun phrase for a person by what was said, without a name."""
    hook = built.draft.hook
    if len(built.profiles) == 1:
        return hook
    frames = builder.writer.banks.distract.frames("one of two")
    frame = builder.writer.dealer.deal(("distract", "one of two"), frames)
    return frame.replace("<role>", built.draft.roles[subject]).replace("<hook>", hook)
