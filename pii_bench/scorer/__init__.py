"""The metrics of pii_bench, usable on their own.

This package takes plain Python values and imports nothing of datasets, models, the runner or the
network. Its names and behaviour are stable; the versions (`NORMALISER`, `MATCHER`,
`ROUGE_L_TOKENISER`, `masked_text.LEAKS`) change whenever a score could.
"""

from __future__ import annotations

from pii_bench.scorer.detection import MATCHER, DetectionScore, score_detection
from pii_bench.scorer.masked_text import (
    MaskedTextScore,
    masking_headline,
    score_masked_text,
    score_rewritten_text,
)
from pii_bench.scorer.measures import (
    PRF,
    Counts,
    TextsScore,
    macro,
    micro,
    score_masking,
    score_query_related,
)
from pii_bench.scorer.spans import SemEval, SpanScore, f1_interval, score_spans
from pii_bench.scorer.text import NORMALISER, ROUGE_L_TOKENISER, normalise, normalise_type

__all__ = [
    "MATCHER",
    "NORMALISER",
    "PRF",
    "ROUGE_L_TOKENISER",
    "Counts",
    "DetectionScore",
    "MaskedTextScore",
    "SemEval",
    "SpanScore",
    "TextsScore",
    "f1_interval",
    "macro",
    "masking_headline",
    "micro",
    "normalise",
    "normalise_type",
    "score_detection",
    "score_masked_text",
    "score_masking",
    "score_query_related",
    "score_rewritten_text",
    "score_spans",
]
