"""The files of a fine-tuned encoder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

GRAPH: Final = "encoder.onnx"
"""The encoder and what labels words, for onnxruntime."""

HEADS: Final = "heads.npz"
"""The weights for relevance and owners, and transitions between labels where there are."""

TOKENIZER: Final = "tokenizer.json"

LOG: Final = "training.json"
"""Settings, data, versions, the dev curve, and the dial that was fitted on dev."""


def read_threshold(folder: Path, keep: str) -> float:
    """The least relevance of a needed entity.

    Args:
        folder: of the weights.
        keep: setting of the dial.

    Raises:
        InputFileError: the log is missing or lacks the setting.
    """
    path = folder / LOG
    try:
        return float(json.loads(path.read_bytes())["dial"][keep]["threshold"])
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputFileError(path, f"has no threshold dial.{keep}") from error
