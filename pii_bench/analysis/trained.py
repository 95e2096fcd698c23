"""Fine-tuned encoders side by side: what each learnt from, how, and its figures on dev."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.systems.encoder import LOG

if TYPE_CHECKING:
    from pathlib import Path

_FOLDERS: Final = re.compile(r"[^:]*/")


@dataclass(frozen=True, slots=True)
class Trained:
    """A row of the table; figures are from 0 to 1 and of the datasets in `dev`.

    Attributes:
        weights: name of the folder.
        head: what labels words.
        frozen: whether the heads alone were trained.
        augmented: ways of rewriting samples, separated by commas; empty for none.
        train: datasets that it learnt from, with how many samples of each.
        epochs: how many were trained.
        dev: datasets that the figures are of, with how many samples of each.
        strict_f1: Strict-F1 of detection.
        ent_f1: Ent-F1 of detection.
        f1: query F1.
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
    """What the log of weights says that `pii-bench train encoder` wrote.

    Raises:
        InputFileError: the log is missing, or no such log.
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
            epochs=_epochs(log),
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


def _epochs(log: dict[str, Any]) -> int:
    """Its own epochs, and the most that weights have which it started from."""
    own = round(log["history"][-1]["epoch"]) if log["history"] else 0
    return own + max(map(_epochs, log.get("start", ())), default=0)


def _counted(datasets: dict[str, int]) -> str:
    """Each dataset with its number of samples, without the folders of its path."""
    return ", ".join(f"{_FOLDERS.sub('', name)} {count}" for name, count in datasets.items())
