"""Texts of other kinds to train on: what people paste that the benchmark's own sets do not hold.

Their writers are free in what they write and declare the facts themselves; people may go by a
first name or a surname alone, queries may name them, and a text may hold nothing personal.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.construction.commissions import SEED, numbers_of
from pii_bench.construction.marked import facts_of
from pii_bench.errors import PiiBenchError
from pii_bench.taxonomy import type_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.construction.marked import Marked

OTHER: Final = "train-other"

OTHER_SIZE: Final = 576


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text, as it is commissioned.

    Attributes:
        weight: how often, next to the others.
        chars: least and greatest length.
        people: how many, one of these.
        named: by what they go, one of these.
    """

    weight: int
    chars: tuple[int, int]
    people: tuple[int, ...]
    named: tuple[str, ...]


KINDS_OF_TEXT: Final[Mapping[str, Kind]] = {
    "chat": Kind(3, (20, 300), (1, 2, 3), ("first names", "handles and first names")),
    "contract": Kind(2, (300, 900), (2,), ("full names",)),
    "court": Kind(
        4,
        (600, 1300),
        (1, 2, 3),
        (
            "full name once, then Mr or Ms and surname",
            "initials with a surname (J. Novak)",
            "full names",
        ),
    ),
    "cv": Kind(2, (300, 800), (1,), ("full name",)),
    "dictation": Kind(2, (30, 200), (1, 2), ("first names", "full name")),
    "email": Kind(
        3,
        (200, 800),
        (1, 2, 3),
        ("full name in header and signature, first name in the greeting", "first names"),
    ),
    "family": Kind(3, (150, 600), (2, 3, 4, 5), ("first names", "first names and relations")),
    "form": Kind(2, (120, 600), (1, 2), ("full name", "surname, first name (as forms print it)")),
    "forum": Kind(
        4,
        (350, 1100),
        (1, 2, 3),
        ("none: I, my sister, OP", "first names", "handle", "none: I, my husband"),
    ),
    "impersonal": Kind(2, (60, 500), (0,), ("-",)),
    "medical": Kind(3, (200, 800), (1, 2), ("full name", "surname with Mr or Ms", "none: I")),
    "minutes": Kind(
        2, (250, 800), (3, 4), ("first names as speakers", "full names, then initials")
    ),
    "news": Kind(3, (250, 800), (1, 2, 3), ("full name once, then surname alone", "full names")),
    "note": Kind(4, (12, 150), (1, 2), ("first names", "full name", "surname with Mr, Ms, Dr")),
    "payment": Kind(3, (60, 450), (1, 2), ("full name", "first name")),
    "prompt": Kind(3, (120, 700), (1, 2), ("none: I", "first names", "full name")),
    "review": Kind(2, (60, 450), (1, 2), ("first names", "none: I", "surname with Dr")),
    "ticket": Kind(3, (150, 700), (1, 2), ("full name", "user name", "surname with Mr or Ms")),
}
"""What the header of such a text may say after `kind:`."""

_QUERIES: Final = (
    "one needs one or two facts; the other needs others, or nothing",
    "one needs the number, account or address that the text holds; the other nothing personal",
    "one is about one person; the other is the same about another person or another fact",
    "both need facts; one of them names a person as users do",
    "one long and chatty that needs one or two facts; one of under 40 characters",
)


def other_sheet(portion: int) -> str:
    """The commissions of a portion, from 1, for a writer, who chooses names, facts and values."""
    return "\n".join(_told(number) for number in numbers_of(portion, OTHER_SIZE))


def _told(number: int) -> str:
    random = Random(f"{SEED}/{OTHER}/{number}")
    weights = [kind.weight for kind in KINDS_OF_TEXT.values()]
    ((name, kind),) = random.choices([*KINDS_OF_TEXT.items()], weights)
    people = random.choice(kind.people)
    queries = random.choice(_QUERIES) if people else "one, which needs nothing"
    return (
        f"=== {OTHER}-{number:04d}\nkind: {name}\n"
        f"length: about {round(random.uniform(*kind.chars), -1):.0f} characters\n"
        f"people: {people}, named by: {random.choice(kind.named)}\nqueries: {queries}\n"
    )


def declared_facts(marked: Marked) -> dict[str, str]:
    """Tag to category, or to a type where no category fits.

    Raises:
        PiiBenchError: the header names an unknown kind of text or category.
    """
    kind = marked.header.get("kind", "")
    if kind not in KINDS_OF_TEXT:
        raise PiiBenchError(
            f"header: {kind!r} is no kind of text; there are {', '.join(KINDS_OF_TEXT)}"
        )
    facts = facts_of(marked.header.get("facts", ""))
    for tag, category in facts.items():
        try:
            type_named(category)
        except KeyError:
            raise PiiBenchError(
                f"header: {f'{tag} {category}'!r} is no tag with a category or type"
            ) from None
    return facts
