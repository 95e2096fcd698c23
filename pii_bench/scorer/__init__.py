"""The scores of pii_bench, usable alone.

It imports nothing of datasets, models, runner or the network, and takes plain
Python values. Names and behaviour are a contract; the three versions change
whenever a score could.
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
