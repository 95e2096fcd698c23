"""The detection prompt and the six strategies for query-related PII (paper, Section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.errors import UnknownNameError
from pii_bench.models.base import Message
from pii_bench.prompting.template import (
    Template,
    content_hash,
    load_template,
    read_prompt_text,
)
from pii_bench.resources import PROMPTS
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a prompt is made of. Its text is the file `<name>.txt`.

    Attributes:
        name: as the command line and results write it.
        task: the task that its answers solve.
        fields: the placeholders that its file must have.
        demonstrations: the file of worked examples, where it shows any.
        oracle: whether it is told gold: an upper bound, never ranked with the rest.
    """

    name: str
    task: Task
    fields: frozenset[str]
    demonstrations: str | None = None
    oracle: bool = False


_PLAIN: Final = frozenset({"description", "query"})

DETECTION: Final = Strategy("detection", Task.DETECTION, frozenset({"description"}))

STRATEGIES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("naive", Task.QUERY_RELATED, _PLAIN),
            Strategy("naive-choice", Task.QUERY_RELATED, _PLAIN | {"choices"}, oracle=True),
            Strategy("self-cot", Task.QUERY_RELATED, _PLAIN),
            Strategy(
                "auto-cot",
                Task.QUERY_RELATED,
                _PLAIN | {"demonstrations"},
                demonstrations="auto-cot.demonstrations.txt",
            ),
            Strategy("self-consistency", Task.QUERY_RELATED, _PLAIN),
            Strategy("ps-cot", Task.QUERY_RELATED, _PLAIN),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A strategy with its files read: turns a sample into messages.

    Attributes:
        sha256: hash of every text that reaches the model beside the sample's own.
    """

    strategy: Strategy
    template: Template
    demonstrations: str
    sha256: str

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """What is sent for a sample: one user message, as in the paper."""
        values = {name: _FILLERS[name](self, sample) for name in self.strategy.fields}
        return (Message("user", self.template.render(values)),)


def get_strategy(name: str) -> Strategy:
    """Look a strategy up.

    Raises:
        UnknownNameError: no such strategy.
    """
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, STRATEGIES)
    return STRATEGIES[name]


def load_prompt(strategy: Strategy, folder: Path = PROMPTS) -> Prompt:
    """Read a strategy's files.

    Raises:
        PromptError: a file is absent, or its placeholders are not the strategy's fields.
    """
    template = load_template(folder / f"{strategy.name}.txt", strategy.fields)
    demonstrations = (
        read_prompt_text(folder / strategy.demonstrations) if strategy.demonstrations else ""
    )
    return Prompt(strategy, template, demonstrations, content_hash(template.text, demonstrations))


def _choices(_: Prompt, sample: Sample) -> str:
    # In the order of the text, not of the subjects: only E is told, not whose it is.
    places: dict[str, int] = {}
    for entity in sample.entities:
        place = min(entity.spans, default=(sample.description.find(entity.text), 0))[0]
        places[entity.text] = min(place, places.get(entity.text, place))
    return "\n".join(f"- {text}" for text in sorted(places, key=lambda text: places[text]))


_FILLERS: Final[Mapping[str, Callable[[Prompt, Sample], str]]] = MappingProxyType(
    {
        "description": lambda _, sample: sample.description,
        "query": lambda _, sample: sample.query or "",
        "choices": _choices,
        "demonstrations": lambda prompt, _: prompt.demonstrations,
    }
)
