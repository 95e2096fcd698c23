"""`pii-bench export fine-tuning`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import DATASET_HELP, add_options, positive
from pii_bench.cli.terminal import echo, echo_json, log, log_big
from pii_bench.errors import InputFileError
from pii_bench.escaping import markdown_table
from pii_bench.files import encode, write_whole
from pii_bench.models.tuning import SERVICES, Format, training_usd, tuning_file
from pii_bench.prompting.labelled import TRAIN
from pii_bench.prompting.targets import Target, training_examples

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pii_bench.models.budget import Range


def add_targets(parser: argparse._ActionsContainer) -> None:
    """Add --task: the tasks to train on."""
    parser.add_argument(
        "--task",
        nargs="+",
        choices=[str(target) for target in Target],
        default=[str(Target.QUERY_RELATED)],
        help="tasks to train on; rewriting: the description with tags instead of the values that "
        "the query does not need (default: query-related)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Write prompts with gold answers as JSON Lines to fine-tune a chat model on. Checks the "
        "limits of the service and estimates the cost of the training. Makes no call."
    )
    parser.add_argument(
        "--for",
        dest="form",
        required=True,
        choices=[str(form) for form in Format],
        help="the service that reads the file; transformers: TRL's prompt and completion format",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="file to write; FILE.gz is compressed",
    )
    add_targets(parser)
    parser.add_argument(
        "--dataset",
        nargs="+",
        default=list(TRAIN),
        metavar="DATASET",
        help=f"{DATASET_HELP}; of ours, only those for training (default: {' '.join(TRAIN)})",
    )
    add_options(parser, "--limit", help="only the first N examples")
    parser.add_argument(
        "--epochs",
        type=positive,
        default=3,
        metavar="N",
        help="number of epochs, for the cost estimate (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE",
        help="tokenizer.json of the model, to count tokens exactly (default: estimate them)",
    )
    add_options(parser, "--gzip", "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Write the file, and print its size and the cost of the training."""
    form = Format(arguments.form)
    count_tokens = None if arguments.tokenizer is None else _token_counter(arguments.tokenizer)
    examples = training_examples(arguments.dataset, arguments.task)[: arguments.limit]
    file = tuning_file(examples, form, count_tokens)
    size = len(encode(file.text))
    out: Path = arguments.out
    compress = arguments.gzip or out.suffix == ".gz"
    if compress and out.suffix != ".gz":
        out = out.with_name(f"{out.name}.gz")
    log_big(size, out, compressed=compress)
    write_whole(out, file.text, compress=compress)
    usd = training_usd(file.tokens, arguments.epochs, form)
    if notice := SERVICES[form].notice:
        log(notice)
    if arguments.json:
        row = {
            "examples": file.examples,
            "bytes": size,
            "tokens": asdict(file.tokens),
            "usd": {model: asdict(price) for model, price in usd.items()},
        }
        echo_json([row])
        return True
    echo(f"{file.examples:,} examples, {size:,} bytes, {_range(file.tokens)} tokens: {out}")
    if usd:
        rows = [(model, _range(price, ".2f")) for model, price in usd.items()]
        header = ("model", f"USD for {arguments.epochs} epochs")
        echo(markdown_table(header, rows, ("left", "right")))
    if count_tokens is None:
        echo("low / expected / high; high is a bound. --tokenizer counts tokens exactly.")
    return True


def _range(figure: Range[int] | Range[float], form: str = ",") -> str:
    if figure.low == figure.high:
        return format(figure.low, form)
    return f"{figure.low:{form}} / {figure.expected:{form}} / {figure.high:{form}}"


def _token_counter(path: Path) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        # The library raises plain exceptions.
        raise InputFileError(path, f"not a tokenizer: {error}") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
