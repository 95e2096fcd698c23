"""Prompt files with placeholders such as `{{description}}`, and the strategies that fill them.

Six strategies are the paper's (Section 4). The seventh, `self-consistency-vote`, is
self-consistency as Wang et al. (2022, arXiv:2203.11171) define it, where the paper asks for
several reflections in one call. `json` detects in the labels of any taxonomy, with or without
examples. `rewrite` lets the model write the text anew.
"""

from __future__ import annotations

import hashlib
import json
import string
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pii_bench.datasets.sample import spans_of
from pii_bench.errors import PiiBenchError, PromptError, UnknownNameError
from pii_bench.files import PROMPTS
from pii_bench.models.base import AnswerSchema, Message
from pii_bench.tasks import Task
from pii_bench.taxonomy import PAPER, PiiType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.labelled import Example, Shots


class _DoubleBraces(string.Template):
    # Single braces and dollars are what prompts about JSON and money are full of.
    # typeshed names the type after compilation; the class compiles a string.
    pattern = r"\{\{(?:(?P<named>[a-z_]+)\}\}|(?P<braced>(?!))|(?P<escaped>(?!))|(?P<invalid>))"  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Template:
    """The stem and the text of a prompt's file, whose placeholders are known to be filled."""

    name: str
    text: str

    def render(self, values: Mapping[str, str]) -> str:
        """Fill every placeholder in one pass: a value's own braces stay as they are."""
        return _DoubleBraces(self.text).substitute(values)


def load_template(path: Path, fields: frozenset[str]) -> Template:
    """Read a prompt file and check its placeholders against the fields that will be filled.

    Raises:
        PromptError: the file is absent, a field has no placeholder, a placeholder has no
            field, or braces are not a placeholder.
    """
    text = read_prompt_text(path)
    try:
        found = set(_DoubleBraces(text).get_identifiers())
        _DoubleBraces(text).substitute(dict.fromkeys(found, ""))
    except ValueError as error:
        raise PromptError(f"{path}: '{{{{' that opens no placeholder ({error})") from None
    if missing := sorted(fields - found):
        raise PromptError(f"{path}: no placeholder for {', '.join(missing)}")
    if unknown := sorted(found - fields):
        allowed = ", ".join(sorted(fields))
        raise PromptError(f"{path}: nothing fills {', '.join(unknown)} (allowed: {allowed})")
    return Template(path.stem, text)


def read_prompt_text(path: Path) -> str:
    """The content of a file of prompts, without the white space around it.

    Raises:
        PromptError: absent, unreadable or empty.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path}: {error}") from error
    if not text:
        raise PromptError(f"{path}: the file is empty")
    return text


def content_hash(*texts: str) -> str:
    """SHA-256 in hexadecimal over texts in order, each told from the next."""
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


Output: TypeAlias = Literal["text", "schema"]
"""Who makes the form of an answer: the prompt's words, or the provider."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a prompt is made of.

    Attributes:
        name: as the command line and results write it.
        task: the task that its answers solve.
        fields: the placeholders that its file must have.
        demonstrations: the file of worked examples, where it shows any.
        oracle: whether it is told gold: an upper bound, never ranked with the rest.
        reasoning: what it writes before its answer, in order; keys of its schema.
        text: the strategy whose text it has; None for its own, the file `<name>.txt`.
        voted: whether it is asked several times, and the majority is the answer.
        labelled: whether its answers are values by label of a taxonomy, without subjects.
    """

    name: str
    task: Task
    fields: frozenset[str]
    demonstrations: str | None = None
    oracle: bool = False
    reasoning: tuple[str, ...] = ()
    text: str | None = None
    voted: bool = False
    labelled: bool = False


_PLAIN: Final = frozenset({"description", "query"})

DETECTION: Final = Strategy("detection", Task.DETECTION, frozenset({"description"}))

STRATEGIES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("naive", Task.QUERY_RELATED, _PLAIN),
            Strategy("naive-choice", Task.QUERY_RELATED, _PLAIN | {"choices"}, oracle=True),
            Strategy("self-cot", Task.QUERY_RELATED, _PLAIN, reasoning=("thought",)),
            Strategy(
                "auto-cot",
                Task.QUERY_RELATED,
                _PLAIN | {"demonstrations"},
                demonstrations="auto-cot.demonstrations.txt",
                reasoning=("thought",),
            ),
            Strategy(
                "self-consistency", Task.QUERY_RELATED, _PLAIN, reasoning=("reflections", "summary")
            ),
            Strategy("ps-cot", Task.QUERY_RELATED, _PLAIN, reasoning=("plan", "thought")),
            Strategy(
                "self-consistency-vote",
                Task.QUERY_RELATED,
                _PLAIN,
                reasoning=("thought",),
                text="self-cot",
                voted=True,
            ),
            Strategy(
                "json",
                Task.DETECTION,
                frozenset({"definitions", "examples", "description"}),
                labelled=True,
            ),
            Strategy("rewrite", Task.REWRITE, _PLAIN),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A strategy with its files read: turns a sample into messages.

    Attributes:
        sha256: hash of every text that reaches the model besides the sample's own.
        schema: what the provider enforces; None where the prompt's words make the form.
        instruction: how the answer goes into the schema, told after the prompt; else empty.
        taxonomy: whose labels the answer has; None for the seven types and for texts alone.
        definitions: what its labels mean.
        shots: which examples are shown; None for none.
        examples: those that may be shown.
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
        """The strategy's, with what makes it another condition: `json+ai4privacy+5-shot+schema`."""
        parts = [self.strategy.name]
        if self.taxonomy not in {None, PAPER}:
            parts.append(str(self.taxonomy))
        if self.shots is not None:
            parts.append(f"{self.shots.number}-{'shot' if self.shots.by == 'seed' else 'similar'}")
        return "+".join([*parts, "schema"] if self.schema else parts)

    @property
    def settings(self) -> dict[str, object]:
        """What was chosen of its labels and examples."""
        told: dict[str, object] = {} if self.taxonomy is None else {"taxonomy": self.taxonomy}
        if self.shots is not None:
            shots = asdict(self.shots)
            told |= {"shots": shots.pop("number")}
            told |= {f"shots_{key}": value for key, value in shots.items()}
        return told

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """What is sent for a sample: one user message, as in the paper."""
        values = {name: _FILLERS[name](self, sample) for name in self.strategy.fields}
        text = self.template.render(values)
        return (Message("user", f"{text}\n\n{self.instruction}" if self.instruction else text),)


def answer_schema(strategy: Strategy, labels: Iterable[str] = tuple(PiiType)) -> AnswerSchema:
    """The JSON Schema of a strategy's answers, for providers that enforce it (`--output schema`).

    Detection answers `{"subjects": [{"entities": [{"text": ..., "type": ...}]}]}`, with the
    labels of a taxonomy `{"PII": {"LABEL": ["value", ...]}}`, any other strategy
    `{..., "answer": [...]}`. Properties are written in the order of the schema: what a strategy
    reasons in is before its answer. All are required, no others are allowed, and no length is
    bounded: every provider takes that.
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
    """Look a strategy up, or raise UnknownNameError."""
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
    """Read a strategy's files.

    A schema takes nothing from the prompt: the texts of both outputs differ in one paragraph
    at the end, the file `schema.<shape>.txt`, which replaces the form asked for before.

    Labels (of `taxonomy`) and examples (`shots`) are for a labelled strategy.

    Raises:
        PromptError: a file is absent, or its placeholders are not the strategy's fields.
        UnknownNameError: there is no such taxonomy.
        PiiBenchError: there are no such examples, or texts are to be written into a schema.
    """
    if output == "schema" and strategy.task is Task.REWRITE:
        raise PiiBenchError(f"strategy {strategy.name!r} has no schema: leave --output out")
    template = load_template(folder / f"{strategy.text or strategy.name}.txt", strategy.fields)
    demonstrations = (
        read_prompt_text(folder / strategy.demonstrations) if strategy.demonstrations else ""
    )
    texts = [template.text, demonstrations]
    labels: Mapping[str, str] = {}
    examples: tuple[Example, ...] = ()
    if strategy.labelled:
        # What reads other people's datasets for examples is imported for this strategy alone.
        from pii_bench.prompting.labelled import definitions, draw_examples

        labels = definitions(taxonomy)
        texts.append(json.dumps(dict(labels)))
        if shots is not None:
            examples = draw_examples(shots, taxonomy, labels)
            texts += [f"{shots.number} by {shots.by}"]
            texts += [json.dumps([each.text, each.values]) for each in examples]
    schema, instruction = None, ""
    if output == "schema":
        schema = answer_schema(strategy, labels)
        instruction = read_prompt_text(folder / f"schema.{schema.name}.txt")
        # Not sorted: the order of the keys is the order in which they are written.
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


def _choices(_: Prompt, sample: Sample) -> str:
    # In the order of the text, not of the subjects: only E is told, not whose it is.
    places: dict[str, int] = {}
    for entity in sample.entities:
        spans = spans_of(entity, sample.description)
        place = min((start for start, _ in spans), default=-1)
        places[entity.text] = min(place, places.get(entity.text, place))
    return "\n".join(f"- {text}" for text in sorted(places, key=lambda text: places[text]))


def _definitions(prompt: Prompt, _: Sample) -> str:
    return "\n".join(
        f"- {label}: {what}" if what else f"- {label}" for label, what in prompt.definitions.items()
    )


def _examples(prompt: Prompt, sample: Sample) -> str:
    """Each with a blank line behind it."""
    if prompt.shots is None:
        return ""
    from pii_bench.prompting.labelled import choose

    shown = []
    for example in choose(prompt.examples, prompt.shots, sample.description):
        # A schema has every label.
        values = {key: each for key, each in example.values.items() if each or prompt.schema}
        answer = json.dumps({"PII": values}, ensure_ascii=False)
        shown.append(f"Text:\n{example.text}\n\nYour object:\n{answer}\n\n")
    return "".join(shown)


_FILLERS: Final[Mapping[str, Callable[[Prompt, Sample], str]]] = MappingProxyType(
    {
        "description": lambda _, sample: sample.description,
        "query": lambda _, sample: sample.query or "",
        "choices": _choices,
        "demonstrations": lambda prompt, _: prompt.demonstrations,
        "definitions": _definitions,
        "examples": _examples,
    }
)
