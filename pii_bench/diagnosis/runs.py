"""Stored answers to queries, each with the detection answers of the same system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.evaluation import applicable
from pii_bench.leaderboard.collect import FOLDERS, StoredRun, _detection_beside, read_run
from pii_bench.predictions.prediction import Prediction, compose
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.leaderboard.rows import Source


@dataclass(frozen=True, slots=True)
class QueryRun:
    """A query-related run.

    Attributes:
        source: where it lies.
        dataset: gold.
        stored: the run.
        detection: the detection run that the leaderboard composes masking with; None where
            there is none.
    """

    source: Source
    dataset: Dataset
    stored: StoredRun
    detection: StoredRun | None

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

    @property
    def masking(self) -> Mapping[str, Prediction] | None:
        """Sample id to the masking prediction; None without detection."""
        if self.detection is None:
            return None
        found = self.detection.predictions
        return {
            sample_id: compose(found[sample_id], answer)
            for sample_id, answer in self.stored.predictions.items()
            if sample_id in found
        }


@dataclass(frozen=True, slots=True)
class QueryRuns:
    """The query-related runs of a results folder, and those left out, each with the reason."""

    runs: tuple[QueryRun, ...]
    left_out: tuple[str, ...]


def read_query_runs(results: Path) -> QueryRuns:
    """Read the runs under `<results>/runs` and `<results>/reference`.

    Raises:
        InputFileError: a manifest or a line of responses is broken.
    """
    runs: list[QueryRun] = []
    left_out: list[str] = []
    datasets: dict[str, Dataset | PiiBenchError] = {}
    for folder, source in FOLDERS.items():
        stored = [read_run(path) for path in sorted((results / folder).glob("*/*/*.run.json"))]
        for run in stored:
            card, reference = run.manifest.system, run.manifest.dataset
            if card.task is not Task.QUERY_RELATED:
                continue
            if reference.source not in datasets:
                datasets[reference.source] = _find(reference.source)
            match datasets[reference.source]:
                case PiiBenchError() as error:
                    left_out.append(f"{card.model}, {card.prompt} on {reference.source}: {error}")
                case dataset if dataset.sha256 != reference.sha256:
                    what = "its file has changed since; run again, only what changed is asked"
                    left_out.append(f"{card.model}, {card.prompt} on {reference.source}: {what}")
                case dataset if applicable(card.task, dataset.samples):
                    runs.append(QueryRun(source, dataset, run, _detection_beside(run, stored)))
    return QueryRuns(tuple(runs), tuple(left_out))


def _find(source: str) -> Dataset | PiiBenchError:
    try:
        return load_dataset(source)
    except PiiBenchError as error:
        return error
