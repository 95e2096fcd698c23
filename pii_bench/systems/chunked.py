"""Long texts in pieces: each is asked about by itself, and the answers are put together.

A piece ends behind a paragraph, else a line, a sentence or a word, so that few values are cut.
The pieces of a text make the text again, and where a value is, is looked for in the whole.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.systems.voted import ask_all

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Draws, Model, Request
    from pii_bench.systems.base import SystemCard
    from pii_bench.systems.prompted import PromptedSystem

_ENDS: Final = tuple(map(re.compile, (r"\n\s*\n\s*", r"\n\s*", r"[.!?。]\s+", r"\s+")))


@dataclass(frozen=True, slots=True)
class ChunkedSystem:
    """One prompt asked about each piece of a text (`System`).

    The pieces of a sample are asked about at the same time.

    Attributes:
        prompted: what is asked, and how; it answers detection in the labels of a taxonomy.
        chunk: the most characters of a piece, at least 1.
    """

    prompted: PromptedSystem
    chunk: int

    @property
    def model(self) -> Model:
        """Who is asked."""
        return self.prompted.model

    @property
    def card(self) -> SystemCard:
        """The prompted system's, with the size of a piece in its settings."""
        card = self.prompted.card
        return replace(card, settings={**card.settings, "chunk": self.chunk})

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample, piece by piece."""
        return tuple(
            replace(self.prompted.request(replace(sample, description=piece)), draw=number)
            for number, piece in enumerate(pieces(sample.description, self.chunk))
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the request about the whole and the size of a piece."""
        identity = f"{self.prompted.request_hash(sample)}:chunk {self.chunk}"
        return hashlib.sha256(identity.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Draws:
        """Ask about every piece; where one fails, those in flight are given up.

        Raises:
            CallError: a piece got no answer: the sample is asked about again whole.
            ProviderRefusedError: none of any sample will get an answer.
        """
        return await ask_all(self.model, self.requests(sample))

    async def close(self) -> None:
        """Close the model."""
        await self.prompted.close()


def pieces(text: str, most: int) -> list[str]:
    """A text cut into pieces of `most` characters or fewer, which joined are the text.

    A piece is at least half as long as allowed, but for the last.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > most:
        least, limit = start + (most + 1) // 2, start + most
        ends = ([each.end() for each in end.finditer(text, least, limit)] for end in _ENDS)
        cut = next((each[-1] for each in ends if each), limit)
        found.append(text[start:cut])
        start = cut
    return [*found, text[start:]]
