"""`pii-bench train lora`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import say, tell
from pii_bench.cli.training_sets import training_examples
from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.models.local import WEIGHTS, hash_gguf, locate
from pii_bench.prompting.labelled import TRAIN

if TYPE_CHECKING:
    import argparse

BASE: Final = "smollm2-135m-instruct"
"""What is fine-tuned if nothing else is named."""


def train_lora(arguments: argparse.Namespace) -> bool:
    """Fine-tune a chat model, and say how `run` takes it.

    Training that was interrupted goes on from its last checkpoint.

    Returns:
        True.

    Raises:
        PiiBenchError: as of `tune`, or a dataset is not for training, missing or broken.
        MissingExtraError: the extra `lora`, or the weights' package, is not installed.
    """
    base = _base(arguments.base)
    try:
        from pii_bench.models.lora import Settings, tune
    except ImportError as error:
        what = "what fine-tuning a chat model needs"
        raise MissingExtraError(what, "pip install -e '.[lora]'") from error
    examples = training_examples(arguments.train or TRAIN, arguments.task)
    given = {field.name: getattr(arguments, field.name, None) for field in fields(Settings)}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    out: Path = arguments.out or Path("build") / "lora"
    tuned = tune(base, examples, out, settings, _show)
    say(f"{tuned.examples} examples, {tuned.left_out} left out: over {settings.longest} tokens")
    say(f"loss of the first tenth of the steps {tuned.first_loss:.3f}, last {tuned.last_loss:.3f}")
    say(f"weights: {tuned.model}")
    if tuned.model.is_file():
        say(f"pii-bench run --model local/{tuned.model}")
    return True


def _base(named: str) -> Path:
    if named in WEIGHTS:
        return locate(WEIGHTS[named])
    path = Path(named)
    if not path.exists():
        raise InputFileError(path, f"no such file or folder, and no name of {', '.join(WEIGHTS)}")
    if path.is_file():
        # It refuses what is no whole GGUF file.
        hash_gguf(path)
    return path


def _show(step: int, steps: int, loss: float) -> None:
    tell(f"step {step} of {steps}: loss {loss:.3f}")
