"""The arguments of `pii-bench run`, `models` and `score`."""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pii_bench.cli.arguments.shared import (
    Subparsers,
    add_calls,
    add_dataset,
    add_results,
    add_task,
    number_in,
    positive,
    usd,
)
from pii_bench.systems import DEFAULT_SYSTEM

if TYPE_CHECKING:
    from pii_bench.models.table import Price


def add_run(subparsers: Subparsers) -> None:
    """A system over datasets."""
    parser = subparsers.add_parser(
        "run",
        help="run a system over a dataset, score it and update the leaderboard",
        description="Run a system over a dataset, score it and update the leaderboard. "
        "Responses are saved as they come; run again to go on.",
    )
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="an alias (see `pii-bench models`), provider/name, local/NAME, replay:PATH, "
        "DETECTOR, DETECTOR+RELEVANCE, python:MODULE:FACTORY or a plug-in (default: %(default)s)",
    )
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    add_task(parser)
    add_dataset(parser)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="only the first N samples of each dataset"
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
    add_sampling(parser.add_argument_group("what a chat model is asked"))
    calls = parser.add_argument_group("how it is called")
    add_calls(calls)
    _add_money(calls)
    add_results(parser)
    parser.set_defaults(command="run")


def add_sampling(group: argparse._ArgumentGroup) -> None:
    """What a chat model is asked."""
    group.add_argument(
        "--max-tokens",
        type=positive,
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
        "--votes", type=positive, metavar="K", help="draws of self-consistency-vote (default: 5)"
    )


def _add_money(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--rpm", type=positive, metavar="N", help="requests a minute that the provider allows"
    )
    group.add_argument(
        "--tpm", type=positive, metavar="N", help="tokens a minute that the provider allows"
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
        type=usd,
        metavar="USD",
        help="make no call that might pass this sum, with those in flight",
    )
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD per million tokens, where the table of models knows none or another",
    )


def add_models(subparsers: Subparsers) -> None:
    """The table of models."""
    parser = subparsers.add_parser(
        "models",
        help="list the models that have an alias: prices, limits, status",
        description="List the models that have an alias, with what their provider takes in USD "
        "per million tokens, their limits in tokens and their status.",
    )
    parser.add_argument("--provider", help="only its models")
    parser.add_argument("--sources", action="store_true", help="print notes and sources too")
    parser.set_defaults(command="models")


def _temperature(text: str) -> float | Literal["default"]:
    if text == "default":
        return "default"
    number = number_in(text)
    if number is None or not 0 <= number <= 2:
        raise argparse.ArgumentTypeError(f"must be `default` or a number from 0 to 2, not {text!r}")
    return number


def _price(text: str) -> Price:
    from pii_bench.models.table import Price

    numbers = [number_in(part) for part in text.split(",")]
    match numbers:
        case [float(into), float(out)] if into >= 0 and out >= 0:
            return Price(into, out, dt.datetime.now(dt.UTC).date(), "--price")
        case _:
            what = "must be two numbers, USD per million tokens in and out, such as 2.5,10"
            raise argparse.ArgumentTypeError(f"{what}, not {text!r}")
