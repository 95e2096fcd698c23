"""The parser of a text that a model wrote anew: all that is behind `### Text:`."""

from __future__ import annotations

import re
from typing import Final

from pii_bench.models.base import Finish
from pii_bench.prompting.parsing.completion import is_refusal, read_completion
from pii_bench.prompting.parsing.result import ParsedRewriting, Stage
from pii_bench.tasks import Status

_EXPECTED: Final = re.compile(r"\s*### Text:[ \t]*\n?(.*)", re.DOTALL)
_MARKER: Final = re.compile(
    r"^[ \t>#*_]*(?:the[ \t]+)?(?:new[ \t]+|re-?written[ \t]+)?text[*_ \t]*[:：][*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING: Final = re.compile(
    r"\s*(?:sure|certainly|of course|okay|here(?:'s| is| are))\b[^\n]{0,200}[:：][ \t]*\n",
    re.IGNORECASE,
)


def parse_rewriting(completion: str, finish: Finish = Finish.STOP) -> ParsedRewriting:
    """Read a completion; nothing raises.

    A text that was cut off is no text: what the query needs may be in what is lacking.

    Args:
        completion: raw.
        finish: why the model stopped.
    """
    if finish is Finish.LENGTH:
        return ParsedRewriting(None, Status.TRUNCATED)
    payload, status, repairs = read_completion(completion, finish, _expected, _tolerant)
    return ParsedRewriting(payload[0] if payload else None, status, repairs)


def _expected(text: str) -> tuple[str] | None:
    match = _EXPECTED.fullmatch(text)
    said = match[1].strip() if match and len(_MARKER.findall(text)) == 1 else ""
    return (said,) if said and "```" not in said else None


def _tolerant(text: str, _: Finish, repairs: set[Stage]) -> tuple[str] | Status:
    markers = list(_MARKER.finditer(text))
    # A prompt that is repeated has the marker too: what is behind the last one counts.
    if markers:
        last = markers[-1]
        said = text[last.end() :]
        if last[0] != "### Text:":
            repairs.add(Stage.MARKER_VARIANT)
        if text[: last.start()].strip():
            repairs.add(Stage.PROSE_AROUND)
    else:
        if is_refusal(text):
            return Status.REFUSED
        repairs.add(Stage.NO_MARKER)
        said = text
        if opening := _OPENING.match(text):
            said = text[opening.end() :]
            repairs.add(Stage.PROSE_AROUND)
    said = said.strip()
    return (said,) if said else Status.EMPTY
