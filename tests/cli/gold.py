"""Servers that answer every question about demo rightly, in any provider's protocol."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.tasks import Task
from tests.batch_server import Item
from tests.cli.conftest import detection_answer, related_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.strategies import Output, Prompt
    from tests.batch_server import StoredJob
    from tests.protocol_server import ReceivedRequest, Reply


_OUTPUTS: Final[tuple[Output, ...]] = ("text", "schema")


def right(reply: Callable[[str], Reply]) -> Callable[[ReceivedRequest], Reply]:
    """A step of a `ProtocolServer` whose replies are made of right answers."""
    return lambda request: reply(answer_to(request.body))


def right_items(job: StoredJob) -> dict[str, Item]:
    """The outcomes of a batch whose requests are all answered rightly."""
    return {name: Item(text=answer_to(body)) for name, body in job.requests.items()}


def answer_to(body: Mapping[str, Any]) -> str:
    """The right answer to a request, which must hold one message of the user and no other."""
    (message,) = body["messages"]
    assert message["role"] == "user"
    return _answers()[message["content"]]


@cache
def _answers() -> Mapping[str, str]:
    strategies = (DETECTION, get_strategy("naive"), get_strategy("self-consistency-vote"))
    prompts = [load_prompt(each, output=output) for each in strategies for output in _OUTPUTS]
    return {
        prompt.messages(sample)[0].content: _answer(prompt, sample)
        for prompt in prompts
        for sample in load_dataset("demo").samples
    }


def _answer(prompt: Prompt, sample: Sample) -> str:
    detects = prompt.strategy.task is Task.DETECTION
    if prompt.schema is None:
        return detection_answer(sample) if detects else related_answer(sample)
    if detects:
        subjects = [
            {"entities": [{"text": each.text, "type": each.type} for each in subject.entities]}
            for subject in sample.subjects
        ]
        return json.dumps({"subjects": subjects})
    reasoning = dict.fromkeys(prompt.strategy.reasoning, "They ask for these.")
    return json.dumps({**reasoning, "answer": [related.text for related in sample.related]})
