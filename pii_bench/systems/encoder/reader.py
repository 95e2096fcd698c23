"""Reads a text with the fine-tuned encoder, without torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pii_bench.datasets.checksums import sha256_of
from pii_bench.errors import InputFileError
from pii_bench.resources import DATA
from pii_bench.scorer import normalise
from pii_bench.systems.encoder.files import GRAPH, HEADS, TOKENIZER
from pii_bench.systems.encoder.fixed_forms import with_fixed_forms
from pii_bench.systems.encoder.windows import padded, spelled_of, subwords_of, windows_of
from pii_bench.systems.tagger.labels import OUTSIDE, Transitions, best_labels
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.systems.encoder.windows import Window

    Floats = NDArray[np.float32]

SHIPPED: Final = DATA / "models" / "encoder"

DISTANCES: Final = (-64, -24, -8, 0, 8, 24, 64)
"""Edges of the buckets of the distance, in subwords, from a person's mention to a span."""

_TYPES: Final = tuple(PiiType)
_BATCH: Final = 8
# A person who is at least this surely an owner shares what another owns more surely.
_SHARED: Final = 0.5
_SPLIT: Final = frozenset("\n\r\t")


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of personal information in a text.

    Attributes:
        text: as the text writes it.
        spans: every place, in code points, end exclusive.
        owners: texts of the persons' names whose it is; empty where no person is named.
        relevance: how surely the query needs it, 0 to 1; 0 without a query and for names.
    """

    text: str
    type: PiiType
    spans: tuple[tuple[int, int], ...]
    owners: tuple[str, ...]
    relevance: float = 0.0


class Reader:
    """Runs the weights of a folder on one thread.

    Raises:
        InputFileError: a file of the folder is missing or broken.
    """

    def __init__(self, folder: Path = SHIPPED) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        hashes = "".join(sha256_of(folder / name) for name in (GRAPH, HEADS, TOKENIZER))
        self.sha256 = hashlib.sha256(hashes.encode()).hexdigest()
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        with np.load(folder / HEADS) as heads:
            self._heads: Mapping[str, Floats] = dict(heads)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # Weights of 8 bits become floats at loading; otherwise activations are rounded too.
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        try:
            self._session: Any = onnxruntime.InferenceSession(
                folder / GRAPH, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise InputFileError(folder / GRAPH, "is no ONNX graph") from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._transitions = (
            Transitions(*(self._heads[f"crf.{name}"] for name in ("start", "pairs", "end")))
            if "crf.start" in self._heads
            else None
        )

    def detect(self, text: str) -> list[Found]:
        """Everything personal in a text, in order of its first place; nothing is relevant yet."""
        windows = windows_of(self._tokenizer, text)
        states, tags = self._run(windows)
        spans = with_fixed_forms(text, decode(text, windows, tags, self._transitions))
        return _merge(text, spans, self._owners(text, spans, windows, states)) if spans else []

    def weigh(self, text: str, found: Sequence[Found], query: str) -> list[Found]:
        """What was found in a text, with its relevance to a query.

        Args:
            text: in which it was found.
            found: by `detect`.
            query: what is asked about the text, not blank.
        """
        windows = windows_of(self._tokenizer, text, query)
        states, _ = self._run(windows)
        return [replace(item, relevance=self._relevance(item, windows, states)) for item in found]

    def _run(self, windows: Sequence[Window]) -> tuple[list[Floats], list[Floats]]:
        """Hidden states (subwords of the window, width) and label scores, per window."""
        states: list[Floats] = []
        tags: list[Floats] = []
        for start in range(0, len(windows), _BATCH):
            batch = windows[start : start + _BATCH]
            ids = np.array(padded([w.ids for w in batch]), np.int64)
            mask = np.array(padded([(1,) * len(w.ids) for w in batch]), np.int64)
            types = np.array(padded([w.types for w in batch]), np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            if "spelled" in self._inputs:
                inputs["spelled"] = np.array(spelled_of(batch), np.int64)
            hidden, scores = self._session.run(None, inputs)
            states += list(hidden)
            tags += list(scores)
        return states, tags

    def _relevance(self, item: Found, windows: Sequence[Window], states: Sequence[Floats]) -> float:
        """That of the place that has most of it."""
        if item.type is PiiType.PER:
            return 0.0
        scores = []
        for window, hidden in zip(windows, states, strict=True):
            opening = hidden[0]
            for span in item.spans:
                if (pooled := _pooled(window, hidden, span)) is not None:
                    own = pooled[1]
                    seen = np.concatenate([own, opening, own * opening])
                    scores.append(_sigmoid(self._mlp("relevance", seen)))
        return max(scores, default=0.0)

    def _owners(
        self,
        text: str,
        spans: Sequence[tuple[int, int, PiiType]],
        windows: Sequence[Window],
        states: Sequence[Floats],
    ) -> dict[tuple[int, int, PiiType], tuple[str, ...]]:
        names: dict[str, list[tuple[int, int, PiiType]]] = {}
        for span in spans:
            if span[2] is PiiType.PER:
                names.setdefault(normalise(text[span[0] : span[1]]), []).append(span)
        if len(names) < 2:
            return dict.fromkeys(spans, tuple(names))
        seen = [
            _placed(window, hidden, spans) for window, hidden in zip(windows, states, strict=True)
        ]
        owners: dict[tuple[int, int, PiiType], tuple[str, ...]] = {}
        for span in spans:
            if span[2] is PiiType.PER:
                owners[span] = (normalise(text[span[0] : span[1]]),)
            else:
                scores = self._scores_of_owners(span, names, seen)
                owners[span] = _best(scores) or (_named_before(span, names),)
        return owners

    def _scores_of_owners(
        self,
        span: tuple[int, int, PiiType],
        names: Mapping[str, Sequence[tuple[int, int, PiiType]]],
        seen: Sequence[Mapping[tuple[int, int, PiiType], tuple[int, Floats]]],
    ) -> dict[str, float]:
        """By name how surely the span is that person's; those named in a window with it."""
        scores: dict[str, float] = {}
        for placed in seen:
            if span not in placed:
                continue
            place, own = placed[span]
            for name, mentions in names.items():
                told = [(place - placed[m][0], placed[m][1]) for m in mentions if m in placed]
                if told:
                    gap, person = min(told, key=lambda item: abs(item[0]))
                    score = self._owner_score(own, person, gap)
                    scores[name] = max(scores.get(name, 0.0), score)
        return scores

    def _owner_score(self, own: Floats, person: Floats, gap: int) -> float:
        distance = self._heads["distance"][bucket(gap)]
        return _sigmoid(self._mlp("owner", np.concatenate([own, person, own * person, distance])))

    def _mlp(self, name: str, seen: Floats) -> float:
        hidden = self._heads[f"{name}.0.weight"] @ seen + self._heads[f"{name}.0.bias"]
        active = np.maximum(hidden, 0.0)
        score = self._heads[f"{name}.2.weight"] @ active + self._heads[f"{name}.2.bias"]
        return float(score[0])


def _best(scores: Mapping[str, float]) -> tuple[str, ...]:
    best = max(scores.values(), default=0.0)
    return tuple(name for name, score in scores.items() if score == best or score >= _SHARED)


def _named_before(
    span: tuple[int, int, PiiType], names: Mapping[str, Sequence[tuple[int, int, PiiType]]]
) -> str:
    """The person named last before a span, or first of all."""
    before = [name for name, mentions in names.items() if mentions[0][0] < span[0]]
    return before[-1] if before else next(iter(names))


def bucket(gap: int) -> int:
    """The bucket of a distance: 0 to `len(DISTANCES)`."""
    return sum(gap > edge for edge in DISTANCES)


def decode(
    text: str,
    windows: Sequence[Window],
    tags: Sequence[Floats],
    transitions: Transitions | None = None,
) -> list[tuple[int, int, PiiType]]:
    """Spans of the best labels, a label for each word; none crosses a line.

    Args:
        text: that the windows are of.
        windows: of the text.
        tags: scores of labels for each subword of each window.
        transitions: of a conditional random field; None to take each word's best label.
    """
    words: list[tuple[int, int]] = []
    scores: list[Floats] = []
    for window, own in zip(windows, tags, strict=True):
        for place in range(*window.core):
            start, end = window.offsets[place]
            if window.opens[place] or not words:
                words.append((start, end))
                scores.append(own[window.first + place])
            else:
                words[-1] = (words[-1][0], end)
    if not words:
        return []
    emissions = np.stack(scores)
    if transitions is None:
        labels = [int(label) for label in emissions.argmax(axis=1)]
    else:
        labels = best_labels(emissions, transitions)
    return _spans(text, words, labels)


def _spans(
    text: str, words: Sequence[tuple[int, int]], labels: Sequence[int]
) -> list[tuple[int, int, PiiType]]:
    spans: list[tuple[int, int, PiiType]] = []
    before = OUTSIDE
    for (start, end), label in zip(words, labels, strict=True):
        if label != OUTSIDE:
            kind = _TYPES[(label - 1) // 2]
            continues = before != OUTSIDE and label % 2 == 0 and spans[-1][2] is kind
            if before != OUTSIDE and spans[-1][1] == start:
                # One piece of writing, such as 11:42:09, is one entity.
                spans[-1] = (spans[-1][0], end, spans[-1][2])
            elif continues and not _SPLIT & set(text[spans[-1][1] : start]):
                spans[-1] = (spans[-1][0], end, kind)
            else:
                spans.append((start, end, kind))
        before = label
    return [span for span in spans if any(map(str.isalnum, text[span[0] : span[1]]))]


def _pooled(
    window: Window, hidden: Floats, span: tuple[int, int] | tuple[int, int, PiiType]
) -> tuple[int, Floats] | None:
    """A span's first subword in a window and the mean of its states; None where it is elsewhere."""
    place = subwords_of(window, span[0], span[1])
    if place is None:
        return None
    states: Floats = hidden[window.first + place[0] : window.first + place[1]]
    return place[0], states.mean(axis=0)


def _placed(
    window: Window, hidden: Floats, spans: Sequence[tuple[int, int, PiiType]]
) -> dict[tuple[int, int, PiiType], tuple[int, Floats]]:
    """Those of the spans that are in a window, see `_pooled`."""
    pooled = {span: _pooled(window, hidden, span) for span in spans}
    return {span: found for span, found in pooled.items() if found is not None}


def _merge(
    text: str,
    spans: Sequence[tuple[int, int, PiiType]],
    owners: Mapping[tuple[int, int, PiiType], tuple[str, ...]],
) -> list[Found]:
    """One entry for each text, type and owner."""
    groups: dict[tuple[str, PiiType, tuple[str, ...]], list[tuple[int, int, PiiType]]] = {}
    for span in spans:
        key = (text[span[0] : span[1]], span[2], owners[span])
        groups.setdefault(key, []).append(span)
    return [
        Found(
            text=value,
            type=pii_type,
            spans=tuple((start, end) for start, end, _ in own),
            owners=names,
        )
        for (value, pii_type, names), own in groups.items()
    ]


def _sigmoid(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))
