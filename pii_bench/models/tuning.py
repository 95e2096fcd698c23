"""Files for fine-tuning chat models: formats, limits and prices of the services.

Limits and prices are those that the services documented on the dates given:

- OpenAI: at least 10 examples (https://developers.openai.com/api/docs/guides/supervised-fine-tuning,
  2026-05-07), at most 65,536 tokens per example, longer ones are truncated
  (https://developers.openai.com/api/docs/guides/fine-tuning-best-practices), files of 512 MB
  (https://platform.openai.com/docs/api-reference/files/create), prices per token and epoch
  (https://developers.openai.com/api/docs/pricing). The guide says that the platform is no longer
  open to new users.
- Mistral: the last message is the assistant's, files of 512 MB, a fee of at least 4 USD per job
  (https://docs.mistral.ai/capabilities/finetuning/text_vision_finetuning, marked deprecated).
  Prices are those of 2024-12-22, the last ones known here (Souza, "Taming LLMs", chapter on
  preference-based alignment, from https://mistral.ai/technology).
- transformers: TRL's conversational prompt and completion, with the loss on the completion only
  (https://huggingface.co/docs/trl/sft_trainer, "Expected dataset type and format").
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import PiiBenchError
from pii_bench.models.budget import Range, text_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.models.base import Message


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and its gold answer."""

    sample_id: str
    prompt: tuple[Message, ...]
    answer: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all messages."""
        return (*(message.content for message in self.prompt), self.answer)


class Format(StrEnum):
    """The service or library that reads the file."""

    OPENAI = "openai"
    MISTRAL = "mistral"
    TRANSFORMERS = "transformers"


@dataclass(frozen=True, slots=True)
class Service:
    """Limits and prices of a service; None for those that it does not document.

    Attributes:
        least_examples: per file.
        most_bytes: per file.
        most_tokens: per example.
        training: USD per million tokens and epoch, by model.
        least_usd: per job.
        notice: a warning to the user.
    """

    least_examples: int = 1
    most_bytes: int | None = None
    most_tokens: int | None = None
    training: Mapping[str, float] = field(default_factory=dict)
    least_usd: float = 0.0
    notice: str = ""


SERVICES: Final[Mapping[Format, Service]] = {
    Format.OPENAI: Service(
        least_examples=10,
        most_bytes=512 * 10**6,
        most_tokens=65_536,
        training={
            "gpt-4.1-2025-04-14": 25.0,
            "gpt-4.1-mini-2025-04-14": 5.0,
            "gpt-4.1-nano-2025-04-14": 1.5,
            "gpt-4o-2024-08-06": 25.0,
            "gpt-4o-mini-2024-07-18": 3.0,
        },
        notice="OpenAI lets no new users fine-tune (guide of 2026-05-07)",
    ),
    Format.MISTRAL: Service(
        most_bytes=512 * 10**6,
        training={"mistral-large-2411": 9.0, "mistral-small": 3.0, "open-mistral-nemo": 1.0},
        least_usd=4.0,
        notice="Mistral's documentation calls fine-tuning deprecated; prices of 2024-12-22",
    ),
    Format.TRANSFORMERS: Service(),
}


@dataclass(frozen=True, slots=True)
class TuningFile:
    """The JSON Lines of a file, the number of its examples, and their tokens."""

    text: str
    examples: int
    tokens: Range[int]


def tuning_file(
    examples: Sequence[Example], form: Format, count: Callable[[str], int] | None = None
) -> TuningFile:
    """Format examples for a service.

    Without a function that counts the tokens of a text, they are estimated from its bytes.

    Raises:
        PiiBenchError: the file or an example exceeds a limit of the service.
    """
    service = SERVICES[form]
    tokens = Range(0, 0, 0)
    for example in examples:
        length = _tokens(example, count)
        if service.most_tokens is not None and length.expected > service.most_tokens:
            raise PiiBenchError(
                f"sample {example.sample_id!r} has about {length.expected:,} tokens; {form} takes "
                f"at most {service.most_tokens:,} an example"
            )
        tokens += length
    if len(examples) < service.least_examples:
        raise PiiBenchError(
            f"{len(examples)} examples; {form} takes at least {service.least_examples}"
        )
    text = "".join(
        json.dumps(_line(example, form), ensure_ascii=False) + "\n" for example in examples
    )
    size = len(text.encode())
    if service.most_bytes is not None and size > service.most_bytes:
        raise PiiBenchError(f"{size:,} bytes; {form} takes at most {service.most_bytes:,} a file")
    return TuningFile(text, len(examples), tokens)


def training_usd(tokens: Range[int], epochs: int, form: Format) -> dict[str, Range[float]]:
    """Return the cost of a job in USD, by model; empty if training is free."""
    service = SERVICES[form]

    def usd(count: int, price: float) -> float:
        return max(service.least_usd, count * epochs * price / 1e6)

    return {
        model: Range(usd(tokens.low, price), usd(tokens.expected, price), usd(tokens.high, price))
        for model, price in service.training.items()
    }


def _tokens(example: Example, count: Callable[[str], int] | None) -> Range[int]:
    if count is None:
        return text_tokens(example.texts)
    exact = sum(map(count, example.texts))
    return Range(exact, exact, exact)


def _line(example: Example, form: Format) -> dict[str, Any]:
    prompt = [asdict(message) for message in example.prompt]
    answer = [{"role": "assistant", "content": example.answer}]
    if form is Format.TRANSFORMERS:
        return {"prompt": prompt, "completion": answer}
    return {"messages": prompt + answer}
