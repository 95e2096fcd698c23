"""The distract set: five descriptions told across each other in one conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.construction.build import Builder, Built, SampleFault, annotate, askable
from pii_bench.construction.describe import FIRST_PERSON
from pii_bench.construction.markup import I
from pii_bench.construction.text import flatten
from pii_bench.datasets.sample import Related, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.construction.ask import Needed, Question
    from pii_bench.construction.people import Mention, Profile
    from pii_bench.construction.sentences import Pieces

TEMPLATES: Final = ("network", "knowledge", "community")

_TALK: Final = frozenset({"transcript", "chat"})
_JOINED: Final = 5
_ASKED: Final = 3
_NEEDS: Final = {1: 0.17, 2: 0.58, 3: 0.25}
_TRIES: Final = 80
# Three questions and whom they are about make a long query; the shortest of so many serve.
_CANDIDATES: Final = 50
_LONGEST_SINGLE: Final = 925
_LONGEST_PAIR: Final = 850


@dataclass(frozen=True, slots=True)
class _Part:
    """A text in a conversation, and the noun phrase that recalls it.

    Attributes:
        remark: said before the text of two people, which has no particular remark of its own.
        hook: recalls who made the remark.
    """

    built: Built
    remark: Pieces
    hook: str


def distract_set(
    builder: Builder, singles: Sequence[Built], pairs: Sequence[Built], size: int
) -> Iterator[Sample]:
    """Yield conversations of five descriptions, two or three of them of two people.

    Half of them hold two pairs, half three: 7.5 subjects on average. Records of talk have
    speakers of their own and do not take part, nor do the longest texts.
    """
    random = builder.random
    pools = [
        [
            built
            for built in source
            if built.draft.register not in _TALK and len(built.sample.description) <= longest
        ]
        for source, longest in ((singles, _LONGEST_SINGLE), (pairs, _LONGEST_PAIR))
    ]
    for number in range(size):
        several = 2 + number % 2
        for _ in range(_TRIES):
            chosen = [
                *random.sample(pools[0], _JOINED - several),
                *random.sample(pools[1], several),
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
    parts = [_part(builder, built) for built in chosen]
    if len({part.hook for part in parts}) < _JOINED:
        raise SampleFault("two texts have one hook")
    template = builder.random.choice(TEMPLATES)
    ids = _subject_ids(chosen)
    profiles = {
        ids[number, subject]: replace(profile, id=ids[number, subject])
        for number, built in enumerate(chosen)
        for subject, profile in built.profiles.items()
    }
    lines = list(_lines(builder, template, parts, ids))
    text, mentions = flatten(
        piece for number, line in enumerate(lines) for piece in (*("\n" * (number > 0)), *line)
    )
    query, needs = _query(builder, template, parts, ids)
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


def _part(builder: Builder, built: Built) -> _Part:
    if built.draft.hook:
        return _Part(built, (), built.draft.hook)
    remarks = [
        builder.describer.hook(builder.random.choice(("forum-post", "letter")), I) for _ in range(4)
    ]
    remark, hook = min(remarks, key=lambda pair: len(pair[1]))
    return _Part(built, (*remark, " "), hook)


def _subject_ids(chosen: Sequence[Built]) -> dict[tuple[int, str], str]:
    own = [(n, subject) for n, built in enumerate(chosen) for subject in built.profiles]
    return {key: chr(ord("A") + place) for place, key in enumerate(own)}


def _lines(
    builder: Builder,
    template: str,
    parts: Sequence[_Part],
    ids: Mapping[tuple[int, str], str],
) -> Iterator[tuple[str | Mention, ...]]:
    """Turns of five speakers, each telling one text in order, drifting between."""
    random = builder.random
    yield _say(builder, f"{template} head")
    turns = [list(part.built.draft.blocks) for part in parts]
    opened: set[int] = set()
    last = -1
    while any(turns):
        waiting = [n for n, own in enumerate(turns) if own and n != last]
        speaker = random.choice(waiting or [last])
        label = f"[PER_{speaker + 1}]: "
        part = parts[speaker]
        if speaker not in opened:
            opened.add(speaker)
            own = part.built.draft.register in FIRST_PERSON
            words = _say(builder, f"{template} {'greet' if own else 'relay'}")
            lead = (*part.remark, *words, " ")
        else:
            lead = ()
        block = (_renamed(piece, speaker, ids) for piece in turns[speaker].pop(0))
        yield (label, *lead, *block)
        last = speaker
        if random.random() < 0.06:
            other = random.choice([n for n in range(len(parts)) if n != speaker])
            yield (f"[PER_{other + 1}]: ", *_say(builder, f"{template} drift"))
            last = other
    closer = random.choice([n for n in range(len(parts)) if n != last])
    yield (f"[PER_{closer + 1}]: ", *_say(builder, f"{template} close"))


def _say(builder: Builder, section: str, who: str = "") -> Pieces:
    frames = builder.writer.banks.distract.frames(section)
    # What is said around the texts must not crowd them.
    longest = sorted(map(len, frames))[len(frames) // 3]
    frame = builder.writer.dealer.deal(
        ("distract", section), frames, lambda frame: len(frame) <= longest
    )
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
    parts: Sequence[_Part],
    ids: Mapping[tuple[int, str], str],
) -> tuple[str, tuple[Needed, ...]]:
    """Questions about one person each of three texts, recalled by what was said."""
    random = builder.random
    told = [_text(_say(builder, f"{template} query"))]
    needed: list[Needed] = []
    for place, number in enumerate(random.sample(range(len(parts)), _ASKED)):
        profiles = parts[number].built.profiles
        subject = random.choice(sorted(profiles))
        count = random.choices(list(_NEEDS), list(_NEEDS.values()))[0]
        section = ("about first", "about next", "about last")[place]
        told.append(_text(_say(builder, section, _recalled(builder, parts[number], subject))))
        own = {subject: parts[number].built.profiles[subject]}
        asked = [_asked(builder, own, count) for _ in range(_CANDIDATES)]
        question = min(asked, key=lambda question: len(question.text))
        told.append(question.text)
        needed += [(ids[number, subject], fact) for _, fact in question.needs]
    return " ".join(told), tuple(needed)


def _asked(builder: Builder, own: Mapping[str, Profile], count: int) -> Question:
    """A question about one person, who has just been named: she, he or they.

    Raises:
        SampleFault: no scenario needs so many of the person's facts.
    """
    found = builder.interviewer.choose(askable(own), count)
    if found is None:
        raise SampleFault("no scenario fits")
    voices = {subject: profile.voice for subject, profile in own.items()}
    return builder.interviewer.ask(*found, own, voices, "")


def _text(pieces: Pieces) -> str:
    return "".join(str(piece) for piece in pieces)


def _recalled(builder: Builder, part: _Part, subject: str) -> str:
    """A noun phrase for a person by what was said, without a name."""
    if len(part.built.profiles) == 1:
        return part.hook
    frames = builder.writer.banks.distract.frames("one of two")
    frame = min((builder.random.choice(frames) for _ in range(4)), key=len)
    return frame.replace("<role>", part.built.draft.roles[subject]).replace("<hook>", part.hook)
