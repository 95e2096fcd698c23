"""The same cases for our scorer, rouge-score and nervaluate.

`python -m tests.perf.scorers JUDGE CASES` prints the seconds of each repetition and what was
found, as JSON. It runs where the judge's package is installed, which need not be ours.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pii_bench.datasets.sample import Sample

_REPETITIONS: Final = 5
_DESCRIPTIONS: Final = 500

Cases = dict[str, Any]
Entities = list[dict[str, Any]]


def write_cases(path: Path) -> Mapping[str, int]:
    """Write pairs of texts and samples with predictions; how many of each."""
    from pii_bench.datasets.catalog import load_dataset

    samples = load_dataset("single").samples
    judged = [{"gold": _gold(sample), "predicted": _predicted(sample)} for sample in samples]
    texts = [
        (predicted["text"], gold["text"])
        for sample in judged
        for predicted in sample["predicted"]
        for gold in sample["gold"]
    ]
    descriptions = [sample.description for sample in samples]
    cases: Cases = {
        # rouge-score knows ASCII alone.
        "texts": [pair for pair in texts if "".join(pair).isascii()],
        "descriptions": [pair for pair in pairwise(descriptions) if "".join(pair).isascii()][
            :_DESCRIPTIONS
        ],
        "samples": judged,
    }
    path.write_text(json.dumps(cases), encoding="utf-8")
    return {name: len(each) for name, each in cases.items()}


def _gold(sample: Sample) -> Entities:
    first = {(e.text, e.type): e.spans[0] for e in reversed(sample.entities)}
    return [
        {"text": text, "label": label, "start": start, "end": end}
        for (text, label), (start, end) in first.items()
    ]


def _predicted(sample: Sample) -> Entities:
    """What a system might find: of five entities one is missed, one cut, one of another type."""
    return list(_faulty(_gold(sample)))


def _faulty(entities: Entities) -> Iterator[dict[str, Any]]:
    for number, entity in enumerate(entities):
        words = entity["text"].rpartition(" ")[0]
        if number % 5 == 1 and words:
            yield entity | {"text": words, "end": entity["start"] + len(words)}
        elif number % 5 == 2:
            yield entity | {"label": "CODE" if entity["label"] != "CODE" else "LOC"}
        elif number % 5 != 0:
            yield entity


def _our_rouge(pairs: list[tuple[str, str]]) -> float:
    from pii_bench.scorer.measures import similarity
    from pii_bench.scorer.text import normalise, tokens

    # What was remembered of an earlier repetition is no speed.
    normalise.cache_clear()
    tokens.cache_clear()
    return sum(similarity(normalise(a), normalise(b)) for a, b in pairs) / len(pairs)


def _rouge_score(pairs: list[tuple[str, str]]) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    found: float = sum(scorer.score(b, a)["rougeL"].fmeasure for a, b in pairs)
    return found / len(pairs)


def _our_entities(samples: list[dict[str, Entities]]) -> float:
    from pii_bench.scorer import micro, score_detection
    from pii_bench.scorer.text import normalise, tokens

    normalise.cache_clear()
    tokens.cache_clear()

    def subjects(entities: Entities) -> list[list[tuple[str, str]]]:
        return [[(entity["text"], entity["label"]) for entity in entities]]

    scores = [
        score_detection(subjects(sample["predicted"]), subjects(sample["gold"]))
        for sample in samples
    ]
    found = micro([score.strict_counts for score in scores])
    assert found is not None
    return found.f1


def _nervaluate(samples: list[dict[str, Entities]]) -> float:
    from nervaluate import Evaluator

    gold = [sample["gold"] for sample in samples]
    labels = sorted({entity["label"] for entities in gold for entity in entities})
    predicted = [sample["predicted"] for sample in samples]
    found = Evaluator(gold, predicted, tags=labels, loader="dict").evaluate()
    f1: float = found["overall"]["strict"].f1
    return f1


_JUDGES: Final[Mapping[str, tuple[str, Callable[[Any], float]]]] = {
    "our-texts": ("texts", _our_rouge),
    "rouge-score-texts": ("texts", _rouge_score),
    "our-descriptions": ("descriptions", _our_rouge),
    "rouge-score-descriptions": ("descriptions", _rouge_score),
    "our-samples": ("samples", _our_entities),
    "nervaluate-samples": ("samples", _nervaluate),
}


def main() -> None:
    judge, path = sys.argv[1:]
    cases = json.loads(Path(path).read_text(encoding="utf-8"))
    kind, score = _JUDGES[judge]
    score(cases[kind][:10])  # imports, and files that are read once
    seconds = []
    found = 0.0
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        found = score(cases[kind])
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "found": found}))  # noqa: T201 - who started it reads it


if __name__ == "__main__":
    main()
