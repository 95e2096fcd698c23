"""Builders of stored runs of maskers, answerers and judges; and an encoder of answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pii_bench.analysis.utility.chats import (
    ANSWER,
    TEXTS,
    ChatSystem,
    answer_questions,
    judge_questions,
    text_questions,
)
from pii_bench.analysis.utility.stored import (
    GOLD_CONDITIONS,
    NO_MASK,
    answer_pairs,
    chats_folder,
    read_answerers,
    read_maskings,
    run_name,
    texts,
)
from pii_bench.files import write_json
from pii_bench.models.base import CallError, Completion, Finish, Sampling
from pii_bench.prompting.strategies import DETECTION, load_prompt
from pii_bench.runs.records import DatasetRef, Manifest
from pii_bench.runs.run import run_system
from pii_bench.runs.store import RunFiles, RunStore
from tests.fakes import FakeModel, RecordingProgress, fake_system

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.analysis.utility.chats import TextPair
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.base import Request
    from pii_bench.systems.base import System

MASKER = ("fake/masker", "detection", "naive")
"""Model and prompts of the runs that `run_masker` stores."""

ANSWERER = "fake/answerer"
JUDGE = "fake/judge"


def run_masker(
    results: Path, dataset: Dataset, outputs: Mapping[str, tuple[str, str]], strategy: str = "naive"
) -> None:
    """Store the outputs of a system for each sample: detection and query-related."""

    def answer(request: Request) -> Completion:
        detection, related = outputs[request.sample_id]
        text = detection if request.prompt == "detection" else related
        return Completion(text, Finish.STOP)

    related = fake_system(FakeModel(answer, name=MASKER[0]), strategy)
    for system in (replace(related, prompt=load_prompt(DETECTION)), related):
        card = system.card
        files = RunFiles.at(results / "runs", card.model, card.prompt, dataset.name)
        _run(system, dataset, files, outputs)


def run_answerer(
    results: Path,
    dataset: Dataset,
    condition: str,
    answers: Mapping[str, str | CallError],
    *,
    max_tokens: int = 99,
) -> None:
    """Store the answers to some samples under a condition; others are not asked about."""
    masked_by = () if condition in GOLD_CONDITIONS else MASKER
    _, masked = read_maskings(results, dataset, condition, masked_by, dataset.samples)
    questions = answer_questions(texts(masked), masked_by)
    system = ChatSystem(_model(ANSWERER, answers), Sampling(max_tokens=max_tokens), questions)
    name = run_name(dataset.name, condition)
    files = RunFiles.at(chats_folder(results, ANSWER), ANSWERER, ANSWER, name)
    _run(system, replace(dataset, name=name), files, answers.keys() & masked.keys())


def run_judge(
    results: Path,
    dataset: Dataset,
    condition: str,
    verdicts: Mapping[str, tuple[str, str] | CallError],
) -> None:
    """Store verdicts on answers under a condition; the first has the unmasked answer as A."""
    stored = {
        run.condition: {record.id: record.written for record in run.records.values()}
        for run in read_answerers(results, [])
    }
    questions = judge_questions(answer_pairs(stored[condition], stored[NO_MASK]))
    system = ChatSystem(_model(JUDGE, verdicts), Sampling(), questions)
    name = run_name(dataset.name, condition)
    files = RunFiles.at(
        chats_folder(results, "utility.judge", ANSWERER), JUDGE, "utility.judge", name
    )
    _run(system, replace(dataset, name=name), files, verdicts.keys() & questions.fields.keys())


def run_text_judge(
    results: Path, dataset: Dataset, pairs: Mapping[str, TextPair], rewritten_by: tuple[str, ...]
) -> None:
    """Store a run of a judge that has answered nothing."""
    system = ChatSystem(_model(JUDGE, {}), Sampling(), text_questions(pairs, rewritten_by))
    files = RunFiles.at(chats_folder(results, TEXTS), JUDGE, TEXTS, dataset.name)
    _run(system, dataset, files, ())


def _model(name: str, outputs: Mapping[str, str | tuple[str, str] | CallError]) -> FakeModel:
    """Return a model with one output per sample, or one per draw."""

    def answer(request: Request) -> Completion:
        text = outputs[request.sample_id]
        if isinstance(text, CallError):
            raise text
        return Completion(text if isinstance(text, str) else text[request.draw], Finish.STOP)

    return FakeModel(answer, name=name)


def _run(system: System, dataset: Dataset, files: RunFiles, ids: Collection[str]) -> None:
    samples = [sample for sample in dataset.samples if sample.id in ids]
    requests = {sample.id: system.request_hash(sample) for sample in samples}
    with RunStore(files, requests) as store:
        write_json(files.manifest, Manifest(system.card, DatasetRef.of(dataset)))
        progress = RecordingProgress()
        asyncio.run(run_system(system, samples, store, concurrency=1, progress=progress))


@dataclass(frozen=True, slots=True)
class Vectors:
    """An encoder with fixed vectors of some texts."""

    vectors: Mapping[str, tuple[float, ...]]

    @property
    def identity(self) -> Mapping[str, str]:
        return {"encoder": "vectors 1"}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)
