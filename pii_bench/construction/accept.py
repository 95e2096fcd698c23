"""Acceptance of written texts: checks by commission, by rules and against recorded texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from pii_bench.construction.commissions import ORDERS, REFERENCES, commission
from pii_bench.construction.declared import (
    FRONTIER,
    FRONTIER_SIZE,
    KINDS_OF_TEXT,
    OTHER,
    frontier_commission,
)
from pii_bench.construction.derived import (
    CONVERSATIONS,
    TWIN_SETS,
    Conversation,
    conversation,
    twin_kinds,
    twin_sources,
)
from pii_bench.construction.marked import Marked, MarkedQuery, Resolved, names_in, resolve
from pii_bench.construction.pools import TEXTS, load_voices
from pii_bench.construction.recorded import Recorded
from pii_bench.construction.rivals import Rivals
from pii_bench.datasets.check.run import sample_problems
from pii_bench.datasets.check.text import Problem, blanked
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType, type_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.construction.declared import FrontierCommission
    from pii_bench.datasets.sample import Sample

# Askers who are not a person of the text.
_OUTSIDE: Final = ("desk", "near", "other")

# "a hundred and one days" begins with a number, not with an article.
_ARTICLE: Final = re.compile(
    r"(?:an? (?!hundred|thousand|million|lakh|quarter|half|dozen|year|month|week|day|hour|minute)"
    r"|the |The |my |his |her |their |our )"
)
_TITLED: Final = re.compile(
    r"\b(?:Mrs?|Ms|Miss|Mx|Dr|Prof|Sir|Madam|Señora?|Herr|Frau|Mme)\b\.? [A-Z]\w+"
)
_WAIVED_FOR_OTHER: Final = frozenset(
    {"format", "query-name", "query-part", "query-value", "related-count", "titled-name"}
)
"""Rules that do not apply to `train-other`, where people write and ask in any form."""

_DIGITS: Final = re.compile(r"\D+")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# Leftover marks would show where the values are.
_BRACES: Final = re.compile(r"\{[^|]*\||[{}]")
_MARKUP: Final = re.compile(r"\*\*|`|^#{1,4} ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Terms:
    """Requirements for a text, from its commission or from its recorded version.

    Attributes:
        facts: tag to category.
        allowed: tag to the allowed values of a name or number.
        kinds: kinds of the queries, in order.
        chars: length of the description; None for twins, which have none.
        header: the header to record with the text.
        needs: range of the number of related entities; likewise `query_chars`.
        has_register: True if the header must name the kind of text.
        exact: True if `allowed` applies to all values, not only to names and numbers.
        any_form: True if names may be in another script, and numbers grouped or broken.
        waived: rules that do not apply to the samples.
    """

    facts: Mapping[str, str]
    allowed: Mapping[str, tuple[str, ...]]
    kinds: tuple[str, ...]
    chars: int | None
    header: Mapping[str, str]
    needs: tuple[int, int] = (1, 3)
    query_chars: tuple[int, int] = (60, 420)
    has_register: bool = False
    exact: bool = False
    any_form: bool = False
    waived: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one written text, which is recorded if it has no problems."""

    id: str
    problems: tuple[Problem, ...]
    chars: int
    wanted: int


def accept(written: Sequence[Marked], folder: Path = TEXTS) -> list[Verdict]:
    """Check written texts, and record those without problems in a folder.

    Each text is also compared with the accepted ones before it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        recorded = Recorded.load(folder)
        # Do not compare a text with its own earlier version.
        rivals = Rivals(recorded, without={marked.id for marked in written})
        return [_accept_one(marked, recorded, rivals) for marked in written]


def _accept_one(marked: Marked, recorded: Recorded, rivals: Rivals) -> Verdict:
    name = marked.id.rpartition("-")[0]
    try:
        terms = _terms(marked, recorded)
    except _UnknownError as error:
        problem = Problem(marked.id, "commission", str(error))
        return Verdict(marked.id, (problem,), chars=0, wanted=0)
    register = {"register": marked.header.get("register", "")} if terms.has_register else {}
    completed = replace(marked, header={**register, **terms.header})
    problems = list(_terms_problems(marked, terms))
    # A text with other problems may have no samples.
    if not problems:
        samples = recorded.samples_of(completed)
        for sample in samples:
            problems += (
                replace(problem, sample_id=marked.id)
                for problem in (*sample_problems(sample), *_wording_problems(sample))
                if problem.rule not in terms.waived
            )
        problems = list(dict.fromkeys(problems))
        problems += rivals.problems(name, completed, samples)
    if not problems:
        recorded.add(name, completed)
        rivals.add(name, completed)
    chars = len(resolve(marked.text).text)
    return Verdict(marked.id, tuple(problems), chars, terms.chars or 0)


class _UnknownError(Exception):
    """There is no commission for a text."""


def _terms(marked: Marked, recorded: Recorded) -> Terms:
    sample_id = marked.id
    name, _, digits = sample_id.rpartition("-")
    number = int(digits) if digits.isdecimal() else 0
    if name in ORDERS and 1 <= number <= ORDERS[name].size:
        earlier = recorded.sets[name].get(sample_id)
        exact = recorded.is_joined(sample_id)
        return _recorded_terms(earlier, exact=exact) if earlier else _commission_terms(name, number)
    if name in TWIN_SETS:
        sources = twin_sources(recorded, name)
        if 1 <= number <= len(sources):
            return _twin_terms(*sources[number - 1], name)
    if name == "distract" and 1 <= number <= CONVERSATIONS:
        return _conversation_terms(conversation(recorded, number))
    if name == FRONTIER and 1 <= number <= FRONTIER_SIZE:
        return _frontier_terms(marked, frontier_commission(number))
    if name == OTHER and number:
        return _other_terms(marked)
    raise _UnknownError("no commission has this id")


def _commission_terms(name: str, number: int) -> Terms:
    brief = commission(ORDERS[name], number)
    facts = {tag: fact.category for tag, fact in brief.facts.items()}
    return Terms(
        facts=facts,
        allowed={tag: brief.allowed(tag) for tag in facts},
        kinds=("query",) * len(brief.queries),
        chars=brief.chars,
        header={
            **({"relation": brief.relation.name} if brief.relation else {}),
            "voice": brief.voice,
            "theme": brief.theme,
            "form": brief.form,
            "chars": str(brief.chars),
            "facts": _format_facts(facts),
        },
        has_register=True,
    )


def _recorded_terms(earlier: Marked, *, exact: bool) -> Terms:
    """Return terms by which a new version keeps the facts, names and numbers, or all values."""
    resolved = resolve(earlier.text)
    return Terms(
        facts=earlier.facts,
        allowed=resolved.values,
        kinds=tuple(query.kind for query in earlier.queries),
        chars=int(earlier.header.get("chars", len(resolved.text))),
        header={key: value for key, value in earlier.header.items() if key != "register"},
        has_register=True,
        exact=exact,
    )


def _twin_terms(source: Marked, later: str, name: str) -> Terms:
    return Terms(
        facts=source.facts,
        allowed={},
        kinds=twin_kinds(source, name, later),
        chars=None,
        header={"of": source.id},
    )


def _conversation_terms(brief: Conversation) -> Terms:
    return Terms(
        facts=brief.facts,
        allowed={tag: (value,) for tag, value in brief.values.items()},
        kinds=("query",),
        chars=brief.chars,
        header={
            "template": brief.template,
            "joined": " ".join(brief.joined),
            "facts": _format_facts(brief.facts),
        },
        needs=(3, 9),
        query_chars=(450, 1300),
        exact=True,
    )


def _frontier_terms(marked: Marked, brief: FrontierCommission) -> Terms:
    """Return terms with the declared facts, and the names and numbers of the cast."""
    facts = marked.facts
    cast = {member.letter: member for member in brief.cast}
    for tag, category in facts.items():
        if category not in TYPE_OF_CATEGORY or tag[:1] not in cast:
            fact = f"{tag} {category}"
            raise _UnknownError(f"header: {fact!r} is no tag of the cast and category")
    return Terms(
        facts=facts,
        allowed={tag: cast[tag[0]].allowed(category) for tag, category in facts.items()},
        kinds=("query",),
        chars=brief.chars,
        header={
            "reasons": " ".join(brief.reasons),
            "voice": brief.voice,
            "theme": brief.theme,
            "chars": str(brief.chars),
            "facts": _format_facts(facts),
        },
        needs=(0, len(facts)),
        query_chars=(40, 700),
        has_register=True,
        any_form="forms" in brief.reasons,
    )


def _other_terms(marked: Marked) -> Terms:
    """Return terms with the declared kind and facts; names, numbers and length are free."""
    kind = marked.header.get("kind", "")
    if kind not in KINDS_OF_TEXT:
        kinds = ", ".join(KINDS_OF_TEXT)
        raise _UnknownError(f"header: {kind!r} is no kind of text; there are {kinds}")
    facts = marked.facts
    for tag, category in facts.items():
        # Where no category fits, a fact has only a type.
        if category not in {*TYPE_OF_CATEGORY, *PiiType}:
            fact = f"{tag} {category}"
            raise _UnknownError(f"header: {fact!r} is no tag with a category or type")
    resolved = resolve(marked.text)
    return Terms(
        facts=facts,
        allowed=resolved.values,
        kinds=tuple(query.kind for query in marked.queries),
        chars=len(resolved.text),
        header={"kind": kind, "facts": _format_facts(facts) or "-"},
        needs=(0, len(facts)),
        query_chars=(8, 700),
        waived=_WAIVED_FOR_OTHER,
    )


def _format_facts(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{tag} {category}" for tag, category in facts.items())


def _terms_problems(marked: Marked, terms: Terms) -> Iterator[Problem]:
    if terms.chars is not None:
        resolved = resolve(marked.text, names_in(terms.facts))
        yield from _mark_problems(marked.id, resolved, terms)
        yield from _text_problems(marked, resolved.text, terms, terms.chars)
    kinds = tuple(query.kind for query in marked.queries)
    if kinds != terms.kinds:
        yield Problem(marked.id, "queries", f"the queries are {kinds}, not {terms.kinds}")
    for query in marked.queries:
        yield from _query_problems(marked.id, query, terms)


def _mark_problems(name: str, resolved: Resolved, terms: Terms) -> Iterator[Problem]:
    """Find broken marks (`mark`), and missing, unknown or ambiguous tags (`tag`)."""
    for piece in resolved.stray:
        yield Problem(name, "mark", f"{piece!r} looks like a broken mark")
    for tag in sorted(terms.facts.keys() - resolved.values.keys()):
        yield Problem(name, "tag", f"{tag} ({terms.facts[tag]}) is marked nowhere")
    for tag, texts in resolved.values.items():
        if tag not in terms.facts:
            yield Problem(name, "tag", f"{tag} is no fact of the commission")
        elif len(texts) > 1:
            yield Problem(name, "tag", f"{tag} marks different texts: {_quoted(texts)}")
        else:
            yield from _value_problems(name, tag, texts[0], terms)


def _text_problems(marked: Marked, text: str, terms: Terms, chars: int) -> Iterator[Problem]:
    """Find an unknown `register`, a wrong `length`, and `markup`."""
    register, registers = marked.header.get("register", ""), load_voices().registers
    if terms.has_register and register not in registers:
        reason = f"{register!r} is no kind of text; there are {', '.join(sorted(registers))}"
        yield Problem(marked.id, "register", reason)
    least, most = round(chars * 0.8), round(chars * 1.2)
    if not least <= len(text) <= most:
        reason = f"the text has {len(text)} characters, not {least} to {most}"
        yield Problem(marked.id, "length", reason)
    if match := _MARKUP.search(text):
        reason = f"the text holds {match[0]!r}; plain text is wanted"
        yield Problem(marked.id, "markup", reason)


def _query_problems(name: str, query: MarkedQuery, terms: Terms) -> Iterator[Problem]:
    """Find unknown `needs`, `reference`, `domain` or `asker`, a `mark`, a wrong `query-length`."""
    if unknown := [tag for tag in query.needs if tag not in terms.facts]:
        yield Problem(name, "needs", f"{_quoted(unknown)} is no fact of the commission")
    least, most = terms.needs
    if not least <= len(set(query.needs)) <= most:
        reason = f"a query needs {len(set(query.needs))} facts, not {least} to {most}"
        yield Problem(name, "needs", reason)
    for rule, value, allowed in (
        ("reference", query.reference, REFERENCES),
        ("domain", query.domain, load_voices().domains),
        ("asker", query.asker, (*sorted({tag[0] for tag in terms.facts}), *_OUTSIDE)),
    ):
        if value not in allowed:
            yield Problem(name, rule, f"{value!r} is none of {', '.join(allowed)}")
    if match := _BRACES.search(query.text):
        yield Problem(name, "mark", f"the query holds {match[0]!r}; nothing is marked in a query")
    least, most = terms.query_chars
    if not least <= len(query.text) <= most:
        reason = f"a query has {len(query.text)} characters, not {least} to {most}"
        yield Problem(name, "query-length", reason)


def _value_problems(name: str, tag: str, text: str, terms: Terms) -> Iterator[Problem]:
    category = terms.facts[tag]
    pii_type = type_named(category)
    allowed = terms.allowed.get(tag, ())
    if pii_type is not PiiType.PER and _ARTICLE.match(text):
        yield Problem(name, "article", f"{text!r} ({tag}) begins with an article or possessive")
    if terms.exact:
        known = text in allowed
    elif category == "Phone Number":
        # A phone number may be grouped, and lack its country code.
        national = {value.partition("-")[2] for value in allowed}
        digits = _DIGITS.sub("", text)
        known = text in allowed or any(digits.endswith(n.lstrip("0")) for n in national if n)
    elif terms.any_form:
        known = pii_type is not PiiType.CODE or _bare(text) in map(_bare, allowed)
    elif pii_type in {PiiType.PER, PiiType.CODE}:
        known = text in allowed
    else:
        known = True
    if not known:
        reason = f"{text!r} ({tag} {category}) is none of {_quoted(allowed)}"
        yield Problem(name, "value", reason)


def _bare(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _wording_problems(sample: Sample) -> Iterator[Problem]:
    """Find names of other people, and parts of values in the query.

    Rules: `titled-name`, such as "Mr Rice", in the text or query; `query-part`, a proper name,
    number or two successive words of a value in the query.
    """
    query = sample.query or ""
    for where, text in (("text", blanked(sample)), ("query", query)):
        for match in _TITLED.finditer(text):
            yield Problem(sample.id, "titled-name", f"the {where} names {match[0]!r}")
    query_words = _WORD.findall(query)
    query_pairs = set(pairwise(word.lower() for word in query_words))
    needed = {related.text for related in sample.related}
    for entity in sample.entities:
        words = _WORD.findall(entity.text)
        if entity.type in {PiiType.LOC, PiiType.ORG, PiiType.PER, PiiType.CODE}:
            # A capitalised word is a name, unless it is the first of the query.
            parts = [w for w in words if len(w) > 3 and not w.islower() and w in query_words[1:]]
        else:
            parts = [w for w in words if len(w) > 1 and w.isdecimal() and w in query_words]
        if entity.text in needed:
            for pair in pairwise(word.lower() for word in words):
                if pair in query_pairs and any(len(word) > 3 for word in pair):
                    parts.append(" ".join(pair))
        for part in dict.fromkeys(parts):
            yield Problem(sample.id, "query-part", f"the query holds {part!r} of {entity.text!r}")


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(map(repr, texts))
