"""The training logs of fine-tuned encoders as rows of a table."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pii_bench.errors import InputFileError
from pii_bench.systems.encoder import LOG

if TYPE_CHECKING:
    from pathlib import Path


def read_trained(folder: Path) -> dict[str, object]:
    """Read the log that `pii-bench train encoder` wrote into a folder of weights.

    Returns:
        The row of one encoder. `frozen`: whether only the heads were trained; `augmented`: kinds
        of augmentation; `train`, `dev`: datasets with their numbers of samples; `epochs`: with
        those of the weights that training started from; and the scores (0 to 1) on the dev data.

    Raises:
        InputFileError: the log is missing or broken.
    """
    path = folder / LOG
    try:
        log = json.loads(path.read_bytes())
        settings, data, dev = log["settings"], log["data"], log["dev"]
        return {
            "weights": folder.name,
            "head": settings["head"],
            "frozen": settings["frozen"],
            "augmented": ", ".join(settings["kinds"]),
            "train": _counted(data["train"]),
            "epochs": _epochs(log, log["earlier"]),
            "dev": _counted(data["dev"]),
            "strict_f1": dev["strict"],
            "ent_f1": dev["entity"],
            "f1": dev["query"],
            "h": dev["h"],
        }
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
