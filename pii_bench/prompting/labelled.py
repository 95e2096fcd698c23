"""What the strategy `json` asks for: the labels of a taxonomy, and worked examples."""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from rapidfuzz import fuzz, process

from pii_bench.datasets.catalog import open_documents
from pii_bench.datasets.span_files import Misfits, span_source
from pii_bench.errors import PiiBenchError
from pii_bench.taxonomy import CATEGORIES, PAPER, PiiType, name_in, taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pii_bench.datasets.span_files import Document
    from pii_bench.taxonomy import Meaning

_KINDS: Final[Mapping[PiiType, str]] = MappingProxyType(
    {
        PiiType.PER: "Name",
        PiiType.CODE: "Number or string that identifies somebody",
        PiiType.LOC: "Place",
        PiiType.ORG: "Organization",
        PiiType.DEM: "Attribute of a person",
        PiiType.DATETIME: "Date or time",
        PiiType.QUANTITY: "Sum of money or share",
    }
)


def definitions(name: str) -> Mapping[str, str]:
    """Label to what it marks, in the order of the table; empty where the table does not say.

    Of the paper's taxonomy the seven types alone. Labels that differ from another in a running
    number (`LASTNAME1`) are not asked for: some releases of a dataset number a repeated label.

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    labels = taxonomy(name)
    if name == PAPER:
        return MappingProxyType({each.value: ", ".join(CATEGORIES[each]) for each in PiiType})
    return MappingProxyType(
        {
            label: _definition(label, meaning)
            for label, meaning in labels.items()
            if name_in({key: labels[key] for key in labels if key != label}, label) is None
        }
    )


def asked_as(asked: Mapping[str, str], meaning: Meaning | None, label: str) -> str | None:
    """The label among those asked for that a dataset's label means; None for none."""
    if label in asked:
        return label
    if meaning is not None and meaning.type in asked:
        return meaning.type
    bare = label.rstrip("0123456789").removesuffix("_")
    return bare if bare in asked else None


def _definition(label: str, meaning: Meaning) -> str:
    if meaning.category is not None:
        return f"Part of: {meaning.category}" if meaning.part else meaning.category
    datafog = (meaning.datafog or "").replace("_", " ").capitalize()
    if datafog and datafog.lower() != label.replace("_", " ").lower():
        return datafog
    return "" if meaning.type is None else _KINDS[meaning.type]


TRAIN: Final = ("train-single", "train-multi")
"""Our own sets that examples may come from."""

_SPLIT: Final = "train"
_POOL: Final = 1_000


@dataclass(frozen=True, slots=True)
class Shots:
    """Which examples a prompt shows.

    Attributes:
        number: for each text, at least 1.
        source: a name of `TRAIN`, or `format:PATH` of a dataset of spans, of which the rows of
            the train split are taken.
        by: `seed` for the same examples for every text, drawn at random; `similarity` for those
            that share most with the text.
        seed: of the draw, and of the draw of those among which similar ones are sought.
    """

    number: int
    source: str = TRAIN[0]
    by: Literal["seed", "similarity"] = "seed"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """A text, and its values by label."""

    text: str
    values: Mapping[str, Sequence[str]]


def draw_examples(shots: Shots, name: str, asked: Mapping[str, str]) -> tuple[Example, ...]:
    """The examples among which those of each text are chosen; one seed always draws the same.

    `name` is that of the taxonomy, of whose labels `asked` are asked for.

    Raises:
        PiiBenchError: the source is no train split, is marked in another taxonomy, or is too
            small.
        InputFileError: it cannot be read.
    """
    stream = open_documents(_train_split(shots.source))
    if stream.labels != taxonomy(name):
        what = f"examples from {shots.source!r} are not marked with the labels of {name!r}"
        raise PiiBenchError(f"{what}: choose another --taxonomy or --shots-from")
    # One more than are shown: a text is never its own example.
    size = shots.number + 1 if shots.by == "seed" else max(_POOL, shots.number + 1)
    places = _places(stream.read(Misfits()), shots.seed)
    drawn = [document for _, document in heapq.nsmallest(size, places, key=itemgetter(0))]
    if len(drawn) <= shots.number:
        what = f"{shots.number} examples of {shots.source!r}"
        raise PiiBenchError(f"{what}: it has {len(drawn)} texts, of which one may be asked about")
    return tuple(_example(document, stream.labels, asked) for document in drawn)


def choose(examples: Sequence[Example], shots: Shots, text: str) -> list[Example]:
    """The examples for a text, which are other texts."""
    others = [each for each in examples if text not in each.text]
    if shots.by == "seed":
        return others[: shots.number]
    texts = [each.text for each in others]
    found = process.extract(text, texts, scorer=fuzz.token_sort_ratio, limit=shots.number)
    # The most similar one last, next to the text.
    return [others[place] for _, _, place in reversed(found)]


def _places(documents: Iterable[Document], seed: int) -> Iterator[tuple[bytes, Document]]:
    """Each text once, though a dataset may ask several queries about it, with its random place."""
    seen: set[bytes] = set()
    for document in documents:
        text = document.text.encode("utf-8", "surrogatepass")
        place = hashlib.sha256(b"%d %s" % (seed, text)).digest()
        if place not in seen:
            seen.add(place)
            yield place, document


def _train_split(source: str) -> str:
    if source in TRAIN:
        return source
    if (spans := span_source(source)) is None or spans.split not in {None, _SPLIT}:
        allowed = f"{', '.join(TRAIN)}, or FORMAT:PATH of a dataset of spans"
        raise PiiBenchError(f"{source!r} is no train split to take examples from: {allowed}")
    if spans.split is not None:
        return source
    return f"{source}{'&' if '#' in source else '#'}split={_SPLIT}"


def _example(
    document: Document, labels: Mapping[str, Meaning], asked: Mapping[str, str]
) -> Example:
    values: dict[str, list[str]] = {label: [] for label in asked}
    for start, end, label in document.spans:
        shown = asked_as(asked, labels.get(label), label)
        value = document.text[start:end]
        if shown is not None and value not in values[shown]:
            values[shown].append(value)
    return Example(document.text, values)
