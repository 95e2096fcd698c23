"""From the raw text of a model to subjects, entities and texts, with nothing hidden.

Every repair has a name (`Stage`), runs in a fixed order, and is recorded. The parser
sees no description and no gold: whether an entity occurs is checked elsewhere.
"""

from pii_bench.prompting.parsing.completion import (
    PARSER,
    ParsedDetection,
    ParsedRelated,
    ParsedRewriting,
    Stage,
    Subject,
)
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.prompting.parsing.json_answers import (
    parse_labelled,
    parse_structured_detection,
    parse_structured_labelled,
    parse_structured_related,
)
from pii_bench.prompting.parsing.texts import parse_related, parse_rewriting

__all__ = [
    "PARSER",
    "ParsedDetection",
    "ParsedRelated",
    "ParsedRewriting",
    "Stage",
    "Subject",
    "parse_detection",
    "parse_labelled",
    "parse_related",
    "parse_rewriting",
    "parse_structured_detection",
    "parse_structured_labelled",
    "parse_structured_related",
]
