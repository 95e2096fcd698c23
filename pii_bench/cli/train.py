"""`pii-bench train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_data_folder, positive
from pii_bench.cli.terminal import finish, say
from pii_bench.systems.encoder.augment import ALL
from pii_bench.systems.tagger.settings import Settings
from pii_bench.systems.tagger.train import train

if TYPE_CHECKING:
    import argparse

    from pii_bench.systems.tagger.settings import Epoch


ENCODER_HEADS: Final = ("linear", "crf", "charcnn-crf")

DESCRIPTION: Final = (
    "Train the BiLSTM-CRF on the sets to train and tune on; or fine-tune an encoder for "
    "detection, relevance and owners at once."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "network", nargs="?", choices=("bilstm-crf", "encoder"), default="bilstm-crf"
    )
    add_data_folder(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the weights go")
    parser.add_argument(
        "--words-alone",
        action="store_true",
        help="bilstm-crf: see a token's word, and not how it is written",
    )
    encoder = parser.add_argument_group("encoder")
    encoder.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="a pretrained encoder with its tokenizer.json: BERT, DistilBERT, RoBERTa, ... "
        "(default: all-MiniLM-L6-v2, from its package)",
    )
    encoder.add_argument("--head", choices=ENCODER_HEADS, default="linear", help="(%(default)s)")
    encoder.add_argument("--frozen", action="store_true", help="train the heads alone")
    encoder.add_argument("--epochs", type=positive, default=6, metavar="N", help="(%(default)s)")
    encoder.add_argument(
        "--augment",
        nargs="*",
        choices=ALL,
        default=ALL,
        help="ways to rewrite half of the samples, which are learnt from a second time (all)",
    )
    encoder.add_argument(
        "--hold-out",
        type=positive,
        default=200,
        metavar="N",
        help="samples of each --train dataset that is not ours that are for dev, at most a fifth "
        "(%(default)s)",
    )
    for part, what in (("train", "learn from"), ("dev", "choose the epoch by")):
        encoder.add_argument(
            f"--{part}",
            action="extend",
            nargs="+",
            metavar="DATASET",
            help=f"datasets to {what}, as `run --dataset` takes them (default: ours)",
        )


def run(arguments: argparse.Namespace) -> bool:
    """Train the network that was named.

    Returns:
        True.

    Raises:
        PiiBenchError: as of `train_encoder`, or the other errors of either training.
    """
    if arguments.network == "encoder":
        from pii_bench.cli.train_encoder import train_encoder

        return train_encoder(arguments)
    return _train_tagger(arguments.data, arguments.out, words_alone=arguments.words_alone)


def _train_tagger(data: Path, out: Path | None, *, words_alone: bool) -> bool:
    """Train the BiLSTM-CRF on the train sets, dev for stopping.

    Args:
        data: folder of the sets.
        out: where the files go; None for where those that ship are.
        words_alone: whether a token is seen by its word, and not by how it is written.

    Returns:
        True.

    Raises:
        InputFileError: a set is missing or broken.
        MissingExtraError: the extra `train` is not installed.
        ResultsError: the files cannot be written.
    """
    if out is None:
        out = Path("data/models") / ("bilstm-crf-words" if words_alone else "bilstm-crf")
    settings = Settings(spelling=not words_alone)
    train(_sets(data, "train"), _sets(data, "dev"), out, _show, settings)
    say(f"weights: {out}")
    return True


def _sets(data: Path, part: str) -> list[Path]:
    return [data / f"{part}-{name}.jsonl" for name in ("single", "multi")]


def _show(epoch: Epoch) -> None:
    score = f"dev P {epoch.dev.precision:.3f} R {epoch.dev.recall:.3f} F1 {epoch.dev.f1:.3f}"
    say(f"epoch {epoch.number}: loss {epoch.loss:.2f}, {score}, {epoch.seconds:.0f} s")
    finish()
