"""`pii-bench models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_json
from pii_bench.cli.terminal import echo, echo_json
from pii_bench.errors import UnknownNameError
from pii_bench.escaping import markdown_table
from pii_bench.models.catalog import MODELS

if TYPE_CHECKING:
    import argparse
    import datetime as dt
    from collections.abc import Iterator

    from pii_bench.models.catalog import ModelCard

_HEADER: Final = (
    *("alias", "model", "$ in", "$ out", "as of", "context", "output", "reasons", "status"),
)
_ALIGN: Final = ("left", "left", "right", "right", "left", "right", "right", "left", "left")
DESCRIPTION: Final = (
    "List the models that have an alias, with their price in USD per million tokens, their limits "
    "in tokens and their status."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--provider", help="only the models of this provider")
    parser.add_argument("--sources", action="store_true", help="print notes and sources too")
    add_json(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Print the models that have an alias."""
    providers = list(dict.fromkeys(card.provider for card in MODELS.values()))
    if arguments.provider is not None and arguments.provider not in providers:
        raise UnknownNameError("provider", arguments.provider, providers)
    cards = [card for card in MODELS.values() if arguments.provider in {None, card.provider}]
    if arguments.json:
        echo_json([{**asdict(card), "model": card.full_name} for card in cards])
        return True
    echo(markdown_table(_HEADER, [_row(card) for card in cards], _ALIGN))
    echo("\nPrices are in USD per million tokens. Any other model: PROVIDER/NAME.")
    if arguments.sources:
        for card in cards:
            echo("\n" + "\n".join(_sources(card)))
    return True


def _row(card: ModelCard) -> list[str]:
    price = card.price
    return [
        card.alias,
        card.full_name,
        _or_unknown(price.input if price else None, "g"),
        _or_unknown(price.output if price else None, "g"),
        str(price.date) if price else "",
        _or_unknown(card.context, ","),
        _or_unknown(card.max_output, ","),
        "yes" if card.reasons else "no",
        card.standing,
    ]


def _sources(card: ModelCard) -> Iterator[str]:
    yield f"{card.alias}: {card.note}".rstrip(": ")
    yield f"  {_dated(card.source, card.date)}"
    if price := card.price:
        written = "" if price.cache_write is None else f", {price.cache_write:g} to write"
        cached = f"cached input {_or_unknown(price.cached_input, 'g')}{written}"
        batch = "none" if price.batch_factor is None else f"x{price.batch_factor:g}"
        yield f"  price: {_dated(price.source, price.date)}; {cached}; batch {batch}"
    if not card.accepts_temperature:
        yield "  takes no temperature"


def _or_unknown(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def _dated(source: str, date: dt.date | None) -> str:
    return f"{source} ({date})" if date else source
