"""`pii-bench export fine-tuning`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import DATASET_HELP, add_gzip, add_json, add_limit, positive
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
    """What is learnt."""
    parser.add_argument(
        "--task",
        nargs="+",
        choices=[str(target) for target in Target],
        default=[str(Target.QUERY_RELATED)],
        help="what is learnt; rewriting: the description with tags where the query does not need "
        "what is there (default: query-related)",
    )


DESCRIPTION: Final = (
    "Write prompts with gold answers as JSON Lines to fine-tune a chat model on, checked against "
    "the limits that the service documents, and say what the training would cost. Makes no call."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--for",
        dest="form",
        required=True,
        choices=[str(each) for each in Format],
        help="the service that reads the file; transformers: TRL's prompt and completion",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="where to write; FILE.gz: compressed",
    )
    add_targets(parser)
    parser.add_argument(
        "--dataset",
        nargs="+",
        default=list(TRAIN),
        metavar="DATASET",
        help=f"{DATASET_HELP}; of ours those for training alone (default: {' '.join(TRAIN)})",
    )
    add_limit(parser, "examples")
    parser.add_argument(
        "--epochs",
        type=positive,
        default=3,
        metavar="N",
        help="times that every example is learnt, for the price (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="FILE",
        help="tokenizer.json of the model, to count tokens (default: estimate them)",
    )
    add_gzip(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Write the file, and print what is in it and what it would cost.

    Raises:
        PiiBenchError: a limit is passed, a dataset is not for training, missing or broken, the
            tokenizer cannot be read, or the file cannot be written.
    """
    form = Format(arguments.form)
    count = None if arguments.tokenizer is None else _token_counter(arguments.tokenizer)
    examples = training_examples(arguments.dataset, arguments.task)[: arguments.limit]
    made = tuning_file(examples, form, count)
    size = len(encode(made.text))
    out, compress = _out(arguments)
    log_big(size, out, compressed=compress)
    write_whole(out, made.text, compress=compress)
    usd = training_usd(made.tokens, arguments.epochs, form)
    if notice := SERVICES[form].notice:
        log(notice)
    if arguments.json:
        said = {"examples": made.examples, "bytes": size, "tokens": asdict(made.tokens)}
        echo_json([said | {"usd": {model: asdict(price) for model, price in usd.items()}}])
        return True
    echo(f"{made.examples:,} examples, {size:,} bytes, {_range(made.tokens)} tokens: {out}")
    if usd:
        rows = [(model, _range(price, ".2f")) for model, price in usd.items()]
        header = ("model", f"USD for {arguments.epochs} epochs")
        echo(markdown_table(header, rows, ("left", "right")))
    if count is None:
        echo("low / expected / high; high is a bound. --tokenizer counts tokens.")
    return True


def _out(arguments: argparse.Namespace) -> tuple[Path, bool]:
    """Where to write, and whether to compress: asked for, or told by the name."""
    out: Path = arguments.out
    if out.suffix == ".gz":
        return out, True
    return (out.with_name(f"{out.name}.gz"), True) if arguments.gzip else (out, False)


def _range(figure: Range[int] | Range[float], form: str = ",") -> str:
    if figure.low == figure.high:
        return format(figure.low, form)
    return " / ".join(format(each, form) for each in (figure.low, figure.expected, figure.high))


def _token_counter(path: Path) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        # The library raises no class of its own.
        raise InputFileError(path, f"no tokenizer: {error}") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
