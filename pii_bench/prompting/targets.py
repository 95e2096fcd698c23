"""Examples for fine-tuning: prompts with answers made from gold.

An answer has the form that the prompt asks for and that the parser reads without repairs. A
rewritten text is the description with the tags of `mask` for the PII that the query does not need,
so a model learns to mask within running text rather than to rewrite it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_for_training
from pii_bench.files import PROMPTS
from pii_bench.masking import mask
from pii_bench.models.tuning import Example
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, Strategy, load_prompt
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.models.base import Message
    from pii_bench.prompting.strategies import Prompt


class Target(StrEnum):
    """A task to train for."""

    DETECTION = "detection"
    QUERY_RELATED = "query-related"
    REWRITING = "rewriting"


def training_examples(sources: Iterable[str], targets: Iterable[str]) -> list[Example]:
    """Return the examples of all samples of datasets, target by target.

    `targets`: values of `Target`.

    Raises:
        PiiBenchError: a dataset is one of our test sets, missing or broken.
        ValueError: a target is another value.
    """
    samples = [sample for source in sources for sample in load_for_training(source).samples]
    return [
        example
        for target in dict.fromkeys(targets)
        for example in examples_of(samples, Target(target))
    ]


def examples_of(samples: Iterable[Sample], target: Target) -> Iterator[Example]:
    """Yield the examples of samples; the prompt of query-related is `naive`.

    A prompt that several samples share is used once. Samples without a query are for detection
    only.

    Raises:
        PromptError: a prompt file is absent or broken.
    """
    loaded = _load_prompt(target)
    answer = _ANSWERS[target]
    seen: set[tuple[Message, ...]] = set()
    for sample in samples:
        if sample.query is None and target is not Target.DETECTION:
            continue
        prompt = loaded.messages(sample)
        if prompt not in seen:
            seen.add(prompt)
            yield Example(sample.id, prompt, answer(sample))


def detection_answer(sample: Sample) -> str:
    """Return a line `Subject1{"text": "TYPE", ...}` per subject, entities in text order."""
    lines = []
    for number, subject in enumerate(sample.subjects, start=1):
        types = {entity.text: str(entity.type) for entity in sorted(subject.entities, key=_place)}
        lines.append(f"Subject{number}{json.dumps(types, ensure_ascii=False)}")
    return "\n".join(lines) or "Subject1{}"


def related_answer(sample: Sample) -> str:
    """Return `### Answer: ["...", ...]`, in text order."""
    places = {entity.text: _place(entity) for entity in reversed(sample.entities)}
    texts = {related.text for related in sample.related}
    listed = sorted(texts, key=lambda text: (places.get(text, 0), text))
    return f"### Answer: {json.dumps(listed, ensure_ascii=False)}"


def rewritten(sample: Sample) -> str:
    """Return the description with tags in place of PII that the query does not need."""
    entities = [(entity.text, entity.type) for entity in sample.entities]
    return mask(sample.description, entities, [related.text for related in sample.related]).text


def _place(entity: Entity) -> int:
    return min((start for start, _ in entity.spans), default=0)


def _load_prompt(target: Target) -> Prompt:
    if target is Target.REWRITING:
        return load_prompt(Strategy("rewriting", Task.REWRITE), PROMPTS / "fine-tuning")
    return load_prompt(DETECTION if target is Target.DETECTION else STRATEGIES["naive"])


_ANSWERS: Final[Mapping[Target, Callable[[Sample], str]]] = {
    Target.DETECTION: detection_answer,
    Target.QUERY_RELATED: related_answer,
    Target.REWRITING: rewritten,
}
