"""What a harness asks about a dataset, and the scores of what it brings back.

A harness calls the model instead of our runner. All else is ours, so equal answers have
equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, get_strategy, load_prompt
from pii_bench.ranking.rows import METRICS, metrics_of
from pii_bench.runs.evaluation import Evaluation, score_sample
from pii_bench.runs.responses import compose, read_response
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion
    from pii_bench.prompting.strategies import Prompt
    from pii_bench.runs.evaluation import SampleScore
    from pii_bench.systems.predictions import Prediction


# The datasets of one harness run are few; a file that changes meanwhile is another run's.
_REMEMBERED: Final = 16

_NO_MEANS: Final = frozenset(
    {
        *("micro_f1", "micro_ent_f1", "hallucination_rate", "collateral", "h"),
        *("leak_readable", "leak_restated", "leak_part"),
    }
)

MEAN_METRICS: Final = tuple(name for name in METRICS if name not in _NO_MEANS)
"""The columns that are means over all scored samples; the others come of sums, of those samples
that leave a text (collateral), or of other means (H)."""


@dataclass(frozen=True, slots=True)
class Questions:
    """One task on one dataset.

    Attributes:
        samples: id to sample, those that the task applies to, in the dataset's order.
        prompts: what is asked about each, in order: masking asks twice.
    """

    dataset: Dataset
    task: Task
    samples: Mapping[str, Sample]
    prompts: tuple[Prompt, ...]

    def contents(self, sample: Sample) -> tuple[str, ...]:
        """The text of each question about a sample: one message of the user."""
        return tuple(
            message.content for prompt in self.prompts for message in prompt.messages(sample)
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to one sample.

    Attributes:
        metrics: the leaderboard's name of a mean to what the sample adds to it, 0 to 1.
    """

    prediction: Prediction
    metrics: Mapping[str, float]


@lru_cache(_REMEMBERED)
def load_questions(dataset: str, task: str, strategy: str) -> Questions:
    """Load what is asked.

    Args:
        dataset: a dataset's name, the path of a file, or `capid:PATH`.
        task: `detection`, `query-related`, `masking` or `rewrite`.
        strategy: the prompt for query-related PII; detection and rewriting have
            their own, and detection `json` too.

    Raises:
        UnknownNameError: no such dataset, task or strategy.
        InputFileError: the dataset's file is broken.
        PiiBenchError: a strategy that draws several times, which is our runner's.
    """
    if task not in set(Task):
        raise UnknownNameError("task", task, Task)
    asked = get_strategy(strategy)
    if asked.task not in {Task(task), Task.QUERY_RELATED}:
        raise PiiBenchError(f"strategy {strategy!r} answers {asked.task}, not {task}")
    if asked.voted:
        single = ", ".join(each.name for each in STRATEGIES.values() if not each.voted)
        what = f"strategy {strategy!r} draws several times, which only `pii-bench run` does"
        raise PiiBenchError(f"{what} (allowed: {single})")
    strategies = {
        Task.DETECTION: (asked if asked.task is Task.DETECTION else DETECTION,),
        Task.QUERY_RELATED: (asked,),
        Task.MASKING: (DETECTION, asked),
        Task.REWRITE: (STRATEGIES[Task.REWRITE],),
    }[Task(task)]
    loaded = load_dataset(dataset)
    return Questions(
        dataset=loaded,
        task=Task(task),
        samples=MappingProxyType({s.id: s for s in applicable(Task(task), loaded.samples)}),
        prompts=tuple(load_prompt(each) for each in strategies),
    )


def score_answers(
    questions: Questions, sample_id: str, completions: Sequence[Completion]
) -> Scored:
    """Read and score the answers to one sample, one for each prompt in order."""
    predictions = [
        read_response(
            prompt.strategy.task,
            completion,
            labels_of=prompt.taxonomy,
            text=questions.samples[sample_id].description,
        )
        for prompt, completion in zip(questions.prompts, completions, strict=True)
    ]
    prediction = compose(*predictions) if questions.task is Task.MASKING else predictions[0]
    score = score_sample(questions.task, questions.samples[sample_id], prediction)
    return Scored(prediction, sample_metrics(questions.task, score))


def sample_metrics(task: Task, score: SampleScore) -> dict[str, float]:
    """What a sample adds to each mean of its task's row, 0 to 1."""
    alone = Evaluation(task=task, gold=1, scores=(score,), statuses={}, repairs={})
    return {name: value for name, value in metrics_of(alone).items() if name in MEAN_METRICS}
