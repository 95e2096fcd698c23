"""`pii-bench models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_options
from pii_bench.cli.terminal import echo, echo_json, formatted
from pii_bench.escaping import markdown_table
from pii_bench.models.catalog import MODELS

if TYPE_CHECKING:
    import argparse

    from pii_bench.models.catalog import ModelCard

_HEADER: Final = (
    *("alias", "model", "$ in", "$ out", "as of", "context", "output", "reasons", "status"),
)
_ALIGN: Final = ("left", "left", "right", "right", "left", "right", "right", "left", "left")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "List the models that have an alias, with their price in USD per million tokens, their "
        "limits in tokens and their status. --json has notes and sources too."
    )
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Print the models that have an alias."""
    if arguments.json:
        echo_json([{**asdict(card), "model": card.full_name} for card in MODELS.values()])
        return True
    echo(markdown_table(_HEADER, [_row(card) for card in MODELS.values()], _ALIGN))
    echo("\nPrices are in USD per million tokens. Any other model: PROVIDER/NAME.")
    return True


def _row(card: ModelCard) -> list[str]:
    price = card.price
    return [
        card.alias,
        card.full_name,
        formatted(price.input if price else None, "g", "unknown"),
        formatted(price.output if price else None, "g", "unknown"),
        str(price.date) if price else "",
        formatted(card.context, ",", "unknown"),
        formatted(card.max_output, ",", "unknown"),
        "yes" if card.reasons else "no",
        card.standing,
    ]
