"""How the two people of a description are related."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What a relation does to attributes (paper, construction step 2)."""

    INTERSECTION = "intersection"
    HIERARCHICAL = "hierarchical"
    INDEPENDENT = "non-intersection"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between A and B.

    Attributes:
        shared: (category, facet) pairs that both may have with one value.
        least_gap: years by which A is older than B, at the least; negative allows younger.
        greatest_gap: at the most.
        binding: who has such a fact at all has it in common.
        kin: nationality is handed down.
        senior: A earns no less than B.
    """

    name: str
    kind: Kind
    shared: tuple[tuple[str, str], ...] = ()
    least_gap: int = -60
    greatest_gap: int = 60
    binding: bool = False
    kin: bool = False
    senior: bool = False


_EMPLOYER: Final = ("Company Name", "employer")
_HOME: Final = ("Street Address", "home")
_CITY: Final = ("City/Region", "home")

RELATIONS: Final[Mapping[str, Relation]] = MappingProxyType(
    {
        relation.name: relation
        for relation in (
            Relation("parent-child", Kind.HIERARCHICAL, (_HOME,), 18, 48, kin=True),
            Relation("grandparent-grandchild", Kind.HIERARCHICAL, (_CITY,), 38, 64, kin=True),
            Relation("siblings", Kind.INTERSECTION, (_CITY,), 1, 16, kin=True),
            Relation("partners", Kind.INTERSECTION, (_HOME, _CITY), -15, 15, binding=True),
            Relation("colleagues", Kind.INTERSECTION, (_EMPLOYER,), -45, 45, binding=True),
            Relation(
                "supervisor-report",
                Kind.HIERARCHICAL,
                (_EMPLOYER,),
                2,
                45,
                senior=True,
                binding=True,
            ),
            Relation(
                "mentor-apprentice",
                Kind.HIERARCHICAL,
                (_EMPLOYER,),
                8,
                50,
                senior=True,
                binding=True,
            ),
            Relation(
                "classmates",
                Kind.INTERSECTION,
                (("Educational Institution", "current"),),
                -40,
                40,
                binding=True,
            ),
            Relation("flatmates", Kind.INTERSECTION, (_HOME,), -30, 30, binding=True),
            Relation("neighbours", Kind.INTERSECTION, (("Landmark", "near-home"),)),
            Relation("friends", Kind.INDEPENDENT, (_CITY,), -40, 40),
            Relation("landlord-tenant", Kind.INDEPENDENT, (_CITY,)),
            Relation("carer-client", Kind.INDEPENDENT, (_CITY,)),
            Relation("teammates", Kind.INTERSECTION, (("NGO", "volunteers"),), -40, 40),
            Relation("relative", Kind.HIERARCHICAL, (_CITY,), 8, 55),
            Relation("cousins", Kind.INTERSECTION, (_CITY,), -20, 20),
        )
    }
)
