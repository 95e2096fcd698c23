"""A prompt makes a system of a model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pii_bench.models.base import Request
from pii_bench.models.endpoints import is_loopback
from pii_bench.systems.base import THIS_MACHINE, SystemCard

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion, Model, Sampling
    from pii_bench.prompting.strategies import Prompt


@dataclass(frozen=True, slots=True)
class PromptedSystem:
    """A chat model asked through one prompt (`System`)."""

    model: Model
    prompt: Prompt
    sampling: Sampling

    @property
    def card(self) -> SystemCard:
        """The model's name and identity, the prompt's hash, settings and sampling."""
        strategy = self.prompt.strategy
        # Said only where it is a schema: the settings of other runs stay what they were.
        output = {"output": "schema"} if self.prompt.schema else {}
        return SystemCard(
            model=self.model.name,
            prompt=self.prompt.name,
            prompt_sha256=self.prompt.sha256,
            task=strategy.task,
            oracle=strategy.oracle,
            settings={
                **self.model.identity,
                **asdict(self.sampling),
                **output,
                **self.prompt.settings,
            },
            names_subjects=not strategy.labelled,
            unmasked_text_to=recipient(self.model),
            output="schema" if self.prompt.schema else "text",
            taxonomy=self.prompt.taxonomy,
        )

    def request(self, sample: Sample) -> Request:
        """What the model is asked about a sample."""
        return Request(
            sample_id=sample.id,
            prompt=self.prompt.name,
            messages=self.prompt.messages(sample),
            sampling=self.sampling,
            schema=self.prompt.schema,
        )

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """All that the model is asked about a sample: one request."""
        return (self.request(sample),)

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over model, identity, messages, sampling and schema."""
        request = self.request(sample)
        identity = {
            "model": self.model.name,
            "identity": dict(self.model.identity),
            "messages": [asdict(message) for message in request.messages],
            "sampling": asdict(request.sampling),
        }
        if request.schema is not None:
            # As text, because sorting would hide the order of its keys, which tells.
            identity["schema"] = json.dumps(asdict(request.schema))
        canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Completion:
        """Ask the model."""
        return await self.model.complete(self.request(sample))

    async def close(self) -> None:
        """Close the model; systems of one run share it, closing twice is harmless."""
        await self.model.close()


def recipient(model: Model) -> str:
    """Who is sent what a model is asked: `provider (URL)`, or this machine."""
    if model.endpoint is None or is_loopback(model.endpoint):
        return THIS_MACHINE
    return f"{model.name.partition('/')[0]} ({model.endpoint})"
