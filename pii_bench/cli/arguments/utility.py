"""The arguments of `pii-bench utility`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pii_bench.cli.arguments.shared import (
    DATASET_HELP,
    add_calls,
    add_results,
    number_in,
    positive,
    usd,
)

if TYPE_CHECKING:
    from pii_bench.cli.arguments.shared import Subparsers


def add_utility(subparsers: Subparsers) -> None:
    """What masking protects, and what an answer loses by it."""
    parser = subparsers.add_parser(
        "utility",
        help="measure what masking protects and what an answer loses by it",
        description="Let a chat model answer queries over texts as they are, masked whole, masked "
        "but for what the query needs, and masked by a system; compare the answers. Answers and "
        "verdicts are saved as they come; run again to go on. Without --answerer nothing is "
        "asked, and the figures are made again of what is stored.",
    )
    parser.add_argument(
        "--model",
        metavar="SYSTEM",
        help="what masks, any that `pii-bench run` takes for both tasks; its answers are those "
        "of `run`, which has all options (default: gold's conditions alone)",
    )
    parser.add_argument(
        "--strategy", help="of --model, a chat model's prompt for query-related PII (naive)"
    )
    parser.add_argument("--answerer", metavar="MODEL", help="the chat model that answers")
    parser.add_argument(
        "--judge", metavar="MODEL", help="a chat model that rates the answers (default: none)"
    )
    parser.add_argument(
        "--dataset", default="demo", help=f"all, {DATASET_HELP} (default: %(default)s)"
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="only the first N samples of each dataset"
    )
    parser.add_argument(
        "--embedder",
        choices=("wordllama", "minilm"),
        default="wordllama",
        help="of the answers, for their cosine (default: %(default)s)",
    )
    parser.add_argument(
        "--weight",
        type=_weight,
        default=0.5,
        metavar="A",
        help="of privacy in the balance, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--local-only",
        action="store_true",
        help="refuse a model that is sent the texts on another machine",
    )
    calls = parser.add_argument_group("how chat models are called")
    calls.add_argument(
        "--answer-tokens",
        type=positive,
        metavar="N",
        help="longest answer, reasoning included (default: 2048; a model that reasons: 16384; "
        "local: 512)",
    )
    calls.add_argument(
        "--verdict-tokens", type=positive, metavar="N", help="longest verdict (default: likewise)"
    )
    add_calls(calls)
    calls.add_argument("--answerer-base-url", metavar="URL", help="as --base-url, the answerer's")
    calls.add_argument("--judge-base-url", metavar="URL", help="as --base-url, the judge's")
    calls.add_argument(
        "--max-usd",
        type=usd,
        metavar="USD",
        help="make no call to a provider's model that might pass this sum; each model has its own",
    )
    add_results(parser)
    parser.set_defaults(command="utility")


def _weight(text: str) -> float:
    number = number_in(text)
    if number is None or not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number
