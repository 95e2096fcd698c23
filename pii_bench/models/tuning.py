"""What a chat model is fine-tuned on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pii_bench.models.base import Message


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the answer that a model is to give.

    Attributes:
        sample_id: whose it is.
        prompt: what is sent, as in a run.
        answer: what gold says, in the form that the prompt asks for.
    """

    sample_id: str
    prompt: tuple[Message, ...]
    answer: str
