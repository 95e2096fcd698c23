"""The completion around an answer: thought, fences, bullets, refusals and how it ended.

`read_completion` is the order of the steps for both kinds of answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.result import Stage, in_order
from pii_bench.tasks import Status

if TYPE_CHECKING:
    from collections.abc import Callable

Payload = TypeVar("Payload", bound=tuple[object, ...])

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_ZERO_WIDTH = re.compile("[\u200b\u2060\ufeff]+")
_FENCE = re.compile(
    r"^[ \t]*`{3,}[\w+-]*[ \t]*$|`{3,}(?:jsonl?|python|text|plaintext|markdown)?", re.MULTILINE
)

_SURROGATE = re.compile("[\ud800-\udfff]")

_REFUSAL_REACH: Final = 300
_CANNOT = r"(?:can't|cannot|can not|won't|will not|(?:am|'m) (?:unable|not able) to|must decline)"
_REFUSALS = {
    "apology and inability": rf"\b(?:sorry|apologi[sz]e)\b.{{0,60}}?\bI ?{_CANNOT}",
    "inability to do the task": rf"\bI ?{_CANNOT}(?: to)? (?:help|assist|provide|comply|process"
    r"|extract|identify|share|fulfill?|complete|continue|answer|discuss|do that|engage)(?! any\b)",
    "I decline": r"\bI (?:must|have to|respectfully) decline",
    "as an AI": r"\bas an? (?:AI|artificial intelligence|(?:large )?language)"
    r"(?:,| (?:language )?(?:model|assistant|system)\b)",
    "against the rules": r"\b(?:against|violates?) (?:my|our|the) (?:\w+ )?(?:guidelines|polic)",
}
"""Openers of refusals, looked for only in the first characters of an answer."""

_REFUSAL = re.compile("|".join(_REFUSALS.values()), re.IGNORECASE | re.DOTALL)

DECORATION: Final = " \t\r\n*_>#`.。"
"""Characters around an answer that say nothing."""

_BULLET = re.compile(r"[ \t]*+(?:[-*•–+‣]|\(?\d{1,3}[.)])[ \t]++(\S.*)")
_NOTHING = re.compile(
    r"[\s*_(\"']*+(?:(?:none|null|nil|n/a|nothing|empty)"
    r"(?=[^\w\s/]|\s*$|\s+(?:of|is|are|was|were|needed|required|found|relevant|to)\b)"
    r"|no(?: [\w-]+){0,3} (?:pii|entit\w+|information|data|spans?|items?|subjects?)\b)",
    re.IGNORECASE,
)


def read_completion(
    completion_text: str,
    finish: Finish,
    read_expected: Callable[[str], Payload | None],
    read_tolerant: Callable[[str, Finish, set[Stage]], Payload | Status],
) -> tuple[Payload | None, Status, tuple[str, ...]]:
    """Read an answer strictly, then without its thought, then with repairs.

    Args:
        completion_text: the completion, raw.
        finish: why the model stopped.
        read_expected: reads the form that the prompt asks for, and gives None for others.
        read_tolerant: reads any form, adding to the stages what it needed, or gives the
            status that says why it cannot.

    Returns:
        The payload (None without an answer), the status and the names of the stages.
    """
    if status := settled(completion_text, finish):
        return None, status, ()
    text = mend_surrogates(completion_text)
    repairs = {Stage.LONE_SURROGATE} if text != completion_text else set()
    said = without_thought(text)
    payload = read_expected(text)
    if payload is None:
        if said is None:
            return None, unreadable("", finish), ()
        if status := settled(said, finish):
            return None, status, ()
        payload = read_expected(said)
    if payload is None and said is not None:
        read = read_tolerant(_without_wrapping(said, repairs), finish, repairs)
        if isinstance(read, Status):
            return None, read, ()
        payload = read
    return payload, Status.REPAIRED if repairs else Status.OK, in_order(repairs)


def settled(text: str, finish: Finish) -> Status | None:
    """Give the status that the finish reason or a blank text settles, else None."""
    if finish is Finish.FILTER:
        return Status.FILTERED
    if finish is Finish.REFUSAL:
        return Status.REFUSED
    if text.strip():
        return None
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.EMPTY


def without_thought(text: str) -> str | None:
    """Remove reasoning blocks: `<think>`, `<thinking>`, `<reasoning>`.

    To reason is normal for a reasoning model, so no stage is recorded. Where a closing
    tag has no opening one (chat templates eat it), all before it is thought.

    Returns:
        What was said, or None where the last block is never closed.
    """
    said: list[str] = []
    after = 0
    thinking = False
    for tag in _TAG.finditer(text):
        closing = bool(tag[1])
        if closing and not thinking:
            said.clear()
        elif not closing and not thinking:
            said.append(text[after : tag.start()])
        thinking = not closing
        after = tag.end()
    return None if thinking else "".join([*said, text[after:]])


def mend_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone halves by U+FFFD, so that the text encodes."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_wrapping(text: str, repairs: set[Stage]) -> str:
    """Remove zero-width characters and code fences; record what was removed.

    Joiners (U+200C, U+200D) stay: names in some scripts need them.
    """
    plain = _ZERO_WIDTH.sub("", text)
    if plain != text:
        repairs.add(Stage.ZERO_WIDTH)
    bare = _FENCE.sub(" ", plain)
    if bare != plain:
        repairs.add(Stage.CODE_FENCE)
    return bare


def is_refusal(text: str) -> bool:
    """Say whether the text opens like a refusal."""
    return _REFUSAL.search(text.strip()[:_REFUSAL_REACH].replace("’", "'")) is not None


def unreadable(text: str, finish: Finish) -> Status:
    """Give the status of a text in which no answer was found."""
    if is_refusal(text):
        return Status.REFUSED
    return Status.TRUNCATED if finish is Finish.LENGTH else Status.MALFORMED


def bullet_item(line: str) -> str | None:
    """Give what follows a bullet or a number, or None where there is neither."""
    found = _BULLET.fullmatch(line)
    return found[1].strip() if found else None


def says_nothing(line: str) -> bool:
    """Say whether a line means that there is nothing to name (None, N/A, no PII ...)."""
    return _NOTHING.match(line[:120]) is not None
