"""Answers made of gold: examples for fine-tuning.

An answer has the form that the prompt asks for and that the parser reads without repairs. A
rewritten text is made by program: the description with the tags of `mask` where it holds PII
that the query does not need. A model trained on it learns to mask within running text, not to
write anew.
"""

from __future__ import annotations

import json
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_for_training
from pii_bench.files import PROMPTS
from pii_bench.masking import mask
from pii_bench.models.base import Message
from pii_bench.models.tuning import Example
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt, load_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pii_bench.datasets.sample import Entity, Sample


class Target(StrEnum):
    """What is learnt."""

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    REWRITING = "rewriting"


def training_examples(sources: Iterable[str], targets: Iterable[str]) -> list[Example]:
    """The prompts of datasets with their answers, target by target.

    Args:
        sources: datasets, as `load_for_training` takes them.
        targets: what is learnt.

    Raises:
        PiiBenchError: one of our sets is only for tests, or a dataset is missing or broken.
    """
    samples = [sample for source in sources for sample in load_for_training(source).samples]
    return [
        example
        for target in dict.fromkeys(targets)
        for example in examples_of(samples, Target(target))
    ]


def examples_of(
    samples: Iterable[Sample], target: Target, folder: Path = PROMPTS
) -> Iterator[Example]:
    """The prompts of samples, each with its answer; query-related is asked by `naive`.

    Texts that several samples share are asked once where the query is no part of the prompt.

    Samples without a query are for detection alone.

    Raises:
        PromptError: a prompt's file is absent or broken.
    """
    messages = _prompt(target, folder)
    answer = _ANSWERS[target]
    seen: set[tuple[Message, ...]] = set()
    for sample in samples:
        if sample.query is None and target is not Target.DETECTION:
            continue
        prompt = messages(sample)
        if prompt not in seen:
            seen.add(prompt)
            yield Example(sample.id, prompt, answer(sample))


def detection_answer(sample: Sample) -> str:
    """`Subject1{"text": "TYPE", ...}`, a line a person, in the order of the text."""
    lines = []
    for number, subject in enumerate(sample.subjects, start=1):
        types = {entity.text: str(entity.type) for entity in sorted(subject.entities, key=_place)}
        lines.append(f"Subject{number}{json.dumps(types, ensure_ascii=False)}")
    return "\n".join(lines) or "Subject1{}"


def related_answer(sample: Sample) -> str:
    """`### Answer: ["...", ...]`, in the order of the text."""
    places = {entity.text: _place(entity) for entity in reversed(sample.entities)}
    texts = {related.text for related in sample.related}
    listed = sorted(texts, key=lambda text: (places.get(text, 0), text))
    return f"### Answer: {json.dumps(listed, ensure_ascii=False)}"


def rewritten(sample: Sample) -> str:
    """The description with tags in place of the PII that the query does not need."""
    entities = [(entity.text, entity.type) for entity in sample.entities]
    return mask(sample.description, entities, [each.text for each in sample.related]).text


def _place(entity: Entity) -> int:
    return min((start for start, _ in entity.spans), default=0)


def _prompt(target: Target, folder: Path) -> Callable[[Sample], tuple[Message, ...]]:
    if target is not Target.REWRITING:
        strategy = DETECTION if target is Target.DETECTION else STRATEGIES["naive"]
        return load_prompt(strategy, folder).messages
    template = load_template(
        folder / "fine-tuning" / "rewriting.txt", frozenset({"description", "query"})
    )

    def messages(sample: Sample) -> tuple[Message, ...]:
        values = {"description": sample.description, "query": sample.query or ""}
        return (Message("user", template.render(values)),)

    return messages


_ANSWERS: Final[Mapping[Target, Callable[[Sample], str]]] = MappingProxyType(
    {
        Target.DETECTION: detection_answer,
        Target.QUERY_RELATED: related_answer,
        Target.REWRITING: rewritten,
    }
)
