"""`pii-bench train`."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.cli.export_fine_tuning import add_targets
from pii_bench.cli.options import add_data_folder, positive, share
from pii_bench.cli.terminal import echo, flush, log
from pii_bench.errors import InputFileError, MissingExtraError, PiiBenchError
from pii_bench.models.local import WEIGHTS, hash_gguf, locate
from pii_bench.prompting import labelled
from pii_bench.prompting.targets import training_examples
from pii_bench.systems.encoder.augment import ALL, DEFAULT
from pii_bench.systems.encoder.data import DEV, TRAIN, packaged_checkpoint, read_data
from pii_bench.systems.tagger.settings import Settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pii_bench.systems.tagger.settings import Epoch

_HEADS: Final = ("linear", "crf", "charcnn-crf")
_CHAT_MODEL: Final = "smollm2-135m-instruct"
DESCRIPTION: Final = (
    "Train the BiLSTM-CRF on the sets to train and tune on; or fine-tune an encoder for "
    "detection, relevance and owners at once; or a causal chat model with LoRA."
)


_LORA_NUMBERS: Final = {
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
    encoder.add_argument(
        "--start",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="go on from the weights of this trained encoder, of the same checkpoint and head; of "
        "several, from the mean",
    )
    encoder.add_argument("--head", choices=_HEADS, default="linear", help="(%(default)s)")
    encoder.add_argument("--frozen", action="store_true", help="train the heads alone")
    encoder.add_argument(
        "--epochs", type=int, default=4, metavar="N", help="0: --start as it is (%(default)s)"
    )
    encoder.add_argument(
        "--augment",
        nargs="*",
        choices=ALL,
        default=DEFAULT,
        help="ways to rewrite half of the samples, which are learnt from a second time "
        "(all but synonyms, which need the extra `synonyms`)",
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
    parser.add_argument(
        "--learning-rate",
        type=share,
        metavar="X",
        help="encoder, lora: the highest (0.0003, 0.0005)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="encoder, lora: of new weights and order (13)"
    )
    _add_lora(parser.add_argument_group("lora"))


def _add_lora(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--base",
        default=_CHAT_MODEL,
        metavar="MODEL",
        help="a causal chat model: its .gguf file, or its folder (default: %(default)s, from its "
        "package)",
    )
    add_targets(parser)
    for name, what in _LORA_NUMBERS.items():
        parser.add_argument(f"--{name}", type=positive, metavar="N", help=what)


def run(arguments: argparse.Namespace) -> bool:
    """Train the network that was named.

    Raises:
        PiiBenchError: a dataset or checkpoint is missing, broken or not for training, or the files
            cannot be written.
        MissingExtraError: what training needs is not installed.
    """
    {"bilstm-crf": _bilstm_crf, "encoder": _encoder, "lora": _lora}[arguments.network](arguments)
    return True


def _bilstm_crf(arguments: argparse.Namespace) -> None:
    """Train the BiLSTM-CRF on the train sets, dev for stopping."""
    try:
        from pii_bench.systems.tagger.train import train
    except ImportError as error:
        raise MissingExtraError("what training needs", "pip install 'pii-bench[train]'") from error
    name = "bilstm-crf-words" if arguments.words_alone else "bilstm-crf"
    out: Path = arguments.out or Path("data/models") / name
    settings = Settings(spelling=not arguments.words_alone)
    data: Path = arguments.data
    train(_sets(data, "train"), _sets(data, "dev"), out, _show_epoch, settings)
    echo(f"weights: {out}")


def _sets(data: Path, part: str) -> list[Path]:
    return [data / f"{part}-{name}.jsonl" for name in ("single", "multi")]


def _show_epoch(epoch: Epoch) -> None:
    score = f"dev P {epoch.dev.precision:.3f} R {epoch.dev.recall:.3f} F1 {epoch.dev.f1:.3f}"
    echo(f"epoch {epoch.number}: loss {epoch.loss:.2f}, {score}, {epoch.seconds:.0f} s")
    flush()


def _lora(arguments: argparse.Namespace) -> None:
    """Fine-tune a chat model, and say how `run` takes it; goes on from the last checkpoint."""
    base = _base(arguments.base)
    try:
        from pii_bench.models.lora import Settings, tune
    except ImportError as error:
        what = "what fine-tuning a chat model needs"
        raise MissingExtraError(what, "pip install -e '.[lora]'") from error
    examples = training_examples(arguments.train or labelled.TRAIN, arguments.task)
    settings = Settings(**_given(arguments, (field.name for field in fields(Settings))))
    out: Path = arguments.out or Path("build") / "lora"
    tuned = tune(base, examples, out, settings, _show_step)
    echo(f"{tuned.examples} examples, {tuned.left_out} left out: over {settings.longest} tokens")
    echo(f"loss of the first tenth of the steps {tuned.first_loss:.3f}, last {tuned.last_loss:.3f}")
    echo(f"weights: {tuned.model}")
    if tuned.model.is_file():
        echo(f"pii-bench run --model local/{tuned.model}")


def _given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The settings of these names that were given."""
    values = ((name, getattr(arguments, name, None)) for name in names)
    return {name: value for name, value in values if value is not None}


def _base(named: str) -> Path:
    """The chat model of a name or path."""
    if named in WEIGHTS:
        return locate(WEIGHTS[named])
    path = Path(named)
    if not path.exists():
        raise InputFileError(path, f"no such file or folder, and no name of {', '.join(WEIGHTS)}")
    if path.is_file():
        # It refuses what is no whole GGUF file.
        hash_gguf(path)
    return path


def _show_step(step: int, steps: int, loss: float) -> None:
    log(f"step {step} of {steps}: loss {loss:.3f}")


def _encoder(arguments: argparse.Namespace) -> None:
    """Fine-tune an encoder, and say how good it is on dev; goes on from the last epoch."""
    checkpoint = arguments.checkpoint or packaged_checkpoint()
    if arguments.epochs < 0 or not (arguments.epochs or arguments.start):
        raise PiiBenchError(f"--epochs must be from 1, or 0 with --start, not {arguments.epochs}")
    if not (checkpoint / "tokenizer.json").exists() and not _is_gguf(checkpoint):
        what = "a folder with a pretrained encoder and its tokenizer.json, or a .gguf file"
        raise PiiBenchError(f"--checkpoint must be {what}, not {checkpoint}")
    if _is_gguf(checkpoint) and find_spec("gguf") is None:
        raise MissingExtraError("reading a GGUF file", "pip install -e '.[encoder,lora]'")
    try:
        from pii_bench.systems.encoder.train import Settings, train
    except ImportError as error:
        raise MissingExtraError("what training needs", "pip install -e '.[encoder]'") from error
    out: Path = arguments.out or Path("build") / "encoder"
    settings = Settings(
        head=arguments.head,
        frozen=arguments.frozen,
        epochs=arguments.epochs,
        kinds=tuple(arguments.augment),
        **_given(arguments, ("learning_rate", "seed")),
    )
    data = read_data(arguments.train or TRAIN, arguments.dev or DEV, arguments.hold_out)
    work = out.with_name(f"{out.name}.work")
    found = train(checkpoint, data, out, settings, work, arguments.start)
    echo(", ".join(f"{name} {value:.3f}" for name, value in found.figures.items()))
    echo(f"weights: {out}")


def _is_gguf(checkpoint: Path) -> bool:
    return checkpoint.suffix == ".gguf" and checkpoint.is_file()
