"""Prompt files with placeholders such as `{{description}}`, and the strategies that use them.

Six strategies are the paper's (Section 4). `self-consistency-vote` is self-consistency as defined
by Wang et al. (2022, arXiv:2203.11171); the paper asks for several reflections in one call
instead. `json` detects with the labels of any taxonomy, with or without examples. `rewrite` asks
the model to rewrite the text.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pii_bench.errors import PiiBenchError, PromptError, UnknownNameError
from pii_bench.files import PROMPTS
from pii_bench.models.base import AnswerSchema, Message
from pii_bench.tasks import Task
from pii_bench.taxonomy import PAPER, PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.labelled import Example, Shots


# Prompts contain single braces (JSON) and dollars (money), so neither marks a placeholder.
_PLACEHOLDER: Final = re.compile(r"\{\{([A-Za-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a prompt file with placeholders."""

    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """Fill the placeholders in one pass: braces inside values stay."""
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def load_template(path: Path, fields: frozenset[str]) -> Template:
    """Read a prompt file and check its placeholders against the fields that will be filled.

    Raises:
        PromptError: the file cannot be read, a field has no placeholder, a placeholder has no
            field, or double braces are not a placeholder.
    """
    template = Template(read_prompt_text(path))
    names = set(_PLACEHOLDER.findall(template.text))
    for number, line in enumerate(template.text.splitlines(), 1):
        if "{{" in _PLACEHOLDER.sub("", line):
            raise PromptError(f"{path}: line {number}: '{{{{' that opens no placeholder")
    if missing := sorted(fields - names):
        raise PromptError(f"{path}: no placeholder for {', '.join(missing)}")
    if unknown := sorted(names - fields):
        allowed = ", ".join(sorted(fields))
        raise PromptError(f"{path}: nothing fills {', '.join(unknown)} (allowed: {allowed})")
    return template


def read_prompt_text(path: Path) -> str:
    """Read a prompt file without surrounding white space.

    Raises:
        PromptError: the file is absent, unreadable or empty.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path}: {error}") from error
    if not text:
        raise PromptError(f"{path}: the file is empty")
    return text


def content_hash(*texts: str) -> str:
    """Return the hexadecimal SHA-256 of a sequence of texts, including where each ends."""
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


Output: TypeAlias = Literal["text", "schema"]
"""How the form of an answer is set: by the prompt, or by a schema that the provider enforces."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to ask a chat model.

    Attributes:
        fields: the placeholders of its prompt file.
        oracle: True if the prompt contains gold: an upper bound that is not ranked.
        reasoning: parts that the model writes before the answer, in order; keys of the schema.
        text: the strategy whose prompt file it uses; None for its own, `<name>.txt`.
        voted: True if the model is asked several times and the majority is the answer.
        labelled: True if answers are values by label of a taxonomy, without subjects.
    """

    name: str
    task: Task = Task.QUERY_RELATED
    fields: frozenset[str] = frozenset({"description", "query"})
    oracle: bool = False
    reasoning: tuple[str, ...] = ()
    text: str | None = None
    voted: bool = False
    labelled: bool = False


DETECTION: Final = Strategy("detection", Task.DETECTION, frozenset({"description"}))

STRATEGIES: Final[Mapping[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        Strategy("naive"),
        Strategy(
            "naive-choice", fields=frozenset({"description", "query", "choices"}), oracle=True
        ),
        Strategy("self-cot", reasoning=("thought",)),
        Strategy(
            "auto-cot",
            fields=frozenset({"description", "query", "demonstrations"}),
            reasoning=("thought",),
        ),
        Strategy("self-consistency", reasoning=("reflections", "summary")),
        Strategy("ps-cot", reasoning=("plan", "thought")),
        Strategy("self-consistency-vote", reasoning=("thought",), text="self-cot", voted=True),
        Strategy(
            "json",
            Task.DETECTION,
            frozenset({"definitions", "examples", "description"}),
            labelled=True,
        ),
        Strategy("rewrite", Task.REWRITE),
    )
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A loaded strategy, which turns a sample into messages.

    Attributes:
        sha256: hash of every text that the model gets except the sample.
        schema: the schema that the provider enforces, if any.
        instruction: the paragraph on the schema at the end of the prompt; empty without one.
        taxonomy: the one of the labels of a labelled strategy, else None.
        definitions: label to its definition.
        examples: the pool that the examples of a sample are chosen from.
    """

    strategy: Strategy
    template: Template
    demonstrations: str
    sha256: str
    schema: AnswerSchema | None = None
    instruction: str = ""
    taxonomy: str | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    shots: Shots | None = None
    examples: tuple[Example, ...] = ()

    @property
    def name(self) -> str:
        """The strategy's name with its variants, such as `json+ai4privacy+5-shot+schema`."""
        parts = [self.strategy.name]
        if self.taxonomy is not None and self.taxonomy != PAPER:
            parts.append(self.taxonomy)
        if self.shots is not None:
            parts.append(f"{self.shots.number}-{'shot' if self.shots.by == 'seed' else 'similar'}")
        if self.schema is not None:
            parts.append("schema")
        return "+".join(parts)

    @property
    def settings(self) -> dict[str, object]:
        """The settings of labels and examples, for the system card."""
        settings: dict[str, object] = {} if self.taxonomy is None else {"taxonomy": self.taxonomy}
        if self.shots is not None:
            settings["shots"] = self.shots.number
            settings["shots_source"] = self.shots.source
            settings["shots_by"] = self.shots.by
            settings["shots_seed"] = self.shots.seed
        return settings

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Return the messages for a sample: one user message, as in the paper."""
        definitions = [
            f"- {label}: {definition}" if definition else f"- {label}"
            for label, definition in self.definitions.items()
        ]
        text = self.template.render(
            {
                "description": sample.description,
                "query": sample.query or "",
                "choices": _choices(sample) if self.strategy.oracle else "",
                "demonstrations": self.demonstrations,
                "definitions": "\n".join(definitions),
                "examples": self._examples(sample),
            }
        )
        return (Message("user", f"{text}\n\n{self.instruction}" if self.instruction else text),)

    def _examples(self, sample: Sample) -> str:
        """Return the examples for a sample, each with a blank line after it."""
        if self.shots is None:
            return ""
        from pii_bench.prompting.labelled import choose

        texts = []
        for example in choose(self.examples, self.shots, sample.description):
            # With a schema every label is required.
            values = {
                label: found for label, found in example.values.items() if found or self.schema
            }
            answer = json.dumps({"PII": values}, ensure_ascii=False)
            texts.append(f"Text:\n{example.text}\n\nYour object:\n{answer}\n\n")
        return "".join(texts)


def answer_schema(strategy: Strategy, labels: Iterable[str] = tuple(PiiType)) -> AnswerSchema:
    """Return the JSON Schema of a strategy's answers, for `--output schema`.

    Answers of detection are `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`, of a
    labelled strategy `{"PII": {"LABEL": ["value", ...]}}`, of others `{..., "answer": [...]}`.
    Models write properties in the order of the schema, so the reasoning comes first. All
    properties are required, others are not allowed, and no length is bounded: every provider
    accepts this subset.
    """
    if strategy.labelled:
        values = {str(label): _list(_TEXT) for label in labels}
        return AnswerSchema("pii", _object(PII=_object(**values)))
    if strategy.task is Task.DETECTION:
        types = [pii_type.value for pii_type in PiiType]
        entity = _object(text=_TEXT, type={**_TEXT, "enum": types})
        subject = _object(entities=_list(entity))
        return AnswerSchema("subjects", _object(subjects=_list(subject)))
    reasoning = dict.fromkeys(strategy.reasoning, _TEXT)
    return AnswerSchema(
        "_".join([*strategy.reasoning, "answer"]), _object(**reasoning, answer=_list(_TEXT))
    )


_TEXT: Final[Mapping[str, Any]] = {"type": "string"}


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def get_strategy(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, STRATEGIES)
    return STRATEGIES[name]


def load_prompt(
    strategy: Strategy,
    folder: Path = PROMPTS,
    output: Output = "text",
    taxonomy: str = PAPER,
    shots: Shots | None = None,
) -> Prompt:
    """Load the files of a strategy.

    With a schema, the prompt has one more paragraph at the end, the file `schema.<name>.txt`,
    which overrides the form asked for before. Only a labelled strategy has a taxonomy and examples.

    Raises:
        PromptError: a file is absent, or its placeholders are not the strategy's fields.
        UnknownNameError: there is no such taxonomy.
        PiiBenchError: there are no such examples, or the strategy has no schema.
    """
    if output == "schema" and strategy.task is Task.REWRITE:
        raise PiiBenchError(f"strategy {strategy.name!r} has no schema: leave --output out")
    template = load_template(folder / f"{strategy.text or strategy.name}.txt", strategy.fields)
    demonstrations = ""
    if "demonstrations" in strategy.fields:
        demonstrations = read_prompt_text(folder / f"{strategy.name}.demonstrations.txt")
    texts = [template.text, demonstrations]
    labels: Mapping[str, str] = {}
    examples: tuple[Example, ...] = ()
    if strategy.labelled:
        # Slow to import: it reads datasets of other projects.
        from pii_bench.prompting.labelled import definitions, draw_examples

        labels = definitions(taxonomy)
        texts.append(json.dumps(dict(labels)))
        if shots is not None:
            examples = draw_examples(shots, taxonomy, labels)
            texts.append(f"{shots.number} by {shots.by}")
            texts += [json.dumps([example.text, example.values]) for example in examples]
    schema, instruction = None, ""
    if output == "schema":
        schema = answer_schema(strategy, labels)
        instruction = read_prompt_text(folder / f"schema.{schema.name}.txt")
        # Not sorted: models write the keys in this order.
        texts += [instruction, json.dumps(schema.schema)]
    return Prompt(
        strategy=strategy,
        template=template,
        demonstrations=demonstrations,
        sha256=content_hash(*texts),
        schema=schema,
        instruction=instruction,
        taxonomy=taxonomy if strategy.labelled else None,
        definitions=labels,
        shots=shots,
        examples=examples,
    )


def _choices(sample: Sample) -> str:
    # In the order of the text: the order of the subjects would reveal whose the entities are.
    places: dict[str, int] = {}
    for entity in sample.entities:
        place = min((start for start, _ in entity.spans), default=-1)
        places[entity.text] = min(place, places.get(entity.text, place))
    return "\n".join(f"- {text}" for text in sorted(places, key=lambda text: places[text]))
