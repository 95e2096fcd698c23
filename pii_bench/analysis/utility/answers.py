"""The stored answers under one condition, held against gold and the answers to no mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.analysis.utility.chats import MASKED_BY, AnswerPair, AnswerQuestions
from pii_bench.analysis.utility.conditions import (
    GOLD_CONDITIONS,
    MASK_ALL,
    MASK_UNRELATED,
    NO_MASK,
    mask_by_gold,
    mask_by_system,
    read_masker,
    read_rewritings,
)
from pii_bench.analysis.utility.responses import read_answer
from pii_bench.analysis.utility.stored import split_name
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.conditions import Maskings
    from pii_bench.analysis.utility.stored import StoredChat
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Response


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
        return split_name(self.run.manifest.dataset.name)[1]


class StaleAnswersError(PiiBenchError):
    """Stored answers are not to what would be asked today, or stand alone."""


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
    unmasked = base.responses(AnswerQuestions(texts(mask_by_gold(NO_MASK, samples))), samples)
    asked = [sample for sample in samples if sample.id in unmasked]
    oracle, maskings = _maskings(results, dataset, run, asked)
    questions = AnswerQuestions(texts(maskings), _masked_by(run))
    masked = run.responses(questions, asked)
    if not masked:
        raise StaleAnswersError("no stored answer is to what would be asked today")
    return ConditionAnswers(run, oracle, samples, asked, maskings, answer_pairs(masked, unmasked))


def answer_pairs(
    masked: Mapping[str, Response | None], unmasked: Mapping[str, Response | None]
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


def _read(response: Response | None) -> str | None:
    return None if response is None else read_answer(response)


def _maskings(
    results: Path, dataset: Dataset, run: StoredChat, asked: Sequence[Sample]
) -> tuple[bool, Maskings]:
    """Whether gold told what is masked, and the maskings."""
    condition = split_name(run.manifest.dataset.name)[1]
    match _masked_by(run):
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


def _masked_by(run: StoredChat) -> tuple[str, ...]:
    return tuple(run.manifest.system.settings.get(MASKED_BY, ()))


def _settings(run: StoredChat) -> dict[str, Any]:
    settings = run.manifest.system.settings
    return {name: value for name, value in settings.items() if name != MASKED_BY}
