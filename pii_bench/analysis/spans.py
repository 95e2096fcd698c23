"""Scores of PII detectors on documents of any dataset, as rows of one table.

Gold and predictions are compared in our seven types (`taxonomy`). What cannot be compared is
counted but not scored: gold labels without a type, or with one that the detector does not have;
predicted types that the dataset does not have; and predictions where gold has only labels without
a type.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.datasets.span_files import joined
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.ranking.rows import system_name
from pii_bench.scorer import PRF, Counts, SpanScore, f1_interval, score_spans
from pii_bench.scorer.locate import DetectedSpan, overlap, place_entities
from pii_bench.systems import ENCODER
from pii_bench.systems.detectors import DETECTORS, build_detector, detector_names
from pii_bench.tasks import Task
from pii_bench.taxonomy import TARGETS, PiiType, types_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.datasets.span_files import Document
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.detectors import Detector
    from pii_bench.taxonomy import Meaning

COLUMNS: Final = (
    *("model", "dataset", "slice", "documents", "gold", "predicted"),
    *("precision", "recall", "target_recall", "f1", "f1_low", "f1_high", "macro_f1"),
    *("semeval_strict_f1", "semeval_exact_f1", "semeval_partial_f1", "semeval_type_f1"),
    *("token_precision", "token_recall", "token_f1", "token_f1_low", "token_f1_high"),
    *("overlap_precision", "overlap_recall", "overlap_f1", "overlap_f1_low", "overlap_f1_high"),
    "signature",
)
"""Columns of the table; precision, recall and F1 without a prefix are of exact spans with types."""

Row = dict[str, str | int | float | None]


class SpanTally:
    """Running scores of a detector; memory does not grow with the number of documents.

    Attributes:
        unscored: number of spans that were not scored, by description.
    """

    def __init__(self, labels: Mapping[str, Meaning], detector: Detector) -> None:
        self.labels = labels
        self.detector = detector
        self.total = SpanScore()
        self.documents = 0
        self.unscored = Counter[str]()
        self._groups = defaultdict[str, SpanScore](SpanScore)  # by label or tier
        # By column prefix: how many documents have which counts, for the intervals.
        self._documents = defaultdict[str, Counter[Counts]](Counter)

    def add(self, document: Document) -> None:
        """Run the detector on a document and score it."""
        gold, untyped = self._gold(document)
        typed = {(start, end, self._type(label)) for start, end, label in gold}
        predicted = self._predicted(document.text, [span[:2] for span in typed], untyped)
        score = score_spans(predicted, typed, document.text)
        self.total += score
        self.documents += 1
        for prefix, counts in _counts(score).items():
            self._documents[prefix][counts] += 1
        groups = defaultdict(set)
        for start, end, label in gold:
            span = start, end, self._type(label)
            groups[f"label {label}"].add(span)
            if (tier := self.labels[label].tier) is not None:
                groups[f"tier {tier}"].add(span)
        for name, spans in groups.items():
            self._groups[name] += score_spans(predicted, spans)

    def rows(self, dataset: str, signature: str) -> list[Row]:
        """Return rows for all documents, each type, tier and label, and unscored spans."""
        common: Row = {"model": self.detector.name, "dataset": dataset}
        score = self.total
        rows: list[Row] = [
            {
                "slice": "all",
                "documents": self.documents,
                **_sizes(score.counts),
                **self._figures_with_intervals(),
                "macro_f1": _f1(score.macro),
                "semeval_strict_f1": _f1(score.strict.prf),
                "semeval_exact_f1": _f1(score.exact.prf),
                "semeval_partial_f1": _f1(score.partial.prf),
                "semeval_type_f1": _f1(score.type.prf),
                "signature": signature,
            }
        ]
        for label, counts in sorted(score.labels.items()):
            rows.append({"slice": f"type {label}", **_sizes(counts), **_figures("", counts)})
        for name in sorted(self._groups, key=lambda name: (name.startswith("label"), name)):
            exact, overlapping = self._groups[name].counts, self._groups[name].overlap
            kind, _, tier = name.partition(" ")
            rows.append(
                {
                    "slice": name,
                    "gold": exact.gold,
                    "recall": exact.prf.recall,
                    "overlap_recall": overlapping.prf.recall,
                    "target_recall": TARGETS[int(tier)] if kind == "tier" else None,
                }
            )
        for what, number in sorted(self.unscored.items()):
            rows.append({"slice": f"not scored: {what}", what.partition(" ")[0]: number})
        return [{column: {**common, **row}.get(column) for column in COLUMNS} for row in rows]

    def _gold(self, document: Document) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
        """Return the gold spans to score, and the places of those without a type."""
        gold, untyped = [], []
        for start, end, label in joined(document, self.labels):
            meaning = self.labels.get(label)
            if meaning is None or meaning.type is None:
                untyped.append((start, end))
                self.unscored[f"gold {label} (no such type)"] += 1
            elif meaning.type not in self.detector.types:
                self.unscored[f"gold {label} (the detector has no {meaning.type})"] += 1
            else:
                gold.append((start, end, label))
        return gold, untyped

    def _predicted(
        self, text: str, scored: list[tuple[int, int]], untyped: list[tuple[int, int]]
    ) -> list[tuple[int, int, str]]:
        known = {meaning.type for meaning in self.labels.values()}
        predicted = []
        for span in self.detector.detect(text):
            place = [(span.start, span.end)]
            if span.type not in known:
                self.unscored[f"predicted {span.type} (the dataset has none)"] += 1
            elif overlap(place, untyped) and not overlap(place, scored):
                self.unscored[f"predicted {span.type} (where gold has no type)"] += 1
            else:
                predicted.append((span.start, span.end, str(span.type)))
        return predicted

    def _type(self, label: str) -> str:
        return str(self.labels[label].type)

    def _figures_with_intervals(self) -> Row:
        figures: Row = {}
        for prefix, counts in _counts(self.total).items():
            low, high = f1_interval(self._documents[prefix].elements()) or (None, None)
            figures |= {f"{prefix}f1_low": low, f"{prefix}f1_high": high}
            if not counts.empty:
                figures |= _figures(prefix, counts)
        return figures


@dataclass(frozen=True, slots=True)
class StoredDetector:
    """A `Detector` that returns the stored answers of a run, by text.

    Attributes:
        unplaced: number of answered values without a type of ours or a place in the text.
    """

    name: str
    identity: Mapping[str, str]
    types: frozenset[PiiType]
    unplaced: Counter[str]
    _spans: Mapping[str, list[DetectedSpan]]

    @classmethod
    def of_run(cls, run: Run) -> StoredDetector:
        """Locate the values of each answer in its text.

        A sample without a prediction, or whose prediction is not scored, is skipped. If a text
        was asked about twice, the first answer counts.

        Raises:
            PiiBenchError: the run is not a detection run.
        """
        system = run.manifest.system
        if run.task is not Task.DETECTION:
            raise PiiBenchError(f"{system.model} ({system.prompt}) answers {run.task}: no places")
        types = set(PiiType) if system.taxonomy is None else types_of(system.taxonomy).values()
        spans: dict[str, list[DetectedSpan]] = {}
        unplaced: Counter[str] = Counter()
        for sample in run.dataset.samples:
            answer, text = run.predictions.get(sample.id), sample.description
            if answer is None or not answer.status.scored or text in spans:
                continue
            pairs = [pair for subject in answer.subjects or () for pair in subject]
            typed = [pair for pair in pairs if pair[1] in set(PiiType)]
            unplaced["predicted without a type of ours"] += len(pairs) - len(typed)
            placed, invented = place_entities(text, typed)
            unplaced.update(f"predicted {kind} (not in the text)" for _, kind in invented)
            spans[text] = [DetectedSpan(start, end, PiiType(kind)) for start, end, kind in placed]
        return cls(
            name=system_name(system.model, system.prompt),
            identity={
                "prompt": f"{system.prompt}@{system.prompt_sha256[:12]}",
                **{key: str(value) for key, value in system.settings.items()},
            },
            types=frozenset(kind for kind in types if kind is not None),
            unplaced=+unplaced,
            _spans=spans,
        )

    def __contains__(self, text: str) -> bool:
        return text in self._spans

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the spans of a text that the run has an answer about."""
        return self._spans[text]


def build_local(name: str, label_map: Path | None = None) -> Detector:
    """Build a detector by name; the encoder is one too.

    Raises:
        UnknownNameError: there is no such detector.
        PiiBenchError: see `build_detector`.
    """
    head, _, folder = name.partition(":")
    if head not in {*DETECTORS, ENCODER}:
        raise UnknownNameError("detector", name, [*detector_names(), ENCODER, f"{ENCODER}:DIR"])
    if head != ENCODER:
        return build_detector(name, label_map)
    if label_map is not None:
        raise PiiBenchError(f"detector {name!r} gives our types: it takes no map of labels")
    from pii_bench.systems.encoder import EncoderDetector
    from pii_bench.systems.encoder.reader import SHIPPED

    return EncoderDetector(Path(folder) if folder else SHIPPED)


def _counts(score: SpanScore) -> dict[str, Counts]:
    """Return the counts that have precision, recall, F1 and an interval, by column prefix."""
    return {"": score.counts, "token_": score.tokens or Counts(), "overlap_": score.overlap}


def _figures(prefix: str, counts: Counts) -> Row:
    prf = counts.prf
    return {
        f"{prefix}precision": prf.precision,
        f"{prefix}recall": prf.recall,
        f"{prefix}f1": prf.f1,
    }


def _sizes(counts: Counts) -> Row:
    return {"gold": counts.gold, "predicted": counts.predicted}


def _f1(prf: PRF | None) -> float | None:
    return None if prf is None else prf.f1
