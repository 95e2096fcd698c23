"""What of a sample is masked before it is answered.

Gold tells it for three conditions, the paper's; a system tells it for any other, whose name is
`<model>+<prompt>` of its query-related run, or of the run in which it wrote the texts anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pii_bench.errors import InputFileError
from pii_bench.masking import mask
from pii_bench.ranking.stored import read_run
from pii_bench.runs.responses import compose
from pii_bench.runs.store import RunFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.masking import Masked
    from pii_bench.systems.predictions import Prediction

NO_MASK: Final = "no-mask"
MASK_ALL: Final = "mask-all"
MASK_UNRELATED: Final = "mask-query-unrelated"

GOLD_CONDITIONS: Final = (NO_MASK, MASK_ALL, MASK_UNRELATED)
"""Nothing, all gold entities, and the ideal: all but the related ones."""

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
    return {sample.id: _by_gold(condition, sample) for sample in samples}


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
    manifests = [
        RunFiles.at(results / "runs", model, prompt, dataset.name).manifest for prompt in prompts
    ]
    detection, related = (read_run(path, dataset) for path in manifests)
    for path, run in zip(manifests, (detection, related), strict=True):
        if run.manifest.dataset.sha256 != dataset.sha256:
            raise InputFileError(path, f"{dataset.name} has changed since")
    both = detection.predictions.keys() & related.predictions.keys()
    return Masker(
        oracle=detection.manifest.system.oracle or related.manifest.system.oracle,
        predictions={
            sample_id: compose(detection.predictions[sample_id], related.predictions[sample_id])
            for sample_id in both
        },
    )


def read_rewritings(results: Path, model: str, prompt: str, dataset: Dataset) -> Maskings:
    """Read the run in which a model wrote the texts anew.

    Args:
        results: the folder whose `runs` it is in.
        model: as its card names it.
        prompt: likewise.
        dataset: what it was run on.

    Raises:
        InputFileError: the run is absent or broken, or is on another file of that name.
    """
    path = RunFiles.at(results / "runs", model, prompt, dataset.name).manifest
    run = read_run(path, dataset)
    if run.manifest.dataset.sha256 != dataset.sha256:
        raise InputFileError(path, f"{dataset.name} has changed since")
    return {
        sample_id: Rewritten(said.rewritten)
        for sample_id, said in run.predictions.items()
        if said.rewritten is not None
    }


def _by_gold(condition: str, sample: Sample) -> Masked:
    entities = () if condition == NO_MASK else sample.entities
    related = sample.related if condition == MASK_UNRELATED else ()
    pairs = [(entity.text, entity.type) for entity in entities]
    return mask(sample.description, pairs, [entity.text for entity in related])
