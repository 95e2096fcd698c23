"""How many tokens a call takes, before it is made and without a tokenizer.

Tokens are counted from UTF-8 bytes, which holds for any script. No tokenizer in use makes
more tokens than the text has bytes, so that one token a byte is a bound. The other two
figures are rules of thumb: 4 characters of English a token (OpenAI, "What are tokens and
how to count them", help.openai.com/en/articles/4936856), 3.3 of English and 1.7 of Chinese
(DeepSeek, api-docs.deepseek.com/quick_start/token_usage); Claude's tokenizer since Opus 4.7
makes 30 % more tokens than the one before it (platform.claude.com, "Token counting"). The
tokenizer of Llama 2 takes 3.3 bytes a token on our descriptions and 2.0 on gold answers.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.models.base import Request

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Range(Generic[Number]):
    """A figure that is not known yet: at least, probably, at most."""

    low: Number
    expected: Number
    high: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)


# Bytes of a request that make one token.
_BYTES: Final = Range(low=5.0, expected=3.5, high=1.0)
# Beside the texts: marks of roles and turns, and what a provider adds to ask for a schema.
_OVERHEAD: Final = Range(low=0, expected=10, high=500)

# Bytes of detection's answer for one byte of the request, and that make one token: JSON is
# dense. Measured on gold answers: 0.08 in `single`, 0.16 in `multi`, 0.23 in `distract`.
_DETECTION_SHARE: Final = (0.05, 0.15)
_ANSWER_BYTES: Final = 2.5
# Likewise of a text that is written anew: it is prose, and the request has a page of rules.
_REWRITE_SHARE: Final = (0.05, 0.4)

# Tokens of an answer, (at least, probably). Assumptions: gold's list has 20 to 50 tokens, a
# worked thought of the demonstrations 160; the rest follows from the parts that are asked.
_ANSWERS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "naive": (5, 40),
        "naive-choice": (5, 40),
        "self-cot": (50, 250),
        "auto-cot": (50, 200),
        "ps-cot": (100, 400),
        "self-consistency": (150, 700),
        "self-consistency-vote": (50, 250),
        "json": (10, 150),
    }
)
_OTHER_ANSWER: Final = (1, 500)
# What a model reasons before that. An assumption: models differ more than prompts do.
_REASONING: Final = (100, 1000)


def input_tokens(request: Request) -> Range[int]:
    """Tokens of a request; `high` is a bound."""
    size = _size(request)
    return Range(
        low=math.ceil(size / _BYTES.low) + _OVERHEAD.low,
        expected=math.ceil(size / _BYTES.expected) + _OVERHEAD.expected,
        high=math.ceil(size / _BYTES.high) + _OVERHEAD.high,
    )


def text_tokens(texts: Iterable[str]) -> Range[int]:
    """Tokens of texts that are not sent, without marks of roles and turns; `high` is a bound."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return Range(*(math.ceil(size / each) for each in (_BYTES.low, _BYTES.expected, _BYTES.high)))


def output_tokens(request: Request, *, reasons: bool = False) -> Range[int]:
    """Tokens of the answer to a request; `high` is a bound: the longest that was allowed.

    Args:
        request: whose prompt tells how much there is to say.
        reasons: whether the model reasons first, which counts.
    """
    # `naive+schema` answers what `naive` does.
    name = request.prompt.partition("+")[0]
    if name == "detection":
        low, expected = (
            math.ceil(_size(request) * share / _ANSWER_BYTES) for share in _DETECTION_SHARE
        )
    elif name == "rewrite":
        low, expected = (
            math.ceil(_size(request) * share / _BYTES.expected) for share in _REWRITE_SHARE
        )
    else:
        low, expected = _ANSWERS.get(name, _OTHER_ANSWER)
    if reasons:
        low, expected = low + _REASONING[0], expected + _REASONING[1]
    longest = request.sampling.max_tokens
    return Range(min(low, longest), min(expected, longest), longest)


def _size(request: Request) -> int:
    """Bytes of all that is sent as text."""
    # A lone surrogate, which UTF-8 cannot hold, is sent as three bytes or as an escape.
    size = sum(len(turn.content.encode("utf-8", "surrogatepass")) for turn in request.messages)
    if request.schema is not None:
        size += len(json.dumps(dict(request.schema.schema)))
    return size
