"""What the commands that export share: sizes, and examples to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import tell

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


BIG: Final = 100 * 10**6
"""Bytes from which an export says its size before it is written."""


def add_gzip(parser: argparse.ArgumentParser) -> None:
    """Smaller files."""
    parser.add_argument(
        "--gzip", action="store_true", help="compress the samples (.gz); `gunzip` restores them"
    )


def tell_big(size: int, out: Path, *, compressed: bool) -> None:
    """Say what will be written where that is much, before it is; `size` is before compression."""
    if size >= BIG:
        hint = "before they are compressed" if compressed else "--gzip compresses them"
        tell(f"about {size / 1e6:,.0f} MB of samples for {out}: {hint}")
