"""Stored maskings, answers and verdicts: their paths, and which match the current requests.

A condition says what is masked. Gold decides it for the three conditions of the paper. Any other
condition is a system, named `<model>+<prompt>` after its query-related run or the run that rewrote
the texts. The answers under each condition are compared with those without masking.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.utility.chats import (
    ANSWER,
    JUDGE,
    MASKED_BY,
    TEXTS,
    AnswerPair,
    answer_questions,
    read_answer,
    request_hash,
)
from pii_bench.datasets.sample import applicable
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.masking import mask
from pii_bench.ranking.stored import read_run
from pii_bench.runs.records import Manifest, RunRecord, Signature, read_manifest
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY, RunFiles, read_responses
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.chats import Questions
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.masking import Masked
    from pii_bench.models.base import ModelResponse
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction

NO_MASK: Final = "no-mask"
MASK_ALL: Final = "mask-all"
MASK_UNRELATED: Final = "mask-query-unrelated"

GOLD_CONDITIONS: Final = (NO_MASK, MASK_ALL, MASK_UNRELATED)
"""Mask nothing, all gold entities, or (the ideal) all but the related ones."""

FOLDER: Final = "utility"
"""The folder in results with answers, verdicts and figures; runs of systems are in `runs`."""

Maskings: TypeAlias = "Mapping[str, Masked | Rewritten]"
"""Sample id to its masked or rewritten description, without samples where that failed."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A description rewritten by a model."""

    text: str = field(repr=False)


def condition_of(model: str, prompt: str) -> str:
    """Return the condition of a system, by the model and prompt of its query-related card."""
    return f"{model}+{prompt}"


def mask_by_gold(condition: str, samples: Iterable[Sample]) -> Maskings:
    """Mask samples under one of `GOLD_CONDITIONS`.

    Raises:
        PiiBenchError: another condition.
    """
    if condition not in GOLD_CONDITIONS:
        raise PiiBenchError(f"unknown condition {condition!r}")
    maskings = {}
    for sample in samples:
        entities = () if condition == NO_MASK else sample.entities
        related = sample.related if condition == MASK_UNRELATED else ()
        pairs = [(entity.text, entity.type) for entity in entities]
        kept = [entity.text for entity in related]
        maskings[sample.id] = mask(sample.description, pairs, kept)
    return maskings


def read_maskings(
    results: Path,
    dataset: Dataset,
    condition: str,
    masked_by: Sequence[str],
    samples: Iterable[Sample],
) -> tuple[bool, Maskings]:
    """Return whether masking uses gold, and the maskings of samples under a condition.

    `masked_by` names the runs in `results` that mask, as in `answer_questions`. A sample has no
    masking if a system failed on it.

    Raises:
        InputFileError: a run is absent or broken, or the dataset's file has changed since.
        PiiBenchError: unknown condition.
    """
    if len(masked_by) == 2:
        model, prompt = masked_by
        rewritings = read_rewritings(results, model, prompt, dataset)
        return False, {each.id: rewritings[each.id] for each in samples if each.id in rewritings}
    if len(masked_by) == 3:
        model, *prompts = masked_by
        detection, related = (_read_run(results, model, prompt, dataset) for prompt in prompts)
        oracle = detection.manifest.system.oracle or related.manifest.system.oracle
        predictions = replace(related, detection=detection).masking or {}
        return oracle, _mask_by_system(predictions, samples)
    return condition != NO_MASK, mask_by_gold(condition, samples)


def _mask_by_system(predictions: Mapping[str, Prediction], samples: Iterable[Sample]) -> Maskings:
    """Mask the entities that a system finds and does not predict to be related."""
    maskings = {}
    for sample in samples:
        predicted = predictions.get(sample.id)
        if predicted is None or predicted.subjects is None or predicted.related is None:
            continue
        entities = [entity for subject in predicted.subjects for entity in subject]
        maskings[sample.id] = mask(sample.description, entities, predicted.related)
    return maskings


def read_rewritings(results: Path, model: str, prompt: str, dataset: Dataset) -> Maskings:
    """Read the run in which a model rewrote the texts; raises as `read_maskings` does."""
    predictions = _read_run(results, model, prompt, dataset).predictions
    return {
        sample_id: Rewritten(predicted.rewritten)
        for sample_id, predicted in predictions.items()
        if predicted.rewritten is not None
    }


def _read_run(results: Path, model: str, prompt: str, dataset: Dataset) -> Run:
    path = RunFiles.at(results / "runs", model, prompt, dataset.name).manifest
    run = read_run(path, dataset)
    if run.manifest.dataset.sha256 != dataset.sha256:
        raise InputFileError(path, f"{dataset.name} has changed since this run; run it again")
    return run


def run_name(dataset: str, condition: str) -> str:
    """Return the name of the runs on a dataset under a condition."""
    # No dataset name contains "@".
    return f"{dataset}@{condition}"


def split_name(run: str) -> tuple[str, str]:
    """Split the name of a run into dataset and condition."""
    dataset, _, condition = run.partition("@")
    return dataset, condition


def chats_folder(results: Path, prompt: str, answerer: str = "") -> Path:
    """Return the folder of the runs with a prompt, which has a folder per model.

    Judges of answers have one such folder for each answerer.
    """
    folder = results / FOLDER / {ANSWER: "answers", JUDGE: "verdicts", TEXTS: "texts"}[prompt]
    return RunFiles.at(folder, answerer, prompt, "").model_folder if prompt == JUDGE else folder


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A stored run of an answerer or a judge; its records by sample id."""

    manifest: Manifest
    records: Mapping[str, RunRecord]

    @property
    def model(self) -> str:
        """The answerer or judge."""
        return self.manifest.system.model

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return split_name(self.manifest.dataset.name)[0]

    @property
    def condition(self) -> str:
        """What was masked."""
        return split_name(self.manifest.dataset.name)[1]

    @property
    def masked_by(self) -> tuple[str, ...]:
        """Model and prompts of the runs that masked the texts, if systems did."""
        return tuple(self.manifest.system.settings.get(MASKED_BY, ()))

    @property
    def returned(self) -> list[str]:
        """The sorted model names that the provider returned."""
        completions = (each for record in self.records.values() for each in record.completions)
        return sorted({each.model for each in completions if each.model})

    def responses(
        self, questions: Questions, samples: Iterable[Sample]
    ) -> dict[str, ModelResponse | None]:
        """Return the stored responses to questions, by sample id; None for a failed call.

        Samples without questions, or whose stored request differs from the current one, are
        absent.
        """
        card = self.manifest.system
        responses: dict[str, ModelResponse | None] = {}
        for sample in samples:
            record = self.records.get(sample.id) if sample.id in questions.fields else None
            if record and record.request == request_hash(card, questions.messages(sample)):
                responses[sample.id] = record.written
        return responses

    def signature(
        self,
        task: Task,
        prompts: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the line that reproduces figures, with further prompt hashes and settings."""
        card = self.manifest.system
        signature = Signature(
            dataset=self.dataset,
            dataset_sha256=self.manifest.dataset.sha256,
            task=task,
            strategy=self.condition,
            prompts={card.prompt: card.prompt_sha256, **(prompts or {})},
            model=card.model,
            returned=self.returned,
            settings={**card.settings, **(settings or {})},
        )
        return str(signature)

    def left_out(self, error: PiiBenchError) -> str:
        """Return the message that this run is left out because of an error."""
        return f"{FOLDER}: {self.model} on {self.manifest.dataset.name}: {error}"


def read_answerers(results: Path, left_out: list[str]) -> list[StoredChat]:
    """Read all runs of answerers, sorted by answerer and name.

    `left_out` receives a message for each run or line that cannot be read.
    """
    return _read_all(chats_folder(results, ANSWER).glob(f"*/{ANSWER}/*.run.json"), left_out)


def read_judges(results: Path, answerer: str, run: str, left_out: list[str]) -> list[StoredChat]:
    """Read the runs of all judges on one run of an answerer, as `read_answerers` does."""
    folder = chats_folder(results, JUDGE, answerer)
    name = RunFiles.at(folder, "", JUDGE, run).manifest.name
    return _read_all(folder.glob(f"*/{JUDGE}/{name}"), left_out)


def read_text_judges(results: Path, left_out: list[str]) -> list[StoredChat]:
    """Read all runs of judges of texts, as `read_answerers` does."""
    return _read_all(chats_folder(results, TEXTS).glob(f"*/{TEXTS}/*.run.json"), left_out)


def _read_all(manifests: Iterable[Path], left_out: list[str]) -> list[StoredChat]:
    runs = []
    for path in sorted(manifests):
        unreadable: list[str] = []
        responses = read_responses(RunFiles.of_manifest(path).responses, unreadable)
        try:
            records = {record.id: record for record in responses}
            runs.append(StoredChat(read_manifest(path), records))
        except InputFileError as error:
            left_out.append(f"{error}; {MANIFEST_REMEDY}")
        else:
            left_out += [f"{line}; {LINE_REMEDY}" for line in unreadable]
    return runs


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """The answers of an answerer under one condition.

    Attributes:
        oracle: whether masking uses gold.
        samples: all samples of the dataset that have a query.
        asked: those that the answerer was asked about without masking.
        maskings: of the samples in `asked`.
        pairs: sample id to answers, for samples that have both.
    """

    run: StoredChat
    oracle: bool
    samples: Sequence[Sample]
    asked: Sequence[Sample]
    maskings: Maskings
    pairs: Mapping[str, AnswerPair]


def load_answers(
    results: Path, dataset: Dataset, run: StoredChat, base: StoredChat
) -> ConditionAnswers:
    """Pair the answers of a run that match the current requests with those without masking.

    `base` is the run of the same answerer on the same dataset under `no-mask`.

    Raises:
        PiiBenchError: the runs cannot be compared, no answer matches, or a run of the system that
            masks is absent or broken.
    """
    own, bases = run.manifest.system.settings, base.manifest.system.settings
    if {**own, MASKED_BY: None} != {**bases, MASKED_BY: None}:
        raise PiiBenchError(f"{NO_MASK} was asked with other settings; ask both with the same ones")
    if not dataset.sha256 == run.manifest.dataset.sha256 == base.manifest.dataset.sha256:
        raise PiiBenchError("the dataset has changed since this run; run it again")
    samples = applicable(Task.MASKING, dataset.samples)
    unmasked = base.responses(answer_questions(texts(mask_by_gold(NO_MASK, samples))), samples)
    asked = [sample for sample in samples if sample.id in unmasked]
    oracle, maskings = read_maskings(results, dataset, run.condition, run.masked_by, asked)
    masked = run.responses(answer_questions(texts(maskings), run.masked_by), asked)
    if not masked:
        raise PiiBenchError("no stored answer matches the current requests; run it again")
    return ConditionAnswers(run, oracle, samples, asked, maskings, answer_pairs(masked, unmasked))


def answer_pairs(
    masked: Mapping[str, ModelResponse | None], unmasked: Mapping[str, ModelResponse | None]
) -> dict[str, AnswerPair]:
    """Return the answers to the masked and unmasked texts of the samples that have both, by id.

    A response is None for a failed call.
    """
    pairs = {}
    for sample_id, response in masked.items():
        base = unmasked.get(sample_id)
        if response is None or base is None:
            continue
        answer, base_answer = read_answer(response), read_answer(base)
        if answer is not None and base_answer is not None:
            pairs[sample_id] = AnswerPair(masked=answer, unmasked=base_answer)
    return pairs


def texts(maskings: Maskings) -> dict[str, str]:
    """Return the masked texts by sample id."""
    return {sample_id: masked.text for sample_id, masked in maskings.items()}
