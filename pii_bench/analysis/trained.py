"""The training logs of fine-tuned encoders as rows of a table."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError
from pii_bench.systems.encoder import LOG

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Trained:
    """One encoder: its training data and settings, and its scores (0 to 1) on the dev data.

    Attributes:
        frozen: whether only the heads were trained.
        augmented: kinds of augmentation, separated by commas; empty for none.
        train, dev: datasets, with the number of samples of each.
        epochs: with those of the weights that training started from.
        strict_f1, ent_f1: of detection.
        f1: of query-related.
        h: harmonic mean of protection and retention.
    """

    weights: str
    head: str
    frozen: bool
    augmented: str
    train: str
    epochs: int
    dev: str
    strict_f1: float
    ent_f1: float
    f1: float
    h: float


def read_trained(folder: Path) -> Trained:
    """Read the log that `pii-bench train encoder` wrote into a folder of weights.

    Raises:
        InputFileError: the log is missing or broken.
    """
    path = folder / LOG
    try:
        log = json.loads(path.read_bytes())
        settings, data, dev = log["settings"], log["data"], log["dev"]
        return Trained(
            weights=folder.name,
            head=settings["head"],
            frozen=settings["frozen"],
            augmented=", ".join(settings["kinds"]),
            train=_counted(data["train"]),
            epochs=_epochs(log, log["earlier"]),
            dev=_counted(data["dev"]),
            strict_f1=dev["strict"],
            ent_f1=dev["entity"],
            f1=dev["query"],
            h=dev["h"],
        )
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, LookupError, TypeError) as error:
        raise InputFileError(path, f"is no log of `pii-bench train encoder`: {error!r}") from error


def _epochs(log: dict[str, Any], earlier: dict[str, Any]) -> int:
    """Return the epochs of a log, plus the most epochs among the weights that it started from."""
    own = round(log["history"][-1]["epoch"]) if log["history"] else 0
    return own + max((_epochs(earlier[weights], earlier) for weights in log["start"]), default=0)


def _counted(datasets: dict[str, int]) -> str:
    """Format dataset names, without folders, with their numbers of samples."""
    return ", ".join(re.sub(r"[^:]*/", "", name) + f" {count}" for name, count in datasets.items())
