"""The three tasks in Inspect AI.

`inspect eval pii_bench/pii_bench -T dataset=demo -T task=masking --model openai/gpt-5`, or the
path of this file followed by `@pii_bench`; the path of a dataset must then be absolute, because
Inspect changes into the folder of this file. The default sampling is that of our runner
(temperature 0, 2,048 tokens). Inspect's logs contain the texts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from inspect_ai import Task as InspectTask
from inspect_ai import task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import ChatMessageUser, ContentText, GenerateConfig
from inspect_ai.scorer import Score, mean, scorer, stderr
from inspect_ai.solver import solver

from pii_bench import __version__
from pii_bench.integrations.questions import load_questions, score_answers
from pii_bench.models.base import Completion, Finish, Sampling
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import Generate, Solver, TaskState

    from pii_bench.systems.predictions import Prediction

_ANSWERS: Final = "pii_bench_answers"

_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "content_filter": Finish.FILTER,
}


# Inspect searches the source for this name of the decorator.
@task
def pii_bench(
    dataset: str = "single",
    task: str = Task.QUERY_RELATED.value,
    strategy: str = "naive",
) -> InspectTask:
    """Build the Inspect task for one dataset.

    Args:
        dataset: a dataset's name, the path of a file, or `capid:PATH`.
        task: `detection`, `query-related` or `masking`, which has two prompts.
        strategy: the prompt for query-related PII.

    Raises:
        PiiBenchError: no such dataset, task or strategy, or a strategy with several draws.
    """
    questions = load_questions(dataset, task, strategy)
    sampling = Sampling()
    return InspectTask(
        dataset=MemoryDataset(
            [
                InspectSample(id=sample.id, input=questions.contents(sample)[0])
                for sample in questions.samples.values()
            ],
            name=questions.dataset.name,
        ),
        solver=ask_each_prompt(dataset, task, strategy),
        scorer=pii_bench_scorer(dataset, task, strategy),
        config=GenerateConfig(temperature=sampling.temperature, max_tokens=sampling.max_tokens),
        version=__version__,
        metadata={
            "dataset_sha256": questions.dataset.sha256,
            **{f"prompt_sha256.{prompt.name}": prompt.sha256 for prompt in questions.prompts},
        },
    )


@solver
def ask_each_prompt(dataset: str, task: str, strategy: str) -> Solver:
    """Send the prompts of a task one after another, each in its own conversation."""
    questions = load_questions(dataset, task, strategy)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        answers: list[dict[str, str]] = []
        for content in questions.contents(questions.samples[str(state.sample_id)]):
            state.messages = [ChatMessageUser(content=content)]
            state = await generate(state)
            answers.append({"text": state.output.completion, "finish": _finish(state.output)})
            # A limit of Inspect ends this function early.
            state.store.set(_ANSWERS, answers)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def pii_bench_scorer(dataset: str, task: str, strategy: str) -> Scorer:
    """Score the answers of `ask_each_prompt`, with the names of the leaderboard's columns.

    Answers that a limit of Inspect (tokens, messages, time) prevented count as truncated.
    """
    questions = load_questions(dataset, task, strategy)

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 -- Inspect passes both
        completions = [
            Completion(answer["text"], Finish(answer["finish"]))
            for answer in state.store.get(_ANSWERS, [])
        ]
        missing = len(questions.prompts) - len(completions)
        completions += [Completion("", Finish.LENGTH)] * missing
        prediction, metrics = score_answers(questions, str(state.sample_id), completions)
        status = {"status": str(prediction.status)}
        return Score(value=metrics, answer=_encode(prediction), metadata=status)

    return score


def _finish(output: ModelOutput) -> Finish:
    content = output.message.content
    if isinstance(content, list) and any(
        isinstance(part, ContentText) and part.refusal for part in content
    ):
        return Finish.REFUSAL
    return _FINISHES.get(output.stop_reason, Finish.UNKNOWN)


def _encode(prediction: Prediction) -> str | None:
    if not prediction.status.answered:
        return None
    parts: dict[str, Any] = {"subjects": prediction.subjects, "related": prediction.related}
    present = {name: part for name, part in parts.items() if part is not None}
    return json.dumps(present, ensure_ascii=False)
