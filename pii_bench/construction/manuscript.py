"""Reading what a model wrote: the part that was asked for, and where values stand in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pii_bench.check import Problem
from pii_bench.check.text import is_inside, occurrences
from pii_bench.construction.people import Mention
from pii_bench.models.base import Finish
from pii_bench.parsing.completion import mend_surrogates, without_thought
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.construction.people import Profile
    from pii_bench.models.base import Completion

Placed = tuple[Mention, tuple[int, int]]
"""A mention and its span."""

_FENCE: Final = re.compile(r"^[ \t]*`{3,}\w*[ \t]*$\n?", re.MULTILINE)
_QUOTES: Final = {'"': '"', "“": "”", "'": "'"}
# Emphasis or brackets around values would show a reader of the text where they are.
_MARKUP: Final = re.compile(r"\*\*|[`<>{}\[\]]|^#", re.MULTILINE)

_SHORTEST, _LONGEST = 0.5, 1.8
_QUERY_CHARS: Final = (20, 700)


def read_part(completion: Completion, name: str) -> str | None:
    """The text between `<name>` and `</name>`, or behind a label such as `Query:`.

    Args:
        completion: the answer; its thought and code fences are left out.
        name: of the part.

    Returns:
        None where the answer was refused, cut off or has no such part.
    """
    if completion.finish in {Finish.REFUSAL, Finish.FILTER, Finish.LENGTH}:
        return None
    said = _FENCE.sub("", without_thought(mend_surrogates(completion.text)) or "")
    tagged = re.findall(rf"<{name}>(.*?)(?:</{name}>|\Z)", said, re.DOTALL | re.IGNORECASE)
    if tagged:
        return _unquoted(tagged[-1])
    label = re.search(rf"^\W*{name}\W*?:[*_\s]*", said, re.MULTILINE | re.IGNORECASE)
    return _unquoted(said[label.end() :]) if label else None


def find_mentions(text: str, profiles: Mapping[str, Profile]) -> list[Placed]:
    """Where the values stand, as whole words and not inside another value, in order.

    A value that two people have is a mention of both.
    """
    owners: dict[str, list[str]] = {}
    facts = {}
    for subject, profile in profiles.items():
        for fact in profile.facts:
            owners.setdefault(fact.value, []).append(subject)
            facts[fact.value] = fact
    found = {
        span: Mention(tuple(subjects), facts[value])
        for value, subjects in owners.items()
        for span in occurrences(value, text)
    }
    return [
        (found[span], span) for span in sorted(found) if not is_inside(span, found.keys() - {span})
    ]


def value_problems(
    sample_id: str, placed: Sequence[Placed], profiles: Mapping[str, Profile]
) -> Iterator[Problem]:
    """Values that stand nowhere, or twice.

    Rules: `value-missing`; `value-repeated`, a value other than a name stands more than once,
    and one of the places may mean something else ("32" an age, and a number of letters).
    """
    for subject, profile in profiles.items():
        for fact in profile.facts:
            times = sum(subject in m.subjects and m.fact.value == fact.value for m, _ in placed)
            what = f"{fact.category} of {subject}, {fact.value!r},"
            if not times:
                reason = f"{what} does not stand in the text, exactly so and as words of its own"
                yield Problem(sample_id, "value-missing", reason)
            elif times > 1 and TYPE_OF_CATEGORY[fact.category] is not PiiType.PER:
                reason = f"{what} stands in the text {times} times, not once"
                yield Problem(sample_id, "value-repeated", reason)


def description_problems(sample_id: str, text: str, chars: int) -> Iterator[Problem]:
    """What is wrong with the outside of a description.

    Rules: `length`, it is far shorter or longer than `chars`; `markup`, it is no plain text.
    """
    if not _SHORTEST * chars <= len(text) <= _LONGEST * chars:
        reason = f"the text has {len(text)} characters; about {chars} were asked for"
        yield Problem(sample_id, "length", reason)
    if match := _MARKUP.search(text):
        yield Problem(sample_id, "markup", f"the text holds {match[0]!r}; plain text was asked for")


def query_length_problems(sample_id: str, query: str) -> Iterator[Problem]:
    """Whether a query is a request of a few sentences. Rule: `query-length`."""
    least, most = _QUERY_CHARS
    if not least <= len(query) <= most:
        reason = f"the query has {len(query)} characters, not {least} to {most}"
        yield Problem(sample_id, "query-length", reason)


def answer_problem(sample_id: str, finish: Finish, name: str) -> Problem:
    """Why an answer has no such part. Rules: `refused`, `cut-off`, `no-answer`."""
    match finish:
        case Finish.REFUSAL | Finish.FILTER:
            return Problem(sample_id, "refused", "the model or its provider refused to write it")
        case Finish.LENGTH:
            return Problem(sample_id, "cut-off", "the answer reached the limit of its length")
        case _:
            return Problem(sample_id, "no-answer", f"the answer has no <{name}>")


def _unquoted(text: str) -> str | None:
    plain = text.strip()
    if len(plain) > 1 and _QUOTES.get(plain[0]) == plain[-1]:
        plain = plain[1:-1].strip()
    return plain or None
