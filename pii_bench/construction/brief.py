"""The prompts for a writing model: `prompts/construction/*.txt`, filled from a commission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pii_bench.construction.bank import read_bank
from pii_bench.construction.describe import FIRST_PERSON, PAIR_REGISTERS, SINGLE_REGISTERS
from pii_bench.errors import PromptError
from pii_bench.prompting.template import content_hash, load_template, read_prompt_text
from pii_bench.resources import PROMPTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.check import Problem
    from pii_bench.construction.commission import Commission
    from pii_bench.construction.people import Fact, Profile
    from pii_bench.construction.relations import Relation
    from pii_bench.prompting.template import Template


@dataclass(frozen=True, slots=True)
class Briefs:
    """The texts that reach a writing model.

    Attributes:
        registers: register to what it is.
        sha256: hash of all of them.
    """

    templates: Mapping[str, Template]
    registers: Mapping[str, str]
    sha256: str

    def description(self, commission: Commission) -> str:
        """Ask for a description in which every value stands."""
        people = [
            "\n".join([_person(profile), *(f"- {_fact(fact)}" for fact in profile.others)])
            for profile in commission.profiles.values()
        ]
        return self.templates["description"].render(
            {
                "register": self.registers[commission.register],
                "people": "\n\n".join([*people, *_between(commission)]),
                "chars": str(commission.chars),
            }
        )

    def query(self, commission: Commission, description: str) -> str:
        """Ask for a query that needs E_q of a description."""
        domain, _, scenario = commission.scenario.partition("/")
        return self.templates["query"].render(
            {
                "people": "\n".join(
                    [*map(_person, commission.profiles.values()), *_between(commission)]
                ),
                "description": description,
                "needs": "\n".join(
                    f"- of {subject}: {_fact(fact)}" for subject, fact in commission.needs
                ),
                "asker": _asker(commission),
                "scenario": f"{_words(scenario)} ({_words(domain)})",
            }
        )

    def repair(self, problems: Iterable[Problem]) -> str:
        """Ask for the same again, without these problems."""
        listed = "\n".join(f"- {problem.reason}" for problem in problems)
        return self.templates["repair"].render({"problems": listed})


_FIELDS: Final = {
    "description": frozenset({"register", "people", "chars"}),
    "query": frozenset({"people", "description", "needs", "asker", "scenario"}),
    "repair": frozenset({"problems"}),
}


def load_briefs(folder: Path = PROMPTS / "construction") -> Briefs:
    """Read the prompts.

    Raises:
        PromptError: a file is absent, its placeholders are not those that are filled, or a
            register has no line.
    """
    templates = {name: load_template(folder / f"{name}.txt", own) for name, own in _FIELDS.items()}
    path = folder / "registers.txt"
    text = read_prompt_text(path)
    bank = read_bank(path)
    names = sorted({*SINGLE_REGISTERS, *PAIR_REGISTERS})
    if missing := [name for name in names if not bank.frames(name)]:
        raise PromptError(f"{path}: no line for {', '.join(missing)}")
    return Briefs(
        templates,
        {name: bank.frames(name)[0] for name in names},
        content_hash(*(template.text for template in templates.values()), text),
    )


def _person(profile: Profile) -> str:
    return f"{profile.id}: called {profile.name.value} ({'/'.join(profile.voice.pronouns[:2])})"


def _fact(fact: Fact) -> str:
    about = f" ({_words(fact.facet)})" if fact.facet else ""
    return f"{fact.category}{about}: {fact.value}"


def _between(commission: Commission) -> list[str]:
    """How the two are related, and what they share."""
    relation = commission.relation
    if relation is None:
        return []
    first, second = commission.profiles.values()
    lines = [f"A and B are {_related(relation)}."]
    if shared := [fact.value for fact in first.others if fact in second.facts]:
        values = ", ".join(shared)
        lines.append(f"What both have stands in the text once and is said of both: {values}.")
    return lines


def _related(relation: Relation) -> str:
    elder = ", A being the elder" if relation.least_gap > 0 else ""
    first, dash, second = relation.name.partition("-")
    return f"{first} (A) and {second} (B){elder}" if dash else f"{relation.name}{elder}"


def _asker(commission: Commission) -> str:
    own = commission.asker
    if not own:
        return "somebody else, who has the text at hand and speaks of its people as she, he or they"
    others = [name for name in commission.profiles if name != own]
    speaks = f", and of {others[0]} by the relation between them" if others else ""
    wrote = " and wrote the text" if own == "A" and commission.register in FIRST_PERSON else ""
    return f"{own}, who speaks as I{speaks}{wrote}"


def _words(name: str) -> str:
    return name.replace("-", " ")
