"""`pii-bench train`."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pii_bench.cli.export_fine_tuning import add_targets
from pii_bench.cli.options import add_options, positive, share
from pii_bench.cli.terminal import echo, flush, log
from pii_bench.datasets.catalog import TRAIN
from pii_bench.errors import InputFileError, MissingExtraError, PiiBenchError
from pii_bench.models.local import WEIGHTS, hash_gguf, locate
from pii_bench.prompting import labelled
from pii_bench.prompting.targets import training_examples
from pii_bench.systems.encoder.augment import ALL, DEFAULT
from pii_bench.systems.encoder.data import DEV, packaged_checkpoint, read_data
from pii_bench.systems.tagger.settings import Settings

if TYPE_CHECKING:
    import argparse

    from pii_bench.systems.tagger.settings import Epoch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Train the BiLSTM-CRF on the train and dev sets; or fine-tune an encoder for detection, "
        "relevance and owners together; or fine-tune a causal chat model with LoRA."
    )
    parser.add_argument(
        "network",
        nargs="?",
        choices=("bilstm-crf", "encoder", "lora"),
        default="bilstm-crf",
        help="the network to train (default: %(default)s)",
    )
    add_options(parser, "--data")
    parser.add_argument("--out", type=Path, metavar="PATH", help="folder or file of the weights")
    parser.add_argument(
        "--words-alone",
        action="store_true",
        help="bilstm-crf: use only a token's word, not its characters",
    )
    parser.add_argument(
        "--train",
        action="extend",
        nargs="+",
        metavar="DATASET",
        help="encoder, lora: training datasets, as for `run --dataset` (default: ours)",
    )
    parser.add_argument(
        "--learning-rate",
        type=share,
        metavar="X",
        help="encoder, lora: the highest learning rate (default: 0.0003, 0.0005)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="encoder, lora: random seed of new weights and of the order (default: 13)",
    )
    _add_encoder(parser.add_argument_group("encoder"))
    _add_lora(parser.add_argument_group("lora"))


def _add_encoder(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="PATH",
        help="folder of a pretrained encoder with its tokenizer.json: BERT, DistilBERT, RoBERTa, "
        "DeBERTa-v3...; or the .gguf file of a decoder, for --frozen "
        "(default: all-MiniLM-L6-v2, from its package)",
    )
    parser.add_argument(
        "--start",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="start from the weights of this trained encoder, which has the same checkpoint and "
        "head; of several, from their mean",
    )
    parser.add_argument(
        "--head",
        choices=("linear", "crf", "charcnn-crf"),
        default="linear",
        help="the output layer (default: %(default)s)",
    )
    parser.add_argument("--frozen", action="store_true", help="train only the heads")
    parser.add_argument(
        "--epochs",
        type=int,
        default=4,
        metavar="N",
        help="number of epochs; 0 writes --start unchanged (default: %(default)s)",
    )
    parser.add_argument(
        "--augment",
        nargs="*",
        choices=ALL,
        default=DEFAULT,
        help="ways to rewrite half of the samples, as additional training data (default: all but "
        "synonyms, which need the extra `synonyms`)",
    )
    parser.add_argument(
        "--hold-out",
        type=positive,
        default=200,
        metavar="N",
        help="number of dev samples from each --train dataset that is not ours, at most a fifth "
        "of it (default: %(default)s)",
    )
    parser.add_argument(
        "--dev",
        action="extend",
        nargs="+",
        metavar="DATASET",
        help="datasets to choose the best epoch on (default: ours)",
    )


def _add_lora(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--base",
        default="smollm2-135m-instruct",
        metavar="MODEL",
        help="a causal chat model: its .gguf file or its folder (default: %(default)s, from its "
        "package)",
    )
    add_targets(parser)
    for name, text in (
        ("steps", "number of updates of the weights (default: 160)"),
        ("batch", "number of examples per batch (default: 1)"),
        ("accumulate", "number of batches per step (default: 1)"),
        ("longest", "longest example in tokens; longer ones are left out (default: 512)"),
        ("rank", "rank of the adapters (default: 16)"),
    ):
        parser.add_argument(f"--{name}", type=positive, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> bool:
    """Train the given network."""
    if arguments.network == "bilstm-crf":
        _train_bilstm_crf(arguments)
    elif arguments.network == "encoder":
        _train_encoder(arguments)
    else:
        _train_lora(arguments)
    return True


def _train_bilstm_crf(arguments: argparse.Namespace) -> None:
    try:
        from pii_bench.systems.tagger.train import train
    except ImportError as error:
        raise MissingExtraError("what training needs", "pip install -e '.[train]'") from error
    name = "bilstm-crf-words" if arguments.words_alone else "bilstm-crf"
    out: Path = arguments.out or Path("data/models") / name
    data: Path = arguments.data
    train(
        [data / "train-single.jsonl", data / "train-multi.jsonl"],
        [data / "dev-single.jsonl", data / "dev-multi.jsonl"],
        out,
        _print_epoch,
        Settings(spelling=not arguments.words_alone),
    )
    echo(f"weights: {out}")


def _print_epoch(epoch: Epoch) -> None:
    score = f"dev P {epoch.dev.precision:.3f} R {epoch.dev.recall:.3f} F1 {epoch.dev.f1:.3f}"
    echo(f"epoch {epoch.number}: loss {epoch.loss:.2f}, {score}, {epoch.seconds:.0f} s")
    flush()


def _train_encoder(arguments: argparse.Namespace) -> None:
    """Fine-tune an encoder, and print its dev scores; resumes after the last epoch."""
    checkpoint: Path = arguments.checkpoint or packaged_checkpoint()
    if arguments.epochs < 0 or not (arguments.epochs or arguments.start):
        raise PiiBenchError(f"--epochs must be from 1, or 0 with --start, not {arguments.epochs}")
    is_gguf = checkpoint.suffix == ".gguf" and checkpoint.is_file()
    if not is_gguf and not (checkpoint / "tokenizer.json").exists():
        raise PiiBenchError(
            "--checkpoint must be a folder with a pretrained encoder and its tokenizer.json, or a "
            f".gguf file, not {checkpoint}"
        )
    if is_gguf and find_spec("gguf") is None:
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
        **_given(arguments, "learning_rate", "seed"),
    )
    data = read_data(arguments.train or TRAIN, arguments.dev or DEV, arguments.hold_out)
    work = out.with_name(f"{out.name}.work")
    trained = train(checkpoint, data, out, settings, work, arguments.start)
    echo(", ".join(f"{name} {value:.3f}" for name, value in trained.figures.items()))
    echo(f"weights: {out}")


def _train_lora(arguments: argparse.Namespace) -> None:
    """Fine-tune a chat model, and print how to run it; resumes from the last checkpoint."""
    base = _base_model(arguments.base)
    try:
        from pii_bench.models.lora import Settings, tune
    except ImportError as error:
        what = "what fine-tuning a chat model needs"
        raise MissingExtraError(what, "pip install -e '.[lora]'") from error
    examples = training_examples(arguments.train or labelled.TRAIN, arguments.task)
    settings = Settings(**_given(arguments, *(field.name for field in fields(Settings))))
    out: Path = arguments.out or Path("build") / "lora"
    tuned = tune(base, examples, out, settings, _log_step)
    echo(
        f"{tuned.examples} examples, {tuned.left_out} left out: longer than {settings.longest} "
        "tokens"
    )
    echo(f"loss of the first tenth of the steps {tuned.first_loss:.3f}, last {tuned.last_loss:.3f}")
    echo(f"weights: {tuned.model}")
    if tuned.model.is_file():
        echo(f"pii-bench run --model local/{tuned.model}")


def _base_model(name: str) -> Path:
    if name in WEIGHTS:
        return locate(WEIGHTS[name])
    path = Path(name)
    if not path.exists():
        raise InputFileError(path, f"no such file or folder, nor a name ({', '.join(WEIGHTS)})")
    if path.is_file():
        # Raises an error if it is not a complete GGUF file.
        hash_gguf(path)
    return path


def _log_step(step: int, steps: int, loss: float) -> None:
    log(f"step {step} of {steps}: loss {loss:.3f}")


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the settings of these names that the user gave."""
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}
