"""`pii-bench train` and `pii-bench fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import finish, say
from pii_bench.systems.relevance.catalog import FITTED
from pii_bench.systems.relevance.fit import fit_thresholds
from pii_bench.systems.tagger.settings import Settings
from pii_bench.systems.tagger.train import train

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.systems.tagger.settings import Epoch


def train_tagger(data: Path, out: Path | None, *, words_alone: bool) -> bool:
    """Train the BiLSTM-CRF on the sets that `data build` made, dev for stopping.

    Args:
        data: folder of the sets.
        out: where the files go; None for where those that ship are.
        words_alone: whether a token is seen by its word, and not by how it is written.

    Returns:
        True.

    Raises:
        InputFileError: a set is missing or broken.
        MissingExtraError: the extra `train` is not installed.
        ResultsError: the files cannot be written.
    """
    if out is None:
        out = Path("data/models") / ("bilstm-crf-words" if words_alone else "bilstm-crf")
    settings = Settings(spelling=not words_alone)
    train(_sets(data, "train"), _sets(data, "dev"), out, _show, settings)
    say(f"weights: {out}")
    return True


def fit_relevance(names: Sequence[str], data: Path, out: Path) -> bool:
    """Fit the thresholds of relevance systems on the dev sets that `data build` made.

    Args:
        names: of the systems; none for all that need no extra.
        data: folder of the sets.
        out: the file of thresholds; those of other systems stay.

    Returns:
        True.

    Raises:
        UnknownNameError: a system has no threshold to fit.
        InputFileError: a set is missing or broken.
        MissingExtraError: what a system needs is not installed.
        ResultsError: the file cannot be written.
    """
    chosen = names or [name for name in FITTED if not FITTED[name].extra]
    for name, fitted in fit_thresholds(chosen, _sets(data, "dev"), out).items():
        say(f"{name}: threshold {fitted.threshold:.4f}, dev F1 {fitted.f1:.3f}")
    say(f"thresholds: {out}")
    return True


def _sets(data: Path, part: str) -> list[Path]:
    return [data / "built" / f"{part}-{name}.jsonl" for name in ("single", "multi")]


def _show(epoch: Epoch) -> None:
    score = f"dev P {epoch.dev.precision:.3f} R {epoch.dev.recall:.3f} F1 {epoch.dev.f1:.3f}"
    say(f"epoch {epoch.number}: loss {epoch.loss:.2f}, {score}, {epoch.seconds:.0f} s")
    finish()
