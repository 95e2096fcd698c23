"""Stored maskings, answers and verdicts: where they are, and which answer what is asked today.

Gold tells what is masked for three conditions, the paper's; a system tells it for any other, whose
name is `<model>+<prompt>` of its query-related run, or of the run in which it wrote the texts anew.
The answers under one condition are compared with gold and with the answers to no mask.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

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
from pii_bench.runs.records import Manifest, RunRecord, read_manifest
from pii_bench.runs.responses import compose
from pii_bench.runs.store import LINE_REMEDY, MANIFEST_REMEDY, RunFiles, read_lines
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
"""Nothing, all gold entities, and the ideal: all but the related ones."""

FOLDER: Final = "utility"
"""The folder of results that everything here is in; runs of systems are not."""

# No name of a dataset holds it.
_UNDER: Final = "@"


Maskings: TypeAlias = "Mapping[str, Masked | Rewritten]"
"""Sample id to its masked or rewritten description; samples where that failed are absent."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A description that was written anew."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Masker:
    """The stored answers of a system on one dataset.

    Attributes:
        oracle: whether it is told gold.
        predictions: sample id to what it says of both tasks.
    """

    oracle: bool
    predictions: Mapping[str, Prediction]


def condition_of(model: str, prompt: str) -> str:
    """The condition under which a system masks.

    Args:
        model: as its card names it.
        prompt: of its query-related answers.
    """
    return f"{model}+{prompt}"


def mask_by_gold(condition: str, samples: Iterable[Sample]) -> Maskings:
    """Mask what one of `GOLD_CONDITIONS` says.

    Raises:
        ValueError: another condition.
    """
    if condition not in GOLD_CONDITIONS:
        raise ValueError(f"{condition} is not told by gold")
    maskings = {}
    for sample in samples:
        entities = () if condition == NO_MASK else sample.entities
        related = sample.related if condition == MASK_UNRELATED else ()
        pairs = [(entity.text, entity.type) for entity in entities]
        kept = [entity.text for entity in related]
        maskings[sample.id] = mask(sample.description, pairs, kept)
    return maskings


def mask_by_system(masker: Masker, samples: Iterable[Sample]) -> Maskings:
    """Mask the entities that a system finds and does not call needed.

    A sample has no masking if the system failed in either task: what it masks is not known.
    """
    maskings = {}
    for sample in samples:
        said = masker.predictions.get(sample.id)
        if said is not None and said.subjects is not None and said.related is not None:
            entities = [entity for subject in said.subjects for entity in subject]
            maskings[sample.id] = mask(sample.description, entities, said.related)
    return maskings


def read_masker(results: Path, model: str, prompts: tuple[str, str], dataset: Dataset) -> Masker:
    """Read the runs of a system.

    Args:
        results: the folder whose `runs` they are in.
        model: as its card names it.
        prompts: of its detection and of its query-related run.
        dataset: what it was run on.

    Raises:
        InputFileError: a run is absent or broken, or is on another file of that name.
    """
    detection, related = (_read_run(results, model, prompt, dataset) for prompt in prompts)
    both = detection.predictions.keys() & related.predictions.keys()
    return Masker(
        oracle=detection.manifest.system.oracle or related.manifest.system.oracle,
        predictions={
            sample_id: compose(detection.predictions[sample_id], related.predictions[sample_id])
            for sample_id in both
        },
    )


def read_rewritings(results: Path, model: str, prompt: str, dataset: Dataset) -> Maskings:
    """Read the run in which a model wrote the texts anew; otherwise as `read_masker`."""
    return {
        sample_id: Rewritten(said.rewritten)
        for sample_id, said in _read_run(results, model, prompt, dataset).predictions.items()
        if said.rewritten is not None
    }


def _read_run(results: Path, model: str, prompt: str, dataset: Dataset) -> Run:
    path = RunFiles.at(results / "runs", model, prompt, dataset.name).manifest
    run = read_run(path, dataset)
    if run.manifest.dataset.sha256 != dataset.sha256:
        raise InputFileError(path, f"{dataset.name} has changed since")
    return run


def run_name(dataset: str, condition: str) -> str:
    """How the runs about a dataset under a condition are named."""
    return f"{dataset}{_UNDER}{condition}"


def split_name(run: str) -> tuple[str, str]:
    """Dataset and condition of a run's name."""
    dataset, _, condition = run.partition(_UNDER)
    return dataset, condition


def answers_folder(results: Path) -> Path:
    """`<results>/utility/answers`, with a folder per answerer."""
    return results / FOLDER / "answers"


def verdicts_folder(results: Path, answerer: str) -> Path:
    """`<results>/utility/verdicts/<answerer>`, with a folder per judge."""
    return RunFiles.at(results / FOLDER / "verdicts", answerer, JUDGE, "").model_folder


def texts_folder(results: Path) -> Path:
    """`<results>/utility/texts`, with a folder per judge of texts."""
    return results / FOLDER / "texts"


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A run of an answerer or a judge, read back.

    Attributes:
        records: by sample id.
        unreadable: lines that cannot be read, by file, line and reason.
    """

    manifest: Manifest
    records: Mapping[str, RunRecord]
    unreadable: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """The run of a manifest.

        Raises:
            InputFileError: the manifest is broken.
        """
        unreadable: list[str] = []
        lines = read_lines(RunFiles.of_manifest(path).responses, unreadable)
        by_id = {record.id: record for _, record in lines}
        return cls(read_manifest(path), by_id, tuple(unreadable))

    @property
    def about(self) -> tuple[str, str]:
        """Dataset and condition."""
        return split_name(self.manifest.dataset.name)

    @property
    def masked_by(self) -> tuple[str, ...]:
        """What names the runs by which the texts were masked, if they were."""
        return tuple(self.manifest.system.settings.get(MASKED_BY, ()))

    @property
    def returned(self) -> frozenset[str]:
        """The models that the provider said it used."""
        completions = (each for record in self.records.values() for each in record.completions)
        return frozenset(each.model for each in completions if each.model)

    def responses(
        self, questions: Questions, samples: Iterable[Sample]
    ) -> dict[str, ModelResponse | None]:
        """What came for samples, by id, as far as today's questions were asked.

        Returns:
            None for a call that failed; samples about which there is nothing to ask, or
            something else was asked, are absent.
        """
        card = self.manifest.system
        found: dict[str, ModelResponse | None] = {}
        for sample in samples:
            record = self.records.get(sample.id) if sample.id in questions.fields else None
            if record and record.request == request_hash(card, questions.messages(sample)):
                found[sample.id] = record.written
        return found


def read_answerers(results: Path, left_out: list[str]) -> list[StoredChat]:
    """All runs of answerers, by answerer and name.

    Args:
        results: the folder.
        left_out: is told of runs and lines that cannot be read, each with the reason.
    """
    return _read_all(answers_folder(results).glob(f"*/{ANSWER}/*.run.json"), left_out)


def read_judges(results: Path, answerer: str, run: str, left_out: list[str]) -> list[StoredChat]:
    """The runs of all judges about one run of an answerer, by judge; `left_out` as above."""
    folder = verdicts_folder(results, answerer)
    name = RunFiles.at(folder, "", JUDGE, run).manifest.name
    return _read_all(folder.glob(f"*/{JUDGE}/{name}"), left_out)


def read_text_judges(results: Path, left_out: list[str]) -> list[StoredChat]:
    """All runs of judges of texts, by judge and name; `left_out` as above."""
    return _read_all(texts_folder(results).glob(f"*/{TEXTS}/*.run.json"), left_out)


def _read_all(manifests: Iterable[Path], left_out: list[str]) -> list[StoredChat]:
    found = []
    for path in sorted(manifests):
        try:
            found.append(StoredChat.read(path))
        except InputFileError as error:
            left_out.append(f"{error}; {MANIFEST_REMEDY}")
        else:
            left_out += [f"{line}; {LINE_REMEDY}" for line in found[-1].unreadable]
    return found


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """One run of an answerer.

    Attributes:
        run: as it is stored.
        oracle: whether gold told what is masked.
        samples: of the dataset, those with a query.
        asked: those that the answerer was asked about unmasked; others are in no run yet.
        maskings: of those asked about.
        pairs: sample id to answers, for those that have both.
    """

    run: StoredChat
    oracle: bool
    samples: Sequence[Sample]
    asked: Sequence[Sample]
    maskings: Maskings
    pairs: Mapping[str, AnswerPair]

    @property
    def condition(self) -> str:
        """What was masked."""
        return self.run.about[1]


class StaleAnswersError(PiiBenchError):
    """Stored answers are not to what would be asked today, or lack the other half."""


def hold_answers(
    results: Path, dataset: Dataset, run: StoredChat, base: StoredChat
) -> ConditionAnswers:
    """Hold a run of an answerer against its dataset, its maskings and the run without a mask.

    Args:
        results: the folder with the runs of the systems that mask.
        dataset: what was asked about, under its own name.
        run: under any condition.
        base: the same answerer's on the same dataset without a mask.

    Raises:
        StaleAnswersError: the two cannot be compared, or nothing is as today; the message
            says why.
        InputFileError: a run of the system that masks is absent or broken.
    """
    if _settings(run) != _settings(base):
        raise StaleAnswersError(f"{NO_MASK} was asked with other settings")
    if {dataset.sha256} != {each.manifest.dataset.sha256 for each in (run, base)}:
        raise StaleAnswersError("the dataset has changed")
    samples = applicable(Task.MASKING, dataset.samples)
    unmasked = base.responses(answer_questions(texts(mask_by_gold(NO_MASK, samples))), samples)
    asked = [sample for sample in samples if sample.id in unmasked]
    oracle, maskings = _maskings(results, dataset, run, asked)
    questions = answer_questions(texts(maskings), run.masked_by)
    masked = run.responses(questions, asked)
    if not masked:
        raise StaleAnswersError("no stored answer is to what would be asked today")
    return ConditionAnswers(run, oracle, samples, asked, maskings, answer_pairs(masked, unmasked))


def answer_pairs(
    masked: Mapping[str, ModelResponse | None], unmasked: Mapping[str, ModelResponse | None]
) -> dict[str, AnswerPair]:
    """The answers of the samples that have both, by id.

    Args:
        masked: responses to the masked texts; None for a call that failed.
        unmasked: responses to the texts as they are.
    """
    pairs = {}
    for sample_id, response in masked.items():
        answer, plain = _read(response), _read(unmasked.get(sample_id))
        if answer is not None and plain is not None:
            pairs[sample_id] = AnswerPair(answer, plain)
    return pairs


def texts(maskings: Maskings) -> dict[str, str]:
    """The masked texts by sample id."""
    return {sample_id: masked.text for sample_id, masked in maskings.items()}


def _read(response: ModelResponse | None) -> str | None:
    return None if response is None else read_answer(response)


def _maskings(
    results: Path, dataset: Dataset, run: StoredChat, asked: Sequence[Sample]
) -> tuple[bool, Maskings]:
    """Whether gold told what is masked, and the maskings."""
    condition = run.about[1]
    match run.masked_by:
        case (model, prompt):
            written = read_rewritings(results, model, prompt, dataset)
            return False, {each.id: written[each.id] for each in asked if each.id in written}
        case (model, detection, related):
            masker = read_masker(results, model, (detection, related), dataset)
            return masker.oracle, mask_by_system(masker, asked)
        case _ if condition in GOLD_CONDITIONS:
            return condition in {MASK_ALL, MASK_UNRELATED}, mask_by_gold(condition, asked)
        case _:
            raise StaleAnswersError(f"{condition!r} is no condition of this version")


def _settings(run: StoredChat) -> dict[str, Any]:
    settings = run.manifest.system.settings
    return {name: value for name, value in settings.items() if name != MASKED_BY}
