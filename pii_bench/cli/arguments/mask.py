"""The arguments of `pii-bench mask`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.arguments.run import add_sampling
from pii_bench.cli.arguments.shared import add_endpoint
from pii_bench.systems import DEFAULT_SYSTEM

if TYPE_CHECKING:
    from pii_bench.cli.arguments.shared import Subparsers


def add_mask(subparsers: Subparsers) -> None:
    """A text of the user's, and the way back."""
    parser = subparsers.add_parser(
        "mask",
        help="mask in a text what a query does not need, and put it back into an answer",
        description="Replace in a text all personal information that a query does not need by "
        "tags such as <Phone Number>. Where the system fails nothing is printed, and the exit "
        "code is 2.",
    )
    parser.add_argument(
        "file", type=Path, nargs="?", default=Path("-"), help="UTF-8 text (default: -, stdin)"
    )
    parser.add_argument("--query", help="what will be asked about the text; it is not masked")
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="any that `pii-bench run` takes and that is not told gold (default: %(default)s)",
    )
    parser.add_argument(
        "--mapping",
        type=Path,
        metavar="FILE",
        help="write what the tags stand for to this file, which only you may read",
    )
    parser.add_argument("--force", action="store_true", help="replace the mapping file")
    parser.add_argument(
        "--unmask",
        action="store_true",
        help="put back into an answer what the tags of --mapping stand for",
    )
    parser.add_argument(
        "--on-failure",
        choices=("refuse", "mask-all"),
        default="refuse",
        help="if the system does not tell what the query needs: print nothing, or mask all that "
        "was found (default: %(default)s)",
    )
    parser.add_argument(
        "--local-only",
        action="store_true",
        help="refuse a system that sends the text to another machine",
    )
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    parser.add_argument(
        "--label-map",
        type=Path,
        metavar="FILE",
        help="JSON of a detector's labels to our types, in the place of its own",
    )
    add_sampling(parser.add_argument_group("what a chat model is asked"))
    add_endpoint(parser.add_argument_group("how it is called"))
    parser.set_defaults(command="mask")
