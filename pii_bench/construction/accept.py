"""Judging written texts: by their commission, by the checker, and by what is recorded already."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from pii_bench.check import Problem, sample_problems
from pii_bench.check.duplicates import word_grams
from pii_bench.check.text import blanked
from pii_bench.construction.commissions import (
    FREE,
    ORDERS,
    PORTION,
    REFERENCES,
    Commission,
    commission,
)
from pii_bench.construction.marked import (
    Marked,
    MarkedQuery,
    Resolved,
    facts_of,
    read_marked,
    resolve,
    to_samples,
    write_marked,
)
from pii_bench.construction.voices import TEXTS, load_voices
from pii_bench.files import write_whole
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

_SLACK: Final = 0.2
_QUERY_CHARS: Final = (60, 420)
_MOST_NEEDED: Final = 3
# Who asks where no person of the text does.
_OUTSIDE: Final = ("desk", "near", "other")
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

# "a hundred and one days" begins with a number, no article.
_ARTICLE: Final = re.compile(
    r"(?:an? (?!hundred|thousand|million|lakh|quarter|half|dozen|year|month|week|day|hour|minute)"
    r"|the |The |my |his |her |their |our )"
)
_TITLED: Final = re.compile(
    r"\b(?:Mrs?|Ms|Miss|Mx|Dr|Prof|Sir|Madam|Señora?|Herr|Frau|Mme)\b\.? [A-Z]\w+"
)
_DIGITS: Final = re.compile(r"\D+")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# A chat writer's markup would show a reader of the text where values are.
_MARKUP: Final = re.compile(r"\*\*|`|^#{1,4} ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text is held to: its commission, or what it was recorded with.

    Attributes:
        facts: tag to category.
        allowed: tag to the values that a name or number may have.
        queries: how many.
        chars: length of the description, in characters.
        header: what is recorded with the text.
    """

    facts: Mapping[str, str]
    allowed: Mapping[str, tuple[str, ...]]
    queries: int
    chars: int
    header: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What acceptance came to for one sample: recorded where there is no problem."""

    id: str
    problems: tuple[Problem, ...]
    chars: int
    wanted: int


@dataclass
class Recorded:
    """The written texts that are recorded, by set, and what they have used up."""

    folder: Path
    sets: dict[str, dict[str, Marked]]

    @classmethod
    def load(cls, folder: Path = TEXTS) -> Recorded:
        """Read every recorded file.

        Raises:
            MarkedError: one is not of the format.
        """
        sets: dict[str, dict[str, Marked]] = {}
        for name in ORDERS:
            files = sorted((folder / name).glob("*.txt"))
            sets[name] = {m.id: m for path in files for m in read_marked(path)}
        return cls(folder, sets)

    def samples(self, name: str) -> list[Sample]:
        """The samples of a set in the order of their ids."""
        own = self.sets[name]
        return [sample for key in sorted(own) for sample in to_samples(own[key])]

    def add(self, name: str, marked: Marked) -> None:
        """Record a text in the file of its portion, in the place of an earlier version."""
        number = int(marked.id.rpartition("-")[2])
        portion = (number - 1) // PORTION + 1
        own = self.sets[name]
        own[marked.id] = marked
        first, last = (portion - 1) * PORTION + 1, portion * PORTION
        ids = [f"{name}-{n:04d}" for n in range(first, last + 1)]
        path = self.folder / name / f"{portion:03d}.txt"
        write_whole(path, write_marked(own[key] for key in ids if key in own))


def accept(paths: Sequence[Path], folder: Path = TEXTS) -> list[Verdict]:
    """Judge every sample of some files, and record those without a problem.

    Raises:
        MarkedError: a file is not of the format.
        ResultsError: a text cannot be recorded.
    """
    verdicts: list[Verdict] = []
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        recorded = Recorded.load(folder)
        written = [marked for path in paths for marked in read_marked(path)]
        # A text does not compete with an earlier version of itself.
        rivals = Rivals(recorded, without={marked.id for marked in written})
        for marked in written:
            verdict, accepted = _judge(marked, recorded, rivals)
            if accepted is not None:
                name = marked.id.rpartition("-")[0]
                recorded.add(name, accepted)
                rivals.add(name, accepted)
            verdicts.append(verdict)
    return verdicts


def _judge(marked: Marked, recorded: Recorded, rivals: Rivals) -> tuple[Verdict, Marked | None]:
    name, _, digits = marked.id.rpartition("-")
    order = ORDERS.get(name)
    if order is None or not digits.isdecimal() or not 1 <= int(digits) <= order.size:
        problem = Problem(marked.id, "commission", "no commission has this id")
        return Verdict(marked.id, (problem,), 0, 0), None
    earlier = recorded.sets[name].get(marked.id)
    terms = _terms_of(commission(order, int(digits))) if earlier is None else _kept(earlier)
    register = marked.header.get("register", "")
    completed = replace(marked, header={"register": register, **terms.header})
    problems = list(_terms_problems(marked, terms))
    chars = len(resolve(marked.text, frozenset()).text)
    if not problems:
        samples = list(to_samples(completed))
        for sample in samples:
            problems += sample_problems(sample)
            problems += _wording_problems(sample)
        problems = list(dict.fromkeys(replace(p, sample_id=marked.id) for p in problems))
        problems += rivals.problems(name, completed, samples)
    verdict = Verdict(marked.id, tuple(problems), chars, terms.chars)
    return verdict, None if problems else completed


def _terms_of(asked: Commission) -> Terms:
    facts = {tag: fact.category for tag, (_, fact) in asked.tags.items()}
    header = {
        **({"relation": asked.relation.name} if asked.relation else {}),
        "voice": asked.voice,
        "theme": asked.theme,
        "form": asked.form,
        "chars": str(asked.chars),
        "facts": ", ".join(f"{tag} {category}" for tag, category in facts.items()),
    }
    allowed = {tag: asked.allowed(tag) for tag in facts}
    return Terms(facts, allowed, len(asked.asked), asked.chars, header)


def _kept(earlier: Marked) -> Terms:
    """A text that is mended keeps the facts, names and numbers that it was recorded with."""
    found = resolve(earlier.text, frozenset())
    chars = int(earlier.header.get("chars", len(found.text)))
    header = {key: value for key, value in earlier.header.items() if key != "register"}
    facts = facts_of(earlier.header["facts"])
    return Terms(facts, found.values, len(earlier.queries), chars, header)


def _terms_problems(marked: Marked, terms: Terms) -> Iterator[Problem]:
    """Whether a text and its queries are what was asked for."""
    people = frozenset(
        tag for tag, category in terms.facts.items() if TYPE_OF_CATEGORY[category] is PiiType.PER
    )
    found = resolve(marked.text, people)
    yield from _mark_problems(marked.id, found, terms)
    yield from _text_problems(marked, found.text, terms)
    if len(marked.queries) != terms.queries:
        yield Problem(marked.id, "queries", f"{len(marked.queries)} queries, not {terms.queries}")
    for query in marked.queries:
        yield from _query_problems(marked.id, query, terms)


def _mark_problems(name: str, found: Resolved, terms: Terms) -> Iterator[Problem]:
    """Rules: `mark`, a broken one; `tag`, one that is missing, unknown, or on two texts."""
    for piece in found.stray:
        yield Problem(name, "mark", f"{piece!r} looks like a broken mark")
    for tag in sorted(terms.facts.keys() - found.values.keys()):
        yield Problem(name, "tag", f"{tag} ({terms.facts[tag]}) is marked nowhere")
    for tag, texts in found.values.items():
        if tag not in terms.facts:
            yield Problem(name, "tag", f"{tag} is no fact of the commission")
        elif len(texts) > 1:
            yield Problem(name, "tag", f"{tag} marks different texts: {_quoted(texts)}")
        else:
            yield from _value_problems(name, tag, texts[0], terms)


def _text_problems(marked: Marked, text: str, terms: Terms) -> Iterator[Problem]:
    """Rules: `register`, none of the table; `length`, a fifth too short or long; `markup`."""
    registers = load_voices().registers
    register = marked.header.get("register", "")
    if register not in registers:
        reason = f"{register!r} is no kind of text; there are {', '.join(sorted(registers))}"
        yield Problem(marked.id, "register", reason)
    least, most = (round(terms.chars * (1 + sign * _SLACK)) for sign in (-1, 1))
    if not least <= len(text) <= most:
        reason = f"the text has {len(text)} characters, not {least} to {most}"
        yield Problem(marked.id, "length", reason)
    if match := _MARKUP.search(text):
        reason = f"the text holds {match[0]!r}; plain text is wanted"
        yield Problem(marked.id, "markup", reason)


def _query_problems(name: str, query: MarkedQuery, terms: Terms) -> Iterator[Problem]:
    """Rules: `needs`, `reference`, `domain` and `asker` are known; `query-length`."""
    if unknown := [tag for tag in query.needs if tag not in terms.facts]:
        yield Problem(name, "needs", f"{_quoted(unknown)} is no fact of the commission")
    if not 1 <= len(set(query.needs)) <= _MOST_NEEDED:
        yield Problem(name, "needs", f"a query needs {len(set(query.needs))} facts, not 1 to 3")
    for rule, value, allowed in (
        ("reference", query.reference, REFERENCES),
        ("domain", query.domain, load_voices().domains),
        ("asker", query.asker, (*sorted({tag[0] for tag in terms.facts}), *_OUTSIDE)),
    ):
        if value not in allowed:
            yield Problem(name, rule, f"{value!r} is none of {', '.join(allowed)}")
    if not _QUERY_CHARS[0] <= len(query.text) <= _QUERY_CHARS[1]:
        yield Problem(
            name, "query-length", f"a query has {len(query.text)} characters, not 60 to 420"
        )


def _value_problems(name: str, tag: str, text: str, terms: Terms) -> Iterator[Problem]:
    category = terms.facts[tag]
    pii_type = TYPE_OF_CATEGORY[category]
    if pii_type is not PiiType.PER and _ARTICLE.match(text):
        yield Problem(name, "article", f"{text!r} ({tag}) begins with an article or possessive")
    allowed = terms.allowed.get(tag, ())
    if category == "Phone Number":
        # A phone number may be grouped, and go without its country code.
        national = {value.partition("-")[2] for value in allowed}
        digits = _DIGITS.sub("", text)
        known = text in allowed or any(digits.endswith(n.lstrip("0")) for n in national if n)
    elif pii_type in {PiiType.PER, PiiType.CODE}:
        known = text in allowed
    else:
        known = True
    if not known:
        reason = f"{text!r} ({tag} {category}) is none of {_quoted(allowed)}"
        yield Problem(name, "value", reason)


def _wording_problems(sample: Sample) -> Iterator[Problem]:
    """What the checker of files cannot know: other people's names, and parts of values asked for.

    Rules: `titled-name`, "Mr Rice" in text or query; `query-part`, the query holds a proper
    name or number of a value, or two words of one in a row.
    """
    query = sample.query or ""
    for where, text in (("text", blanked(sample)), ("query", query)):
        for match in _TITLED.finditer(text):
            yield Problem(sample.id, "titled-name", f"the {where} names {match[0]!r}")
    asked = _WORD.findall(query)
    lower = [word.lower() for word in asked]
    pairs = set(pairwise(lower))
    needed = {related.text for related in sample.related}
    for entity in sample.entities:
        words = _WORD.findall(entity.text)
        if entity.type in {PiiType.LOC, PiiType.ORG, PiiType.PER, PiiType.CODE}:
            # A word in the middle of the query with its capital is a name.
            parts = [w for w in words if len(w) > 3 and not w.islower() and w in asked[1:]]
        else:
            parts = [w for w in words if len(w) > 1 and w.isdecimal() and w in asked]
        own = [word.lower() for word in words]
        if entity.text in needed:
            parts += [
                " ".join(pair)
                for pair in pairwise(own)
                if pair in pairs and any(len(word) > 3 for word in pair)
            ]
        for part in dict.fromkeys(parts):
            yield Problem(sample.id, "query-part", f"the query holds {part!r} of {entity.text!r}")


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
        for name, own in recorded.sets.items():
            for marked in own.values():
                if marked.id not in without:
                    self.add(name, marked)

    def problems(self, name: str, marked: Marked, samples: Sequence[Sample]) -> list[Problem]:
        """What speaks against recording a text.

        Rules: `register`, `opening`, `organisation`, `lead`, what too many texts have already;
        `near-duplicate`; `split`, a value or eight words in a row that the other split has.
        """
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


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(map(repr, texts))
