"""The label sets of detectors that are met most, each mapped to the seven types (labels.csv)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from pii_bench.labels import types_of
from pii_bench.systems.detectors.label_map import LabelMap

PRESIDIO: Final = LabelMap("Presidio", types_of("presidio"))
"""Every entity that a recognizer of presidio-analyzer 2.2.366 declares, enabled or not."""

SPACY: Final = LabelMap("spaCy", types_of("spacy"))
"""OntoNotes 5, as spaCy's models for English name it."""

HUGGING_FACE_SETS: Final = ("conll", "spacy", "ai4privacy", "datafog")

HUGGING_FACE: Final = LabelMap(
    "Hugging Face",
    MappingProxyType(
        {label: kind for name in HUGGING_FACE_SETS for label, kind in types_of(name).items()}
    ),
)
"""CoNLL-2003, OntoNotes, AI4Privacy and DataFog as one; where two have a label, they agree."""
