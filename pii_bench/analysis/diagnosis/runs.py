"""Stored answers to queries, each with the detection answers of the same system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pii_bench.datasets.sample import applicable
from pii_bench.ranking.stored import RunOnDataset, read_stored
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.runs.predictions.prediction import Prediction


@dataclass(frozen=True, slots=True)
class QueryRun(RunOnDataset):
    """A query-related run with what diagnosis asks of it."""

    @property
    def system(self) -> tuple[object, ...]:
        """What two runs of one system on two datasets have in common."""
        card = self.stored.manifest.system
        settings = sorted((key, repr(value)) for key, value in card.settings.items())
        return self.source, card.model, card.prompt, card.prompt_sha256, card.output, *settings

    @property
    def answers(self) -> Mapping[str, Prediction]:
        """Sample id to the query-related prediction, with the detected subjects where known."""
        found = {} if self.detection is None else self.detection.predictions
        return {
            sample_id: replace(answer, subjects=found[sample_id].subjects)
            if answer.status.answered and sample_id in found
            else answer
            for sample_id, answer in self.stored.predictions.items()
        }


@dataclass(frozen=True, slots=True)
class QueryRuns:
    """The query-related runs of a results folder, and those left out, each with the reason."""

    runs: tuple[QueryRun, ...]
    left_out: tuple[str, ...]


def read_query_runs(results: Path) -> QueryRuns:
    """Read what is stored in a results folder: runs, references and what is submitted."""
    stored = read_stored(results)
    runs = (
        QueryRun(run.source, run.dataset, run.stored, run.detection)
        for run in stored.runs
        if _has_queries(run)
    )
    return QueryRuns(tuple(runs), stored.left_out)


def _has_queries(run: RunOnDataset) -> bool:
    task = run.stored.manifest.system.task
    return task is Task.QUERY_RELATED and bool(applicable(task, run.dataset.samples))
