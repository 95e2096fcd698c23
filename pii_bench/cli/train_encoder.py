"""`pii-bench train encoder`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import say
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import MissingExtraError, PiiBenchError

if TYPE_CHECKING:
    import argparse

    from pii_bench.datasets.sample import Sample


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
    checkpoint: Path | None = arguments.checkpoint
    if checkpoint is None or not (checkpoint / "tokenizer.json").exists():
        what = "a folder with a pretrained encoder and its tokenizer.json"
        raise PiiBenchError(f"--checkpoint must be {what}, not {checkpoint}")
    try:
        from pii_bench.systems.encoder.train import Settings, train
    except ImportError as error:
        raise MissingExtraError("what training needs", "pip install -e '.[encoder]'") from error
    out: Path = arguments.out or Path("build") / "encoder"
    found = train(
        checkpoint,
        _samples(arguments.train or ["train-single", "train-multi"]),
        _samples(arguments.dev or ["dev-single", "dev-multi"]),
        out,
        Settings(head=arguments.head, frozen=arguments.frozen, epochs=arguments.epochs),
        out.with_name(f"{out.name}.work"),
    )
    say(", ".join(f"{name} {value:.3f}" for name, value in found.figures.items()))
    say(f"weights: {out}")
    return True


def _samples(sources: list[str]) -> list[Sample]:
    return [sample for source in sources for sample in load_dataset(source).samples]
