"""Inference with the fine-tuned encoder: needs onnxruntime and tokenizers, but not torch."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from pii_bench.files import DATA, sha256_of
from pii_bench.scorer import normalise
from pii_bench.systems.encoder.rules import (
    VERSION,
    is_contact,
    may_need_contact,
    whole_names,
    with_fixed_forms,
    with_parts_of_names,
    with_whole_names,
    with_whole_spans,
    without_labels,
)
from pii_bench.systems.encoder.windows import spelled_of, subwords_of, windows_of
from pii_bench.systems.graphs import load_graph
from pii_bench.systems.tagger import OUTSIDE, Transitions, best_labels, may_follow
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.systems.encoder.windows import Window

    Floats = NDArray[np.float32]

SHIPPED: Final = DATA / "models" / "encoder"

GRAPH: Final = "encoder.onnx"
"""The encoder and the labelling head, for onnxruntime."""

HEADS: Final = "heads.npz"
"""Weights of the relevance and owner heads, and the label transitions of a CRF head."""

TOKENIZER: Final = "tokenizer.json"

DISTANCES: Final = (-64, -24, -8, 0, 8, 24, 64)
"""Edges of the buckets of the distance, in subwords, from a person's mention to a span."""

Place: TypeAlias = tuple[int, int]
"""Start and end in code points of a text, end exclusive."""

Labelled: TypeAlias = tuple[int, int, PiiType]

_TYPES: Final = tuple(PiiType)
# A person with at least this probability is an owner, even if another has a higher one.
_SHARED: Final = 0.5
# Penalty in log-odds (`default_transitions`). Best on dev of 0, 2, 3 and 4.
_CHANGE: Final = 2.0
# Least relevance at which a code is kept.
_CLEAR: Final = 0.8
# Weight of the person a query is about (`lower_for_other_people`). On dev as good as 0; better in
# conversations made of dev texts, and where the person asked about changes.
_PERSON: Final = 0.2
# Relevance is clipped to [_LEAST, 1 - _LEAST], so that its log-odds are finite.
_LEAST: Final = 1e-6
# A line break, a tab, or the gap between two columns.
_GAP: Final = re.compile(r"[\n\r\t]| {3}")


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """A predicted entity of a text, at every occurrence.

    Attributes:
        owners: normalised names of the people it belongs to; empty if the text has no name.
        relevance: probability that the query needs it; 0 without a query.
    """

    text: str
    type: PiiType
    spans: tuple[tuple[int, int], ...]
    owners: tuple[str, ...]
    relevance: float = 0.0


class Reader:
    """Runs the encoder on one thread.

    Its `sha256` is that of the files of the weights and the version of the rules.

    Raises:
        InputFileError: a file of the folder is missing or broken.
    """

    def __init__(self, folder: Path = SHIPPED) -> None:
        from tokenizers import Tokenizer

        hashes = "".join(sha256_of(folder / name) for name in (GRAPH, HEADS, TOKENIZER))
        self.sha256 = hashlib.sha256(f"{hashes} {VERSION}".encode()).hexdigest()
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        with np.load(folder / HEADS) as heads:
            self._heads: Mapping[str, Floats] = dict(heads)
        self._session = load_graph(folder / GRAPH)
        self._inputs = [node.name for node in self._session.get_inputs()]
        self._transitions = (
            Transitions(*(self._heads[f"crf.{name}"] for name in ("start", "pairs", "end")))
            if "crf.start" in self._heads
            else default_transitions()
        )

    def detect(self, text: str) -> list[FoundEntity]:
        """Return the entities of a text by first occurrence, with relevance 0.

        The hidden states need 0.7 MB of memory per window.
        """
        runs = list(self._run(windows_of(self._tokenizer, text)))
        scores = [(window, own) for window, _, own in runs]
        states = [(window, hidden) for window, hidden, _ in runs]
        spans = decode(text, scores, self._transitions)
        spans = without_labels(text, spans)
        spans = with_whole_spans(text, spans)
        spans = with_whole_names(text, spans)
        spans = with_fixed_forms(text, spans)
        spans = with_parts_of_names(text, spans)
        return _merge(text, spans, self._owners(text, spans, states))

    def score_relevance(
        self, text: str, found: Sequence[FoundEntity], query: str
    ) -> list[FoundEntity]:
        """Return the detected entities with their relevance to a query that is not blank.

        It is 0 for names, and for contact data that the query contains, or all of it if the query
        is not about contacting a person.
        """
        reaching = may_need_contact(query)
        several = len({owner for item in found for owner in item.owners}) > 1
        spans: set[Place] = set()
        for item in found:
            if item.type is PiiType.PER:
                may_be_needed = several
            elif is_contact(item.text):
                may_be_needed = reaching and item.text not in query
            else:
                may_be_needed = True
            if may_be_needed:
                spans.update(item.spans)
        windows = windows_of(self._tokenizer, text, query) if spans else ()
        states = ((window, hidden) for window, hidden, _ in self._run(windows))
        weights = self._weights(spans, states)
        weighed = []
        for item in found:
            relevance = max((weights.get(span, 0.0) for span in item.spans), default=0.0)
            weighed.append(replace(item, relevance=relevance))
        return lower_for_other_people(weighed)

    def _run(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Floats, Floats]]:
        """Yield each window with its hidden states (subwords, width) and label scores.

        Windows are not batched: a batch takes as long and needs more memory.
        """
        for window in windows:
            inputs = {
                "input_ids": [window.ids],
                "attention_mask": [[1] * len(window.ids)],
                "token_type_ids": [window.types],
            }
            if "spelled" in self._inputs:
                inputs["spelled"] = spelled_of([window])
            # Some encoders take no token types.
            given = {name: np.array(inputs[name], np.int64) for name in self._inputs}
            (hidden,), (scores,) = self._session.run(None, given)
            yield window, hidden, scores

    def _weights(
        self, spans: Iterable[Place], states: Iterable[tuple[Window, Floats]]
    ) -> dict[Place, float]:
        """Return the relevance of each span, the highest over its windows."""
        weights: dict[Place, float] = {}
        for hidden, placed in pool_by_window(spans, states):
            opening = hidden[0]
            for span, (_, own) in placed.items():
                seen = np.concatenate([own, opening, own * opening])
                weight = _sigmoid(self._mlp("relevance", seen))
                weights[span] = max(weights.get(span, 0.0), weight)
        return weights

    def _owners(
        self, text: str, spans: Sequence[Labelled], states: Iterable[tuple[Window, Floats]]
    ) -> dict[Place, tuple[str, ...]]:
        """Return the people whom each span belongs to."""
        places = [(start, end) for start, end, _ in spans]
        names = {
            (start, end): normalise(text[start:end])
            for start, end, kind in spans
            if kind is PiiType.PER
        }
        whole = whole_names(names.values())
        names = {place: whole[name] for place, name in names.items()}
        firsts: dict[str, int] = {}
        for (start, _), name in names.items():
            firsts.setdefault(name, start)
        if len(firsts) < 2:
            return dict.fromkeys(places, tuple(firsts))
        scores = self._scores_of_owners(names, firsts, pool_by_window(places, states))
        owners: dict[Place, tuple[str, ...]] = {}
        last_named = next(iter(firsts))
        for place in places:
            if place in names:
                owners[place] = (names[place],)
                if firsts[names[place]] == place[0]:
                    last_named = names[place]
            else:
                # Without a score: the last person first named before the span, or the first person.
                owners[place] = _best(scores.get(place, {})) or (last_named,)
        return owners

    def _scores_of_owners(
        self,
        names: Mapping[Place, str],
        firsts: Mapping[str, int],
        windows: Iterable[tuple[Floats, Mapping[Place, tuple[int, Floats]]]],
    ) -> dict[Place, dict[str, float]]:
        """Return the probability of each owner by span, for people named in the same window.

        `names` are those of the spans of people, `firsts` their first starts in the text, and
        `windows` the result of `pool_by_window`.
        """
        scores: dict[Place, dict[str, float]] = {}
        for _, placed in windows:
            mentions: dict[str, list[tuple[int, Floats]]] = {}
            for span, seen in placed.items():
                if span in names:
                    mentions.setdefault(names[span], []).append(seen)
            people = sorted(mentions, key=lambda name: firsts[name])
            for span, (place, own) in placed.items():
                if span in names:
                    continue
                known = scores.setdefault(span, {})
                for name in people:
                    gaps = [(place - there, person) for there, person in mentions[name]]
                    gap, person = min(gaps, key=lambda item: abs(item[0]))
                    distance = self._heads["distance"][bucket(gap)]
                    pair = np.concatenate([own, person, own * person, distance])
                    score = _sigmoid(self._mlp("owner", pair))
                    known[name] = max(known.get(name, 0.0), score)
        return scores

    def _mlp(self, name: str, seen: Floats) -> float:
        hidden = self._heads[f"{name}.0.weight"] @ seen + self._heads[f"{name}.0.bias"]
        active = np.maximum(hidden, 0.0)
        score = self._heads[f"{name}.2.weight"] @ active + self._heads[f"{name}.2.bias"]
        return float(score[0])


def is_kept(item: FoundEntity, threshold: float) -> bool:
    """Return True if an entity stays readable.

    Names never do. Codes need a relevance of at least `_CLEAR` as well as the threshold.
    """
    if item.type is PiiType.PER:
        return False
    least = max(threshold, _CLEAR) if item.type is PiiType.CODE else threshold
    return item.relevance > 0 and item.relevance >= least


def lower_for_other_people(found: Sequence[FoundEntity]) -> list[FoundEntity]:
    """Lower the relevance, as the network gave it, of entities of people the query is not about.

    The relevance of a name is the probability that the query is about that person. `_PERSON` times
    the difference between the highest log-odds of any person and the highest log-odds of an
    entity's owners is subtracted from the entity's log-odds. Names get relevance 0.
    """
    people: dict[str, float] = {}
    for item in found:
        if item.type is PiiType.PER:
            for owner in item.owners:
                people[owner] = max(people.get(owner, -np.inf), _log_odds(item.relevance))
    most = max(people.values(), default=0.0)

    def lowered(item: FoundEntity) -> float:
        if item.type is PiiType.PER or not item.relevance:
            return 0.0
        own = [people[owner] for owner in item.owners if owner in people]
        less = most - max(own) if own else 0.0
        return _sigmoid(_log_odds(item.relevance) - _PERSON * less) if less else item.relevance

    return [replace(item, relevance=lowered(item)) for item in found]


def _log_odds(relevance: float) -> float:
    sure = min(max(relevance, _LEAST), 1 - _LEAST)
    return float(np.log(sure / (1 - sure)))


def subjects_of(found: Iterable[FoundEntity]) -> list[list[tuple[str, str]]]:
    """Group entities by owner; those without an owner form one group."""
    people: dict[str, list[tuple[str, str]]] = {}
    for item in found:
        for owner in item.owners or ("",):
            people.setdefault(owner, []).append((item.text, item.type))
    return list(people.values())


def _best(scores: Mapping[str, float]) -> tuple[str, ...]:
    best = max(scores.values(), default=0.0)
    return tuple(name for name, score in scores.items() if score == best or score >= _SHARED)


def bucket(gap: int) -> int:
    """Return the bucket of a distance, 0 to `len(DISTANCES)`."""
    return sum(gap > edge for edge in DISTANCES)


def default_transitions() -> Transitions:
    """Return the transitions for a head without a CRF.

    `_CHANGE` is the penalty for continuing an entity of another type or none, and for beginning
    an entity directly after another.
    """
    labels = range(1 + 2 * len(_TYPES))
    pairs = np.zeros((len(labels), len(labels)), np.float32)
    for before, label in product(labels, labels):
        adjacent = before != OUTSIDE and label % 2 == 1
        if adjacent or not may_follow(before, label):
            pairs[before, label] = -_CHANGE
    return Transitions(pairs[OUTSIDE], pairs, np.zeros(len(labels), np.float32))


def decode(
    text: str,
    windows: Iterable[tuple[Window, Floats]],
    transitions: Transitions,
) -> list[Labelled]:
    """Return the spans of the best label sequence, one label per word.

    No span crosses a line break, a tab or a gap between columns. The windows of the text come in
    order, each with label scores (subwords, labels).
    """
    words: list[Place] = []
    scores: list[Floats] = []
    for window, own in windows:
        for place in range(*window.core):
            start, end = window.offsets[place]
            if window.opens[place] or not words:
                words.append((start, end))
                scores.append(own[window.first + place])
            else:
                words[-1] = (words[-1][0], end)
    if not words:
        return []
    return _spans(text, words, best_labels(np.stack(scores), transitions))


def _spans(text: str, words: Iterable[Place], labels: Sequence[int]) -> list[Labelled]:
    spans: list[Labelled] = []
    before = OUTSIDE
    for (start, end), label in zip(words, labels, strict=True):
        if label != OUTSIDE:
            kind = _TYPES[(label - 1) // 2]
            continues = before != OUTSIDE and label % 2 == 0 and spans[-1][2] is kind
            if before != OUTSIDE and spans[-1][1] == start:
                # Adjacent words without a space, such as 11:42:09, are one entity.
                spans[-1] = (spans[-1][0], end, spans[-1][2])
            elif continues and not _GAP.search(text, spans[-1][1], start):
                spans[-1] = (spans[-1][0], end, kind)
            else:
                spans.append((start, end, kind))
        before = label
    return [span for span in spans if any(map(str.isalnum, text[span[0] : span[1]]))]


def pool_by_window(
    spans: Iterable[Place], states: Iterable[tuple[Window, Floats]]
) -> Iterator[tuple[Floats, dict[Place, tuple[int, Floats]]]]:
    """Average the hidden states of each span in each window.

    Yields the hidden states of a window, and a dict from each span in it to its first subword and
    the mean of its states.
    """
    ordered = sorted(spans)
    for window, hidden in states:
        begin, end = window.offsets[0][0], window.offsets[-1][1]
        placed: dict[Place, tuple[int, Floats]] = {}
        for span in ordered:
            # The places are searched for only in the windows that a span can be in.
            place = subwords_of(window, *span) if span[0] < end and span[1] > begin else None
            if place is not None:
                own = hidden[window.first + place[0] : window.first + place[1]]
                placed[span] = place[0], own.mean(0)
        yield hidden, placed


def _merge(
    text: str,
    spans: Sequence[Labelled],
    owners: Mapping[Place, tuple[str, ...]],
) -> list[FoundEntity]:
    """Join spans of the same text, type and owners to one entity."""
    groups: dict[tuple[str, PiiType, tuple[str, ...]], list[Place]] = {}
    for start, end, kind in spans:
        key = (text[start:end], kind, owners[start, end])
        groups.setdefault(key, []).append((start, end))
    return [
        FoundEntity(value, kind, tuple(places), names)
        for (value, kind, names), places in groups.items()
    ]


def _sigmoid(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))
