"""The files of a trained tagger, as far as running it needs them."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pii_bench.errors import InputFileError
from pii_bench.files import replacing, write_whole, writing
from pii_bench.systems.tagger.labels import LABELS, Transitions
from pii_bench.systems.tagger.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

EMISSIONS: Final = "emissions.onnx"
TRANSITIONS: Final = "transitions.npz"
VOCABULARY: Final = "vocabulary.json"
LOG: Final = "training.json"


@dataclass(frozen=True, slots=True)
class Decoder:
    """What turns emissions into labels, and a text into what the network sees."""

    vocabulary: Vocabulary
    transitions: Transitions


def write_decoder(folder: Path, decoder: Decoder) -> None:
    """Write `VOCABULARY` and `TRANSITIONS`, the same bytes for the same decoder.

    Raises:
        ResultsError: they cannot be written.
    """
    known = {
        "labels": LABELS,
        "characters": decoder.vocabulary.characters,
        "words": decoder.vocabulary.words,
    }
    write_whole(folder / VOCABULARY, json.dumps(known, ensure_ascii=False, indent=0) + "\n")
    scores = decoder.transitions
    with writing(folder / TRANSITIONS), replacing(folder / TRANSITIONS) as file:
        np.savez(file, start=scores.start, pairs=scores.pairs, end=scores.end)


def read_decoder(folder: Path) -> Decoder:
    """Read what `write_decoder` wrote.

    Raises:
        InputFileError: a file is missing, broken or of other labels.
    """
    vocabulary, transitions = folder / VOCABULARY, folder / TRANSITIONS
    try:
        known = json.loads(vocabulary.read_text(encoding="utf-8"))
        labels, words = tuple(known["labels"]), Vocabulary(known["words"], known["characters"])
    except OSError as error:
        raise InputFileError(vocabulary, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputFileError(vocabulary, "is no vocabulary of a tagger") from error
    if labels != LABELS:
        raise InputFileError(vocabulary, f"its labels must be {', '.join(LABELS)}")
    try:
        with np.load(transitions, allow_pickle=False) as scores:
            return Decoder(words, Transitions(scores["start"], scores["pairs"], scores["end"]))
    except OSError as error:
        raise InputFileError(transitions, error.strerror or "cannot be read") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputFileError(transitions, "holds no transitions of a tagger") from error
