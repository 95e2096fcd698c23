"""What the commands take. Nothing heavy is imported here: `--help` answers at once."""

from __future__ import annotations

import argparse
import datetime as dt
import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pii_bench

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.models.table import Price


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse; `command` is the name of the command.

    Raises:
        SystemExit: with code 2 for arguments that are wrong, 0 for help and version.
    """
    parser = argparse.ArgumentParser(
        prog="pii-bench",
        description="Benchmark of query-aware PII masking.",
        epilog="Exit codes: 0 done; 1 incomplete, run again; 2 wrong arguments or input.",
    )
    parser.add_argument("--version", action="version", version=pii_bench.__version__)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(subparsers)
    _add_score(subparsers)
    _add_leaderboard(subparsers)
    _add_convert(subparsers)
    _add_train(subparsers)
    _add_fit(subparsers)
    _add_models(subparsers)
    _add_data(subparsers)
    return parser.parse_args(arguments)


DATASET_HELP = "a dataset's name, the path of a file, or capid:PATH"


def _add_run(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run a system over a dataset, score it and update the leaderboard",
        description="Run a system over a dataset, score it and update the leaderboard. "
        "Responses are saved as they come; run again to go on.",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="SYSTEM",
        help="an alias (see `pii-bench models`), provider/name, local/NAME, replay:PATH, "
        "DETECTOR, DETECTOR+RELEVANCE (bilstm-crf+embedding), python:MODULE:FACTORY or a plug-in",
    )
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    parser.add_argument(
        "--task",
        default="all",
        choices=("all", "detection", "query-related", "masking"),
        help="default: %(default)s",
    )
    parser.add_argument("--dataset", default="all", help=f"all (the default), {DATASET_HELP}")
    parser.add_argument(
        "--limit", type=_positive, metavar="N", help="only the first N samples of each dataset"
    )
    parser.add_argument(
        "--label-map",
        type=Path,
        metavar="FILE",
        help="JSON of a detector's labels to our types, in the place of its own",
    )
    parser.add_argument(
        "--local-only",
        action="store_true",
        help="refuse a system that sends the texts to another machine",
    )
    _add_sampling(parser.add_argument_group("what a chat model is asked"))
    calls = parser.add_argument_group("how it is called")
    _add_calls(calls)
    _add_money(calls)
    _add_results(parser)
    parser.set_defaults(command="run")


def _add_sampling(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--max-tokens",
        type=_positive,
        metavar="N",
        help="longest answer, reasoning included (default: 2048; a model that reasons: 16384; "
        "local: 512)",
    )
    group.add_argument(
        "--temperature",
        type=_temperature,
        metavar="T",
        help="`default` to send none, as some models want (default: 0; of a vote: 0.7)",
    )
    group.add_argument(
        "--output",
        choices=("text", "schema"),
        default="text",
        help="let the provider enforce a JSON schema; a condition of its own (%(default)s)",
    )
    group.add_argument(
        "--votes", type=_positive, metavar="K", help="draws of self-consistency-vote (default: 5)"
    )


def _add_money(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--rpm", type=_positive, metavar="N", help="requests a minute that the provider allows"
    )
    group.add_argument(
        "--tpm", type=_positive, metavar="N", help="tokens a minute that the provider allows"
    )
    group.add_argument(
        "--batch",
        nargs="?",
        choices=("wait", "submit"),
        const="wait",
        help="ask through the provider's batch API at a lower price, and wait (the default), or "
        "`submit` and leave: run again to collect",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="tell calls, tokens and cost, and ask nothing"
    )
    group.add_argument(
        "--max-usd",
        type=_usd,
        metavar="USD",
        help="make no call that might pass this sum, with those in flight",
    )
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD per million tokens, where the table of models knows none or another",
    )


def _add_score(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("score", help="score a file of predictions made anywhere")
    parser.add_argument("predictions", type=Path, help="JSON Lines, see the README")
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.set_defaults(command="score")


def _add_leaderboard(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "leaderboard", help="write leaderboard.csv and leaderboard.md from the results"
    )
    _add_results(parser)
    parser.set_defaults(command="leaderboard")


def _add_convert(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "convert", help="turn answers in another project's format into a predictions file"
    )
    parser.add_argument("format", choices=("capid-outputs",))
    parser.add_argument("answers", type=Path)
    parser.add_argument("--dataset", required=True, help=DATASET_HELP)
    parser.add_argument("--out", type=Path, required=True, help="the predictions file to write")
    parser.set_defaults(command="convert")


def _add_train(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "train",
        help="train the BiLSTM-CRF that ships",
        description="Train the BiLSTM-CRF on the sets to train and tune on, which `data build` "
        "makes, and write its weights, vocabulary and training log.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder of the sets, train and dev in its folder built (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("data/models/bilstm-crf"),
        metavar="DIR",
        help="where the weights go (default: %(default)s)",
    )
    parser.set_defaults(command="train")


def _add_fit(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "fit",
        help="fit the thresholds of the relevance systems",
        description="Fit the thresholds of relevance systems on the dev sets that `data build` "
        "makes, and write them beside the hashes of those sets.",
    )
    parser.add_argument(
        "systems",
        nargs="*",
        metavar="SYSTEM",
        help="random, keyword, embedding, embedding-minilm (default: all but the last)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder of the sets, dev in its folder built (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("data/models/relevance/thresholds.json"),
        metavar="FILE",
        help="where the thresholds go (default: %(default)s)",
    )
    parser.set_defaults(command="fit")


def _add_data(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "data", help="work on dataset files: build, check, stats, quality"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_data_build(commands)
    _add_data_check(commands)
    _add_data_stats(commands)
    _add_data_quality(commands)


def _add_data_build(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "build",
        help="build our datasets from the grammar",
        description="Build single, multi, hard, distract and twins, and into the folder `built` "
        "the sets to train and tune on: the same bytes on any machine.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder of the sets and their cards (default: %(default)s)",
    )
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="let a chat model write instead of the grammar, into DIR/built (see run --model)",
    )
    parser.add_argument(
        "--set", choices=("single", "multi"), default="single", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=_positive, default=20, metavar="N", help="with --writer (%(default)s)"
    )
    _add_calls(parser)
    parser.set_defaults(command="data build")


def _add_data_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="find faults in dataset files",
        description="Find faults in dataset files, ours or others in our format: annotations, "
        "formats, leaks, queries, consistency, duplicates. What is found is shown with the "
        "texts in question. Exit code 2 when there is any.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON Lines")
    parser.set_defaults(command="data check")


def _add_data_stats(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "stats",
        help="show the statistics of datasets beside the paper's",
        description="Show the statistics of datasets, and beside them those of the paper's sets "
        "of the same names.",
    )
    parser.add_argument("--dataset", default="all", help=f"all (the default), {DATASET_HELP}")
    parser.add_argument("--write", action="store_true", help="put them into data/README.md too")
    parser.set_defaults(command="data stats")


def _add_data_quality(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "quality",
        help="measure how alike texts are and how far shortcuts get",
        description="Measure single and multi: how alike their texts are, and how far systems "
        "get that understand nothing. Needs train and dev, which `data build` makes. The "
        "figures go into README.md beside the sets too.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder of the sets, train and dev in its folder built (default: %(default)s)",
    )
    parser.set_defaults(command="data quality")


def _add_models(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "models",
        help="list the models that have an alias: prices, limits, status",
        description="List the models that have an alias, with what their provider takes in USD "
        "per million tokens, their limits in tokens and their status.",
    )
    parser.add_argument("--provider", help="only its models")
    parser.add_argument("--sources", action="store_true", help="print notes and sources too")
    parser.set_defaults(command="models")


def _add_calls(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--concurrency", type=_positive, metavar="N", help="calls at a time (default: 8; local: 1)"
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="another server that speaks the provider's protocol (openai/NAME: vLLM, Ollama, "
        "llama.cpp); its key, if any, in PII_BENCH_API_KEY",
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=120,
        metavar="SECONDS",
        help="for one attempt of a call (default: %(default)s)",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of runs and leaderboard (default: %(default)s)",
    )


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return number


def _temperature(text: str) -> float | Literal["default"]:
    if text == "default":
        return "default"
    number = _number(text)
    if number is None or not 0 <= number <= 2:
        raise argparse.ArgumentTypeError(f"must be `default` or a number from 0 to 2, not {text!r}")
    return number


def _usd(text: str) -> float:
    number = _number(text)
    if number is None or number <= 0:
        raise argparse.ArgumentTypeError(f"must be a sum above 0 in USD, not {text!r}")
    return number


def _price(text: str) -> Price:
    from pii_bench.models.table import Price

    numbers = [_number(part) for part in text.split(",")]
    match numbers:
        case [float(into), float(out)] if into >= 0 and out >= 0:
            return Price(into, out, dt.datetime.now(dt.UTC).date(), "--price")
        case _:
            what = "must be two numbers, USD per million tokens in and out, such as 2.5,10"
            raise argparse.ArgumentTypeError(f"{what}, not {text!r}")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
