"""`pii-bench train`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.tagger.train import train

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.tagger.settings import Epoch


def train_tagger(data: Path, out: Path) -> bool:
    """Train the BiLSTM-CRF on the sets that `data build` made, dev for stopping.

    Returns:
        True.

    Raises:
        InputFileError: a set is missing or broken.
        MissingExtraError: the extra `train` is not installed.
        ResultsError: the files cannot be written.
    """
    train(_sets(data, "train"), _sets(data, "dev"), out, _show)
    print(f"weights: {out}")
    return True


def _sets(data: Path, part: str) -> list[Path]:
    return [data / "built" / f"{part}-{name}.jsonl" for name in ("single", "multi")]


def _show(epoch: Epoch) -> None:
    score = f"dev P {epoch.dev.precision:.3f} R {epoch.dev.recall:.3f} F1 {epoch.dev.f1:.3f}"
    print(
        f"epoch {epoch.number}: loss {epoch.loss:.2f}, {score}, {epoch.seconds:.0f} s", flush=True
    )
