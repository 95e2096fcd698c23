"""`pii-bench train`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_data_folder, number_in, positive
from pii_bench.cli.terminal import finish, say
from pii_bench.cli.train_lora import BASE, train_lora
from pii_bench.cli.training_sets import add_targets
from pii_bench.systems.encoder.augment import ALL
from pii_bench.systems.tagger.settings import Settings
from pii_bench.systems.tagger.train import train

if TYPE_CHECKING:
    from pii_bench.systems.tagger.settings import Epoch


ENCODER_HEADS: Final = ("linear", "crf", "charcnn-crf")

DESCRIPTION: Final = (
    "Train the BiLSTM-CRF on the sets to train and tune on; or fine-tune an encoder for "
    "detection, relevance and owners at once; or a causal chat model with LoRA."
)

_LORA: Final = {
    "steps": "updates of the weights (160)",
    "batch": "examples that are computed at once (1)",
    "accumulate": "batches of a step (1)",
    "longest": "tokens of an example; longer ones are left out (512)",
    "rank": "of the adapters (16)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "network", nargs="?", choices=("bilstm-crf", "encoder", "lora"), default="bilstm-crf"
    )
    add_data_folder(parser)
    parser.add_argument("--out", type=Path, metavar="PATH", help="where the weights go")
    parser.add_argument(
        "--words-alone",
        action="store_true",
        help="bilstm-crf: see a token's word, and not how it is written",
    )
    encoder = parser.add_argument_group("encoder")
    encoder.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PATH",
        help="folder of a pretrained encoder with its tokenizer.json: BERT, DistilBERT, RoBERTa, "
        "DeBERTa-v3...; or the .gguf file of a decoder, for --frozen "
        "(default: all-MiniLM-L6-v2, from its package)",
    )
    encoder.add_argument("--head", choices=ENCODER_HEADS, default="linear", help="(%(default)s)")
    encoder.add_argument("--frozen", action="store_true", help="train the heads alone")
    encoder.add_argument("--epochs", type=positive, default=4, metavar="N", help="(%(default)s)")
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
    encoder.add_argument(
        "--dev",
        action="extend",
        nargs="+",
        metavar="DATASET",
        help="datasets to choose the epoch by (default: ours)",
    )
    parser.add_argument(
        "--train",
        action="extend",
        nargs="+",
        metavar="DATASET",
        help="encoder, lora: datasets to learn from, as `run --dataset` takes them (default: ours)",
    )
    _add_lora(parser.add_argument_group("lora"))


def _add_lora(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--base",
        default=BASE,
        metavar="MODEL",
        help="a causal chat model: its .gguf file, or its folder (default: %(default)s, from its "
        "package)",
    )
    add_targets(parser)
    for name, what in _LORA.items():
        parser.add_argument(f"--{name}", type=positive, metavar="N", help=what)
    parser.add_argument("--learning-rate", type=_rate, metavar="X", help="the highest (0.0005)")
    parser.add_argument("--seed", type=int, metavar="N", help="of adapters and order (13)")


def _rate(text: str) -> float:
    rate = number_in(text)
    if rate is None or not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0 and at most 1")
    return rate


def run(arguments: argparse.Namespace) -> bool:
    """Train the network that was named.

    Returns:
        True.

    Raises:
        PiiBenchError: as of `train_encoder` or `train_lora`, or the other errors of training.
    """
    if arguments.network == "encoder":
        from pii_bench.cli.train_encoder import train_encoder

        return train_encoder(arguments)
    if arguments.network == "lora":
        return train_lora(arguments)
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
