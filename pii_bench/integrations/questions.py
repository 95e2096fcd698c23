"""The prompts for a harness, and the scores of the answers that it returns.

A harness calls the model instead of our runner. Everything else is shared, so that equal answers
get equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, get_strategy, load_prompt
from pii_bench.ranking.rows import SUBJECT_METRICS, metrics_of
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

# Columns that are no means over all scored samples: they are computed from sums, from other means
# (H), or from the samples with a masked text (collateral).
_NOT_MEANS: Final = frozenset(
    {
        *("micro_f1", "micro_ent_f1", "hallucination_rate", "collateral", "h"),
        *("leak_readable", "leak_restated", "leak_part"),
    }
)


@dataclass(frozen=True, slots=True)
class Questions:
    """The prompts of one task for one dataset.

    Attributes:
        samples: by id, those that the task applies to, in the dataset's order.
        prompts: for each sample, in order; masking has two.
    """

    dataset: Dataset
    task: Task
    samples: Mapping[str, Sample]
    prompts: tuple[Prompt, ...]

    def contents(self, sample: Sample) -> tuple[str, ...]:
        """Return the text of each prompt for a sample, which is one message of the user."""
        return tuple(
            message.content for prompt in self.prompts for message in prompt.messages(sample)
        )


@lru_cache(16)
def load_questions(dataset: str, task: str, strategy: str) -> Questions:
    """Load a dataset and the prompts of a task.

    Args:
        dataset: a dataset's name, the path of a file, or `capid:PATH`.
        task: `detection`, `query-related`, `masking` or `rewrite`.
        strategy: the prompt for query-related PII; detection and rewriting have their own, and
            detection also takes `json`.

    Raises:
        UnknownNameError: no such dataset, task or strategy.
        InputFileError: the dataset's file is not valid.
        PiiBenchError: a strategy with several draws, which only our runner supports, or no sample
            that the task applies to.
    """
    if task not in set(Task):
        raise UnknownNameError("task", task, Task)
    kind = Task(task)
    chosen = get_strategy(strategy)
    if chosen.task not in {kind, Task.QUERY_RELATED}:
        raise PiiBenchError(f"strategy {strategy!r} answers {chosen.task}, not {task}")
    if chosen.voted:
        allowed = ", ".join(other.name for other in STRATEGIES.values() if not other.voted)
        raise PiiBenchError(
            f"strategy {strategy!r} draws several times, which only `pii-bench run` does "
            f"(allowed: {allowed})"
        )
    if kind is Task.MASKING:
        strategies = [DETECTION, chosen]
    elif kind is Task.DETECTION and chosen.task is not Task.DETECTION:
        strategies = [DETECTION]
    elif kind is Task.REWRITE:
        strategies = [STRATEGIES[Task.REWRITE]]
    else:
        strategies = [chosen]
    loaded = load_dataset(dataset)
    samples = {sample.id: sample for sample in applicable(kind, loaded.samples)}
    if not samples:
        raise PiiBenchError(
            f"dataset {loaded.name!r} has no sample with a query, which {task} needs "
            f"(allowed: {Task.DETECTION})"
        )
    return Questions(
        dataset=loaded,
        task=kind,
        samples=samples,
        prompts=tuple(map(load_prompt, strategies)),
    )


def score_answers(
    questions: Questions, sample_id: str, completions: Sequence[Completion]
) -> tuple[Prediction, dict[str, float]]:
    """Parse and score the answers to one sample, one per prompt in order.

    Returns:
        The prediction, and the sample's contributions to the leaderboard's means, 0 to 1. As in our
        rows, `SUBJECT_METRICS` are absent where subjects are not named.
    """
    sample = questions.samples[sample_id]
    predictions = [
        read_response(
            prompt.strategy.task, completion, labels_of=prompt.taxonomy, text=sample.description
        )
        for prompt, completion in zip(questions.prompts, completions, strict=True)
    ]
    prediction = compose(*predictions) if questions.task is Task.MASKING else predictions[0]
    metrics = sample_metrics(questions.task, score_sample(questions.task, sample, prediction))
    labelled = any(prompt.strategy.labelled for prompt in questions.prompts)
    names_subjects = questions.dataset.names_subjects and not labelled
    if questions.task is Task.DETECTION and not names_subjects:
        metrics = {name: value for name, value in metrics.items() if name not in SUBJECT_METRICS}
    return prediction, metrics


def sample_metrics(task: Task, score: SampleScore) -> dict[str, float]:
    """Return a sample's contribution to each mean of its task's row, 0 to 1."""
    evaluation = Evaluation(task=task, gold=1, scores=(score,), statuses={})
    metrics = metrics_of(evaluation)
    return {name: value for name, value in metrics.items() if name not in _NOT_MEANS}
